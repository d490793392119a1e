import { splitPair, symbolOf } from '../contract-names.ts'
import { decimalOf, priceOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, PayloadError, rowsOf, textOf, type Venue } from './funding-venue.ts'
import { isRow } from '../../lib/feeds/payloads.ts'

/** Dated contracts: BTC-26DEC25, BTCUSDZ25. */
const DATED = /-|[FGHJKMNQUVXZ]\d\d$/
const NONE = { result: { list: [] } }

const categoryOf = (payload: unknown): unknown =>
  isRow(payload) && isRow(payload['result']) ? payload['result']['category'] : undefined

/**
 * Bybit v5: one request for the linear and one for the inverse contracts. The interval is a field of each row, in hours.
 * A body with status 200 can still report a failure.
 *
 * Source: Bybit V5 API, "Get Tickers".
 */
export const bybit: Venue = {
  name: 'bybit',
  url: 'https://api.bybit.com',
  requests: {
    linear: {
      path: '/v5/market/tickers?category=linear',
      absent: NONE,
      answeredBy: (payload) => categoryOf(payload) === 'linear',
    },
    inverse: {
      path: '/v5/market/tickers?category=inverse',
      absent: NONE,
      answeredBy: (payload) => categoryOf(payload) === 'inverse',
    },
  },
  parse(payloads, at) {
    const parsed = createParsed(at)
    for (const [contract, payload] of Object.entries(payloads) as ['linear' | 'inverse', unknown][]) {
      const { retCode = 0, retMsg } = isRow(payload) ? payload : {}
      if (Number(retCode) !== 0) throw new PayloadError(`retCode ${String(retCode)}: ${textOf(retMsg)}`)
      for (const row of rowsOf(payload, 'result', 'list')) {
        const instrument = textOf(row['symbol'])
        if (DATED.test(instrument) || instrument === '') continue
        // BTCPERP is quoted in USDC.
        const pair = splitPair(instrument.replace(/PERP$/, 'USDC')) ?? { base: instrument, quote: '' }
        const hours = decimalOf(row['fundingIntervalHour'])
        parsed.add({
          instrument,
          symbol: symbolOf(pair.base),
          quote: pair.quote,
          settle: contract === 'inverse' ? symbolOf(pair.base) : pair.quote,
          contract,
          rate: decimalOf(row['fundingRate']),
          intervalHours: hours === null ? null : Number(hours),
          intervalSource: 'venue',
          kind: 'predicted',
          predictedRate: null,
          nextFunding: secondsOf(row['nextFundingTime']),
          markPrice: priceOf(row['markPrice']),
          indexPrice: priceOf(row['indexPrice']),
          observed: (isRow(payload) ? secondsOf(payload['time']) : null) ?? at,
        })
      }
    }
    return parsed
  },
}
