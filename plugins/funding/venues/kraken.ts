import { epochSeconds } from '../../lib/time/timestamps.ts'
import { symbolOf } from '../contract-names.ts'
import type { FundingRate } from '../funding-rate.ts'
import { decimalOf, dollars, priceOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, PayloadError, requireList, rowsOf, settledRows, textOf, type Venue } from './funding-venue.ts'
import { isRow, type Row } from '../../lib/feeds/payloads.ts'

/** "Calculated every hour ... settling at the end of each hour": Kraken, contract specifications. No field states it. */
const HOURS = 1
/** Perpetual contracts, linear (PF) and inverse (PI); FF and FI are dated. */
const PERPETUAL = /^P[FI]_/
const PARTS = /^P[FI]_(\w+)(USD[TC]?|EUR|GBP)$/
const NO_INSTRUMENTS = { instruments: [] }

const listInstruments = (payload: unknown): boolean => isRow(payload) && Array.isArray(payload['instruments'])

/**
 * Kraken Futures. `fundingRate` of a ticker is an amount of money an hour for one contract, not a fraction. For a linear
 * contract (PF_) the fraction is that amount divided by the mark price. For an inverse one (PI_) it is paid in coin, and
 * dividing would be wrong by the square of the price: PI_XBTUSD at 21,979.69 with −6.2604214e-11 is −1.380384722e-6 and
 * not −2.8e-15. Multiplying comes within 0.3% of it, because the reference price is missing. Such a contract is
 * therefore reported only if the venue states the relative rate, as its streaming ticker does.
 *
 * Source: Kraken Futures API, "Tickers", "Instruments" and the streaming "Ticker".
 */
export const kraken: Venue = {
  name: 'kraken',
  url: 'https://futures.kraken.com',
  requests: {
    tickers: { path: '/derivatives/api/v3/tickers' },
    // The bounds of each contract.
    instruments: {
      path: '/derivatives/api/v3/instruments',
      everySeconds: 86_400,
      optional: true,
      absent: NO_INSTRUMENTS,
      fits: listInstruments,
      answeredBy: listInstruments,
    },
  },
  parse({ tickers, instruments }, at) {
    const { result = 'success' } = isRow(tickers) ? tickers : {}
    if (result !== 'success') throw new PayloadError(`result ${String(result)}`)
    const observed = isRow(tickers) ? epochSeconds(tickers['serverTime']) : null
    const listed = rowsOf(instruments ?? NO_INSTRUMENTS, 'instruments')
    const contracts = new Map(listed.map((row) => [textOf(row['symbol']).toUpperCase(), row]))
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
        ...boundsOf(contracts.get(instrument)),
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

/**
 * `maxRelativeFundingRate`: "the absolute value of the maximum permissible funding rate" (Kraken Futures API, "Instruments"). A few
 * contracts have a floor of their own, `minRelativeFundingRate`. Both bound the relative rate, and ours is an amount divided by
 * the mark price of now, so that a rate at its bound may be a little beyond it. Like published rules, they hold back no rate.
 */
function boundsOf(contract: Row | undefined): Pick<FundingRate, 'floor' | 'cap' | 'boundsSource'> {
  const [floor, cap] = [contract?.['minRelativeFundingRate'], contract?.['maxRelativeFundingRate']].map(decimalOf)
  return cap == null || Number(cap) <= 0 ? {} : { floor: floor ?? `-${cap}`, cap, boundsSource: 'published' }
}
