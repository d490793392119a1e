import { symbolOf } from '../contract-names.ts'
import { decimalOf, secondsOf } from '../payload-numbers.ts'
import { createParsed, PayloadError, rowsOf, textOf, type Venue } from './funding-venue.ts'
import { isRow } from '../../lib/feeds/payloads.ts'

/**
 * OKX v5: every swap in one request. The interval is the time between the next settlement and the one after it, or
 * between the last settlement and the next. The answer has no prices.
 *
 * Source: OKX API v5, "Get funding rate" with instId=ANY.
 */
export const okx: Venue = {
  name: 'okx',
  url: 'https://www.okx.com',
  requests: { rates: { path: '/api/v5/public/funding-rate?instId=ANY' } },
  parse({ rates }, at) {
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
        markPrice: null,
        indexPrice: null,
        observed: secondsOf(row['ts']) ?? at,
      })
    }
    return parsed
  },
}

/** Hours between two times, to a thousandth; null if either is missing. */
function hoursBetween(from: number | null, to: number | null): number | null {
  return from === null || to === null ? null : Math.round(((to - from) / 3600) * 1000) / 1000
}
