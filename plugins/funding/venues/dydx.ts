import { symbolOf } from '../contract-names.ts'
import { epochSeconds } from '../../lib/time/timestamps.ts'
import type { FundingRate } from '../funding-rate.ts'
import { decimalOf, dollars, priceOf } from '../payload-numbers.ts'
import {
  createParsed,
  levelsOf,
  nextHour,
  PayloadError,
  rowsOf,
  settledRows,
  textOf,
  type Venue,
} from './funding-venue.ts'
import { isRow, type Row } from '../../lib/feeds/payloads.ts'

/** dYdX v4 pays every hour on the hour. No field states it. */
const HOURS = 1

/**
 * dYdX v4 indexer: every market in one object. `nextFundingRate` is the rate of the current hour.
 *
 * Source: dYdX Indexer API, "Get Perpetual Markets".
 */
export const dydx: Venue = {
  name: 'dydx',
  url: 'https://indexer.dydx.trade',
  requests: { markets: { path: '/v4/perpetualMarkets' } },
  parse({ markets }, at) {
    const found = isRow(markets) ? markets['markets'] : undefined
    if (!isRow(found)) throw new PayloadError('no markets in the answer')
    const parsed = createParsed(at)
    for (const [name, row] of Object.entries(found)) {
      if (!isRow(row)) continue
      const instrument = textOf(row['ticker']) || name
      if ((row['status'] ?? 'ACTIVE') !== 'ACTIVE') continue
      // Tokens of a single exchange are named "NAME,exchange,address-USD".
      const base = instrument.replace(/-USD$/, '').split(',')[0]!
      parsed.add({
        instrument,
        symbol: symbolOf(base),
        quote: 'USD',
        settle: 'USDC',
        contract: 'linear',
        rate: decimalOf(row['nextFundingRate']),
        intervalHours: HOURS,
        intervalSource: 'published',
        kind: 'predicted',
        predictedRate: null,
        nextFunding: nextHour(at),
        markPrice: null,
        indexPrice: priceOf(row['oraclePrice']),
        ...boundsOf(row),
        volumeUsd: priceOf(row['volume24H']),
        openInterestUsd: dollars(row['openInterest'], row['oraclePrice']),
        observed: at,
      })
    }
    return parsed
  },
  settled: {
    windowSeconds: 99 * 3600,
    request: (instrument, _, to) => ({
      path: `/v4/historicalFunding/${instrument}?limit=100&effectiveBeforeOrAt=${new Date(to * 1000 + 999).toISOString()}`,
    }),
    parse: (payload) =>
      settledRows(rowsOf(payload, 'historicalFunding'), (row) => ({
        time: epochSeconds(row['effectiveAt']),
        rate: decimalOf(row['rate']),
      })),
  },
  book: {
    request: (instrument) => ({ path: `/v4/orderbooks/perpetualMarket/${instrument}` }),
    sides: (payload) => ({
      bids: levelsOf(rowsOf(payload, 'bids'), 'price', 'size'),
      asks: levelsOf(rowsOf(payload, 'asks'), 'price', 'size'),
    }),
  },
}

/**
 * At each settlement the chain clamps the rate of eight hours to 600% of the difference of initial and maintenance margin
 * (|R| <= clamp_factor * (initial margin - maintenance margin), dydxprotocol/v4-chain: protocol/x/perpetuals/types/genesis.go,
 * DefaultFundingRateClampFactorPpm, and GetMaxAbsFundingClampPpm of liquidity_tier.go). An hour has an eighth of it.
 *
 * `nextFundingRate` is the plain mean of the hour's samples (indexer/packages/redis/src/caches/next-funding-cache.ts), so in a
 * squeeze it is beyond what will be charged. Governance can change the factor. Neither makes the rate wrong, which is why
 * published bounds hold back no rate.
 */
function boundsOf(row: Row): Pick<FundingRate, 'floor' | 'cap' | 'boundsSource'> {
  const [initial, maintenance] = [decimalOf(row['initialMarginFraction']), decimalOf(row['maintenanceMarginFraction'])]
  const room = Number(initial) - Number(maintenance)
  if (initial === null || maintenance === null || !(room > 0)) return {}
  const cap = decimalOf(Number(((6 * room) / 8).toPrecision(12)))!
  return { floor: `-${cap}`, cap, boundsSource: 'published' }
}
