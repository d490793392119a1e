import { symbolOf } from '../contract-names.ts'
import { decimalOf, dollars, priceOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, PayloadError, requireList, rowsOf, settledRows, textOf, type Venue } from './funding-venue.ts'
import { isRow, type Row } from '../../lib/feeds/payloads.ts'

/**
 * OKX v5: every swap in one request. The interval is the time between the next settlement and the one after it, or
 * between the last settlement and the next. The answer has no prices, which come from the tickers.
 *
 * Source: OKX API v5, "Get funding rate" with instId=ANY, "Get tickers" and "Get funding rate history".
 */
export const okx: Venue = {
  name: 'okx',
  url: 'https://www.okx.com',
  requests: {
    rates: {
      path: '/api/v5/public/funding-rate?instId=ANY',
      answeredBy: (payload) => haveField(payload, 'fundingRate'),
    },
    tickers: {
      path: '/api/v5/market/tickers?instType=SWAP',
      everySeconds: 60,
      optional: true,
      absent: { data: [] },
      fits: (payload) => haveField(payload, 'instId'),
      answeredBy: (payload) => haveField(payload, 'volCcy24h'),
    },
    // How many coins a contract has, which only order books need.
    instruments: {
      path: '/api/v5/public/instruments?instType=SWAP',
      everySeconds: 86_400,
      optional: true,
      absent: { data: [] },
      fits: (payload) => haveField(payload, 'ctVal'),
      answeredBy: (payload) => haveField(payload, 'ctVal'),
    },
  },
  parse({ rates, tickers, instruments }, at) {
    const prices = new Map(rowsOf(tickers ?? { data: [] }, 'data').map((row) => [row['instId'], row]))
    const contracts = new Map(rowsOf(instruments ?? { data: [] }, 'data').map((row) => [row['instId'], row]))
    const { code = 0, msg } = isRow(rates) ? rates : {}
    if (Number(code) !== 0) throw new PayloadError(`code ${String(code)}: ${textOf(msg)}`)
    const parsed = createParsed(at)
    for (const row of rowsOf(rates, 'data')) {
      const instrument = textOf(row['instId'])
      const [base = '', pricedIn = '', type] = instrument.split('-')
      if (type !== 'SWAP') continue
      const quote = pricedIn.replace(/_UM$/, '')
      const inverse = pricedIn === 'USD'
      const [next, after] = [secondsOf(row['fundingTime']), secondsOf(row['nextFundingTime'])]
      const before = secondsOf(row['prevFundingTime'])
      const hours = hoursBetween(next, after) ?? hoursBetween(before, next)
      parsed.add({
        instrument,
        symbol: symbolOf(base),
        quote,
        settle: inverse ? symbolOf(base) : quote,
        contract: inverse ? 'inverse' : 'linear',
        rate: decimalOf(row['fundingRate']),
        intervalHours: hours,
        intervalSource: 'venue',
        kind: 'predicted',
        predictedRate: decimalOf(row['nextFundingRate']),
        nextFunding: next,
        // The last price stands in for the mark price, which this answer lacks.
        markPrice: priceOf(prices.get(instrument)?.['last']),
        indexPrice: null,
        floor: decimalOf(row['minFundingRate']),
        cap: decimalOf(row['maxFundingRate']),
        boundsSource: 'venue',
        contractSize: coinsOf(contracts.get(instrument)),
        volumeUsd: dollars(prices.get(instrument)?.['volCcy24h'], prices.get(instrument)?.['last']),
        observed: secondsOf(row['ts']) ?? at,
      })
    }
    return parsed
  },
  settled: {
    windowSeconds: 99 * 3600,
    request: (instrument, from, to) => ({
      // `after` asks for rows before a time, and `before` for rows after one.
      path: `/api/v5/public/funding-rate-history?instId=${instrument}&before=${from * 1000 - 1}&after=${to * 1000 + 1000}&limit=100`,
    }),
    parse(payload) {
      const { code = 0, msg } = isRow(payload) ? payload : {}
      if (Number(code) !== 0) throw new PayloadError(`code ${String(code)}: ${textOf(msg)}`)
      return settledRows(rowsOf(payload, 'data'), (row) => ({
        time: secondsOf(row['fundingTime']),
        rate: decimalOf(row['realizedRate']) ?? decimalOf(row['fundingRate']),
      }))
    },
  },
  book: {
    request: (instrument) => ({ path: `/api/v5/market/books?instId=${instrument}&sz=200` }),
    sides(payload) {
      const [book] = rowsOf(payload, 'data')
      return { bids: requireList(book, 'bids'), asks: requireList(book, 'asks') }
    },
    inContracts: true,
  },
}

function haveField(payload: unknown, field: string): boolean {
  const rows = isRow(payload) && Array.isArray(payload['data']) ? (payload['data'] as unknown[]) : []
  return rows.some((row) => isRow(row) && field in row)
}

/** Hours between two times, to a thousandth; null if either is missing. */
function hoursBetween(from: number | null, to: number | null): number | null {
  return from === null || to === null ? null : Math.round(((to - from) / 3600) * 1000) / 1000
}

/** Coins in one contract: its value times its multiplier, if that value is in coins. */
function coinsOf(row: Row | undefined): number | null {
  const [value, multiplier] = [priceOf(row?.['ctVal']), priceOf(row?.['ctMult'])]
  return value === null || row?.['ctType'] !== 'linear' ? null : value * (multiplier ?? 1)
}
