/** What a preflight asks of other products, and what it says where they have no answer. */
import { type Ask, type Call, ServiceError } from 'tollgate/plugin'
import type { CostEstimate } from '../../schemas/types.d.ts'
import { quantileSorted } from '../lib/quant/quantile.ts'
import type { FundingView, Missing, RegimeView } from './checks.ts'

/** The regime of crypto markets; of an equity it says nothing. */
export async function askRegime({ ask }: { readonly ask: Ask }, cost: CostEstimate): Promise<RegimeView> {
  if (cost.inputs.class === 'equity')
    return { missing: `The regime is that of a crypto market and says nothing of ${cost.symbol}.` }
  return orMissing(ask('getRegimeCurrent', { params: {}, query: {}, body: undefined }))
}

/** Funding of a perpetual, where the catalog sells it. */
export async function askFunding(
  { ask, catalog }: Pick<Call, 'ask' | 'catalog'>,
  cost: CostEstimate,
): Promise<FundingView> {
  if (cost.inputs.class !== 'perpetual') return { missing: `${cost.symbol} is not a perpetual; no funding is paid.` }
  if (!catalog.operations.has('getPerpFundingRates')) return { missing: 'Funding rates are not offered here.' }
  const [base = ''] = cost.symbol.split('-')
  const query = { symbol: base, limit: 1000 }
  const told = await orMissing(ask('getPerpFundingRates', { params: {}, query, body: undefined }))
  if ('missing' in told) return told
  const rates = told.rates.map(({ rate_8h }) => rate_8h).sort((a, b) => a - b)
  if (rates.length === 0) return { missing: `No venue tells a funding rate of ${base}.` }
  return { rate8h: quantileSorted(rates, 0.5), venues: rates.length }
}

/** A product that has no answer at the moment leaves its check unmade; anything else is a failure of the call. */
async function orMissing<Answer>(asked: Promise<Answer>): Promise<Answer | Missing> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'product_suspended') return { missing: error.message }
    throw error
  }
}
