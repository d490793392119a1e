import { splitPair, symbolOf } from '../contract-names.ts'
import { decimalOf, priceOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, rowsOf, textOf, type Venue } from './funding-venue.ts'
import { isRow } from '../../lib/feeds/payloads.ts'

/** Interval of contracts missing in the list of adjusted intervals: Binance publishes eight hours for them. */
const UNADJUSTED_HOURS = 8

const have = (payload: unknown, field: string): boolean =>
  Array.isArray(payload) && payload.some((row) => isRow(row) && field in row)

/**
 * Binance USD-M futures: one request for all rates (weight 10), and once an hour the list of adjusted intervals. Without
 * that list no interval is known and the poll fails. Dated contracts have an empty rate and are skipped.
 *
 * Source: Binance USDⓈ-M Futures API, "Mark Price" and "Get Funding Rate Info".
 */
export const binance: Venue = {
  name: 'binance',
  url: 'https://fapi.binance.com',
  requests: {
    rates: { path: '/fapi/v1/premiumIndex', answeredBy: (payload) => have(payload, 'lastFundingRate') },
    intervals: {
      path: '/fapi/v1/fundingInfo',
      everySeconds: 3600,
      fits: Array.isArray,
      answeredBy: (payload) => have(payload, 'fundingIntervalHours'),
    },
  },
  parse({ rates, intervals }, at) {
    const adjusted = new Map(rowsOf(intervals).map((row) => [row['symbol'], decimalOf(row['fundingIntervalHours'])]))
    const parsed = createParsed(at)
    for (const row of rowsOf(rates)) {
      const instrument = textOf(row['symbol'])
      // A delisted contract stays in the list for a while without further payments.
      const isOver = row['nextFundingTime'] === 0 || row['nextFundingTime'] === '0'
      if (instrument.includes('_') || instrument === '' || isOver) continue
      const pair = splitPair(instrument) ?? { base: instrument, quote: '' }
      const hours = adjusted.get(instrument)
      parsed.add({
        instrument,
        symbol: symbolOf(pair.base),
        quote: pair.quote,
        settle: pair.quote,
        contract: 'linear',
        rate: decimalOf(row['lastFundingRate']),
        intervalHours: hours === undefined ? UNADJUSTED_HOURS : hours === null ? null : Number(hours),
        intervalSource: hours === undefined ? 'published' : 'venue',
        kind: 'predicted',
        predictedRate: null,
        nextFunding: secondsOf(row['nextFundingTime']),
        markPrice: priceOf(row['markPrice']),
        indexPrice: priceOf(row['indexPrice']),
        observed: secondsOf(row['time']) ?? at,
      })
    }
    return parsed
  },
}
