import { splitPair, symbolOf } from '../contract-names.ts'
import type { FundingRate } from '../funding-rate.ts'
import { decimalOf, dollars, priceOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, PayloadError, requireList, rowsOf, settledRows, textOf, type Venue } from './funding-venue.ts'
import { isRow, type Row } from '../../lib/feeds/payloads.ts'

/** Dated contracts: BTC-26DEC25, BTCUSDZ25. */
const DATED = /-|[FGHJKMNQUVXZ]\d\d$/
const NONE = { result: { list: [] } }

const categoryOf = (payload: unknown): unknown =>
  isRow(payload) && isRow(payload['result']) ? payload['result']['category'] : undefined

/**
 * Bybit v5: one request for the linear and one for the inverse contracts. The interval is a field of each row, in hours.
 * A body with status 200 can still report a failure.
 *
 * Source: Bybit V5 API, "Get Tickers" and "Get Funding Rate History".
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
          ...boundsOf(row),
          // Inverse contracts state both in coins.
          volumeUsd: dollars(row['turnover24h'], contract === 'inverse' ? row['markPrice'] : 1),
          openInterestUsd: dollars(row['openInterestValue'], contract === 'inverse' ? row['markPrice'] : 1),
          observed: (isRow(payload) ? secondsOf(payload['time']) : null) ?? at,
        })
      }
    }
    return parsed
  },
  settled: {
    windowSeconds: 199 * 3600,
    request: (instrument, from, to) => ({
      path: `/v5/market/funding/history?category=${instrument.endsWith('USD') ? 'inverse' : 'linear'}&symbol=${instrument}&startTime=${from * 1000}&endTime=${to * 1000 + 999}&limit=200`,
    }),
    parse(payload) {
      const { retCode = 0, retMsg } = isRow(payload) ? payload : {}
      if (Number(retCode) !== 0) throw new PayloadError(`retCode ${String(retCode)}: ${textOf(retMsg)}`)
      return settledRows(rowsOf(payload, 'result', 'list'), (row) => ({
        time: secondsOf(row['fundingRateTimestamp']),
        rate: decimalOf(row['fundingRate']),
      }))
    },
  },
  book: {
    request: (instrument) => ({ path: `/v5/market/orderbook?category=linear&symbol=${instrument}&limit=200` }),
    sides: (payload) => ({ bids: requireList(payload, 'result', 'b'), asks: requireList(payload, 'result', 'a') }),
  },
}

/**
 * `fundingCap`: "Funding rate upper and lower limits", one number for both directions (Bybit V5 API, "Get Tickers"). Older answers
 * lack it.
 */
function boundsOf(row: Row): Pick<FundingRate, 'floor' | 'cap' | 'boundsSource'> {
  const cap = decimalOf(row['fundingCap'])
  return cap === null ? {} : { floor: `-${cap}`, cap, boundsSource: 'venue' }
}
