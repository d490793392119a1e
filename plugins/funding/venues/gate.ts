import { symbolOf } from '../contract-names.ts'
import { epochSeconds } from '../../lib/time/timestamps.ts'
import type { Row } from '../../lib/feeds/payloads.ts'
import type { FundingRate } from '../funding-rate.ts'
import { decimalOf, dollars, priceOf } from '../payload-numbers.ts'
import { createParsed, levelsOf, rowsOf, settledRows, textOf, type Venue } from './funding-venue.ts'

/**
 * Gate: every USDT perpetual in one list, with intervals and times in seconds.
 *
 * Source: Gate API v4, "List all futures contracts".
 */
export const gate: Venue = {
  name: 'gate',
  url: 'https://api.gateio.ws',
  requests: { contracts: { path: '/api/v4/futures/usdt/contracts' } },
  parse({ contracts }, at) {
    const parsed = createParsed(at)
    for (const row of rowsOf(contracts)) {
      const instrument = textOf(row['name'])
      const [base = '', quote = ''] = instrument.split('_')
      if (quote === '') continue
      const inverse = row['type'] === 'inverse'
      const seconds = decimalOf(row['funding_interval'])
      const next = decimalOf(row['funding_next_apply'])
      parsed.add({
        instrument,
        symbol: symbolOf(base),
        quote,
        settle: inverse ? symbolOf(base) : quote,
        contract: inverse ? 'inverse' : 'linear',
        rate: decimalOf(row['funding_rate']),
        intervalHours: seconds === null ? null : Number(seconds) / 3600,
        intervalSource: 'venue',
        kind: 'predicted',
        predictedRate: decimalOf(row['funding_rate_indicative']),
        nextFunding: next !== null && Number(next) > 0 ? Math.floor(Number(next)) : null,
        markPrice: priceOf(row['mark_price']),
        indexPrice: priceOf(row['index_price']),
        ...boundsOf(row),
        contractSize: priceOf(row['quanto_multiplier']),
        openInterestUsd: dollars(row['position_size'], contractPrice(row)),
        observed: at,
      })
    }
    return parsed
  },
  settled: {
    windowSeconds: 999 * 3600,
    request: (instrument, from, to) => ({
      path: `/api/v4/futures/usdt/funding_rate?contract=${instrument}&from=${from}&to=${to}&limit=1000`,
    }),
    parse: (payload) =>
      settledRows(rowsOf(payload), (row) => ({
        time: epochSeconds(row['t']),
        rate: decimalOf(row['r']),
      })),
  },
  book: {
    request: (instrument) => ({ path: `/api/v4/futures/usdt/order_book?contract=${instrument}&limit=100` }),
    sides: (payload) => ({
      bids: levelsOf(rowsOf(payload, 'bids'), 'p', 's'),
      asks: levelsOf(rowsOf(payload, 'asks'), 'p', 's'),
    }),
    inContracts: true,
  },
}

/** What one contract is worth, dollars; null if the venue does not say. It may be far below a cent. */
function contractPrice(row: Row): number | null {
  const [coins, price] = [priceOf(row['quanto_multiplier']), priceOf(row['mark_price'])]
  return coins === null || price === null ? null : coins * price
}

/**
 * `funding_rate_limit`: "Upper and lower limits of funding rate" (Gate API v4, model Contract). Answers from before August 2025
 * lack it (Gate, "Perpetual Futures Info API Add funding_rate_limit Field", 2025-08-13).
 */
function boundsOf(row: Row): Pick<FundingRate, 'floor' | 'cap' | 'boundsSource'> {
  const limit = decimalOf(row['funding_rate_limit'])
  return limit === null || Number(limit) <= 0 ? {} : { floor: `-${limit}`, cap: limit, boundsSource: 'venue' }
}
