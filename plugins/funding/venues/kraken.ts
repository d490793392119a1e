import { epochSeconds } from '../../lib/time/timestamps.ts'
import { symbolOf } from '../contract-names.ts'
import { decimalOf, dollars, priceOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, PayloadError, requireList, rowsOf, settledRows, textOf, type Venue } from './funding-venue.ts'
import { isRow } from '../../lib/feeds/payloads.ts'

/** "Calculated every hour ... settling at the end of each hour": Kraken, contract specifications. No field states it. */
const HOURS = 1
/** Perpetual contracts, linear (PF) and inverse (PI); FF and FI are dated. */
const PERPETUAL = /^P[FI]_/
const PARTS = /^P[FI]_(\w+)(USD[TC]?|EUR|GBP)$/

/**
 * Kraken Futures. `fundingRate` of a ticker is an amount of money an hour for one contract, not a fraction. For a linear
 * contract (PF_) the fraction is that amount divided by the mark price. For an inverse one (PI_) it is paid in coin, and
 * dividing would be wrong by the square of the price: PI_XBTUSD at 21,979.69 with −6.2604214e-11 is −1.380384722e-6 and
 * not −2.8e-15. Multiplying comes within 0.3% of it, because the reference price is missing. Such a contract is
 * therefore reported only if the venue states the relative rate, as its streaming ticker does.
 *
 * Source: Kraken Futures API, "Tickers" and the streaming "Ticker".
 */
export const kraken: Venue = {
  name: 'kraken',
  url: 'https://futures.kraken.com',
  requests: { tickers: { path: '/derivatives/api/v3/tickers' } },
  parse({ tickers }, at) {
    const { result = 'success' } = isRow(tickers) ? tickers : {}
    if (result !== 'success') throw new PayloadError(`result ${String(result)}`)
    const observed = isRow(tickers) ? epochSeconds(tickers['serverTime']) : null
    const parsed = createParsed(at)
    for (const row of rowsOf(tickers, 'tickers')) {
      // Earlier answers have lower-case names: pi_xbtusd.
      const instrument = textOf(row['symbol'] ?? row['product_id']).toUpperCase()
      if (!PERPETUAL.test(instrument) || row['suspended'] === true) continue
      const [base = '', quote = 'USD'] = (textOf(row['pair']) || instrument.replace(PARTS, '$1:$2')).split(':')
      const inverse = instrument.startsWith('PI_')
      const mark = priceOf(row['markPrice'])
      const relative = decimalOf(row['relative_funding_rate'])
      const rate = relative ?? (inverse ? null : fraction(row['fundingRate'], mark))
      if (inverse && rate === null) {
        parsed.untold.push({
          instrument,
          rate: decimalOf(row['fundingRate']),
          reason: 'an inverse contract, for which the venue reports only the absolute amount',
        })
        continue
      }
      parsed.add({
        instrument,
        symbol: symbolOf(base),
        quote,
        settle: inverse ? symbolOf(base) : 'USD',
        contract: inverse ? 'inverse' : 'linear',
        rate,
        intervalHours: HOURS,
        intervalSource: 'published',
        kind: 'predicted',
        predictedRate:
          decimalOf(row['relative_funding_rate_prediction']) ??
          (inverse ? null : fraction(row['fundingRatePrediction'], mark)),
        nextFunding: secondsOf(row['next_funding_rate_time']),
        markPrice: mark,
        indexPrice: priceOf(row['indexPrice'] ?? row['index']),
        volumeUsd: inverse ? priceOf(row['volumeQuote']) : dollars(row['vol24h'], mark),
        openInterestUsd: inverse ? priceOf(row['openInterest']) : dollars(row['openInterest'], mark),
        observed: secondsOf(row['time']) ?? Math.floor(observed ?? at),
      })
    }
    return parsed
  },
  settled: {
    // One answer has everything that the venue keeps.
    windowSeconds: 10 * 366 * 86_400,
    request: (instrument) => ({ path: `/derivatives/api/v4/historicalfundingrates?symbol=${instrument}` }),
    parse(payload) {
      if (isRow(payload) && payload['result'] === 'error') throw new PayloadError(textOf(payload['error']))
      return settledRows(rowsOf(payload, 'rates'), (row) => ({
        time: epochSeconds(row['timestamp']),
        rate: decimalOf(row['relativeFundingRate']),
      }))
    },
  },
  book: {
    request: (instrument) => ({ path: `/derivatives/api/v3/orderbook?symbol=${instrument}` }),
    sides: (payload) => ({
      bids: requireList(payload, 'orderBook', 'bids'),
      asks: requireList(payload, 'orderBook', 'asks'),
    }),
  },
}

/** An amount of money as a fraction of the mark price; null if either is missing. */
function fraction(amount: unknown, mark: number | null): string | null {
  const absolute = decimalOf(amount)
  return absolute === null || mark === null ? null : decimalOf(Number((Number(absolute) / mark).toPrecision(15)))
}
