import { splitPair, symbolOf } from '../contract-names.ts'
import { decimalOf, priceOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, requireList, rowsOf, settledRows, textOf, type Venue } from './funding-venue.ts'
import { isRow, type Row } from '../../lib/feeds/payloads.ts'

/** Interval of contracts missing in the list of adjusted intervals: Binance publishes eight hours for them. */
const UNADJUSTED_HOURS = 8
/**
 * Cap of contracts missing in that list: "The capped funding rate for others USDⓈ-M Perpetual Contracts is set at ± 2%" (Binance,
 * "Introduction to Binance Futures Funding Rates"). A few major contracts have 75% of their maintenance margin, which is less and
 * is not public.
 */
const UNADJUSTED_CAP = '0.02'

const have = (payload: unknown, field: string): boolean =>
  Array.isArray(payload) && payload.some((row) => isRow(row) && field in row)

/**
 * Binance USD-M futures: one request for all rates (weight 10), and one for the list of adjusted intervals and bounds, which
 * is read with every poll: a contract that hits its cap moves to hourly settlements at once. Without that list no
 * interval is known and the poll fails. Dated contracts have an empty rate and are skipped.
 *
 * Source: Binance USDⓈ-M Futures API, "Mark Price", "Get Funding Rate Info", "24hr Ticker" and "Get Funding Rate History".
 */
export const binance: Venue = {
  name: 'binance',
  url: 'https://fapi.binance.com',
  requests: {
    rates: { path: '/fapi/v1/premiumIndex', answeredBy: (payload) => have(payload, 'lastFundingRate') },
    intervals: {
      path: '/fapi/v1/fundingInfo',
      keepSeconds: 600,
      fits: Array.isArray,
      answeredBy: (payload) => have(payload, 'fundingIntervalHours'),
    },
    volumes: {
      path: '/fapi/v1/ticker/24hr',
      everySeconds: 300,
      optional: true,
      absent: [],
      fits: Array.isArray,
      answeredBy: (payload) => have(payload, 'quoteVolume') && !have(payload, 'lastFundingRate'),
    },
  },
  parse({ rates, intervals, volumes }, at) {
    const adjusted = new Map(rowsOf(intervals).map((row) => [row['symbol'], row]))
    const traded = new Map(rowsOf(volumes ?? []).map((row) => [row['symbol'], priceOf(row['quoteVolume'])]))
    const parsed = createParsed(at)
    for (const row of rowsOf(rates)) {
      const instrument = textOf(row['symbol'])
      // A delisted contract stays in the list for a while without further payments.
      const isOver = row['nextFundingTime'] === 0 || row['nextFundingTime'] === '0'
      if (instrument.includes('_') || instrument === '' || isOver) continue
      const pair = splitPair(instrument) ?? { base: instrument, quote: '' }
      const own = adjusted.get(instrument)
      const next = secondsOf(row['nextFundingTime'])
      const hours = own === undefined ? UNADJUSTED_HOURS : hoursOf(own)
      const rate = decimalOf(row['lastFundingRate'])
      // A contract that hits its cap is moved to a shorter interval. Until the list says so, its next settlement does.
      if (hours !== null && next !== null && next % (hours * 3600) !== 0) {
        const reason = `the next settlement does not fit the interval of ${hours} hours`
        parsed.untold.push({ instrument, rate, reason })
        continue
      }
      parsed.add({
        instrument,
        symbol: symbolOf(pair.base),
        quote: pair.quote,
        settle: pair.quote,
        contract: 'linear',
        rate,
        intervalHours: hours,
        intervalSource: own === undefined ? 'published' : 'venue',
        kind: 'predicted',
        predictedRate: null,
        nextFunding: next,
        markPrice: priceOf(row['markPrice']),
        indexPrice: priceOf(row['indexPrice']),
        floor: own === undefined ? `-${UNADJUSTED_CAP}` : decimalOf(own['adjustedFundingRateFloor']),
        cap: own === undefined ? UNADJUSTED_CAP : decimalOf(own['adjustedFundingRateCap']),
        boundsSource: own === undefined ? 'published' : 'venue',
        volumeUsd: traded.get(instrument) ?? null,
        observed: secondsOf(row['time']) ?? at,
      })
    }
    return parsed
  },
  settled: {
    windowSeconds: 1000 * 3600,
    request: (instrument, from, to) => ({
      path: `/fapi/v1/fundingRate?symbol=${instrument}&startTime=${from * 1000}&endTime=${to * 1000 + 999}&limit=1000`,
    }),
    parse: (payload) =>
      settledRows(rowsOf(payload), (row) => ({
        time: secondsOf(row['fundingTime']),
        rate: decimalOf(row['fundingRate']),
      })),
  },
  book: {
    // Weight 5.
    request: (instrument) => ({ path: `/fapi/v1/depth?symbol=${instrument}&limit=100` }),
    sides: (payload) => ({ bids: requireList(payload, 'bids'), asks: requireList(payload, 'asks') }),
  },
}

function hoursOf(row: Row): number | null {
  const hours = decimalOf(row['fundingIntervalHours'])
  return hours === null ? null : Number(hours)
}
