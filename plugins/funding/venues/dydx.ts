import { symbolOf } from '../contract-names.ts'
import { decimalOf, priceOf } from '../payload-numbers.ts'
import { createParsed, nextHour, PayloadError, textOf, type Venue } from './funding-venue.ts'
import { isRow } from '../../lib/feeds/payloads.ts'

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
        observed: at,
      })
    }
    return parsed
  },
}
