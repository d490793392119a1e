/** Execution cost: estimates the spread, impact and fees of an order, with all numbers behind the estimate. */
import { type Call, type CallOf, definePlugin, type Freshness, type FreshnessTools, Unavailable } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import type { CostEstimate, CostSymbols } from '../../schemas/types.d.ts'
import { costAnswer } from './cost-answer.ts'
import { marketBehind, perpetualOf, settingsSchema } from './market-classes.ts'
import { BOOK_SECONDS, gatherInputs, requireAgreement } from './market-inputs.ts'
import { createBarHistory } from './bar-history.ts'
import { createErrorHistory } from './error-history.ts'
import { methodology } from './cost-methodology.ts'

export default definePlugin({
  name: 'cost',
  settings: settingsSchema,
  setup(context) {
    const { dataMode } = dataSettings(context)
    const classes = context.settings.classes
    const history = createBarHistory()
    const errors = createErrorHistory(() => context.now().getTime() / 1000)

    async function estimateExecutionCost(call: CallOf<'estimateExecutionCost'>): Promise<CostEstimate> {
      const { ask, asOf, catalog } = call
      const { body } = call.input
      const known = await gatherInputs(ask, body.symbol, asOf.getTime() / 1000, {
        classes,
        history,
        errors,
        catalog,
      })
      if (known.price === null)
        throw new Unavailable(`No price of ${known.symbol} is known yet. Nothing was charged.`, 30)
      // The sample makes the prices of spot markets and of perpetuals up independently.
      if (dataMode !== 'sample') requireAgreement(known)
      return costAnswer(body, known, classes[known.className], dataMode)
    }

    async function getCostSymbols({ ask, asOf }: Call): Promise<CostSymbols> {
      const { symbols } = await ask('getSymbols')
      const listed = symbols.map(async ({ symbol, name, aliases, session, intervals }) => {
        const { book } = await ask('getBook', { query: { symbol } })
        const className = session === 'us_equity' ? ('equity' as const) : ('spot' as const)
        return {
          symbol,
          name,
          aliases,
          class: className,
          session,
          fee_bps: classes[className].fee_bps,
          maker_fee_bps: classes[className].maker_fee_bps ?? classes[className].fee_bps,
          perpetual: className === 'spot' ? perpetualOf(symbol) : null,
          bar_seconds: intervals,
          book: book !== null && asOf.getTime() / 1000 - book.time <= BOOK_SECONDS,
        }
      })
      return { count: symbols.length, symbols: await Promise.all(listed) }
    }

    /** An estimate is as fresh as the bars of the market behind it. */
    async function freshness(symbol: string, { freshnessOf }: FreshnessTools): Promise<Freshness | null> {
      const { market } = marketBehind(symbol)
      return freshnessOf('getMarketStatus', { query: { symbol: market } })
    }

    return {
      handlers: { estimateExecutionCost, getCostSymbols, getCostMethod: () => methodology(classes) },
      freshness: ({ operation, body }, _, tools) =>
        operation === 'estimateExecutionCost' ? freshness(body.symbol, tools) : null,
      async watched(_, { ask }) {
        const { symbols } = await ask('getSymbols')
        return symbols.map(({ symbol }) => ({ body: { symbol } }))
      },
    }
  },
})
