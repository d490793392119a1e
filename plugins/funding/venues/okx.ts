import { decimalOf, secondsOf } from '../decimal.ts'
import { symbolOf } from '../symbol.ts'
import { createParsed, isRow, PayloadError, rowsOf, textOf, type Venue } from './venue.ts'

/**
 * OKX v5: every swap in one request. The interval is the time between the coming settlement and the one after it; the
 * answer has no prices.
 *
 * Source: OKX API v5, "Get funding rate" with instId=ANY.
 */
export const okx: Venue = {
  name: 'okx',
  url: 'https://www.okx.com',
  requests: { rates: { path: '/api/v5/public/funding-rate?instId=ANY' } },
  parse({ rates }, at) {
    if (isRow(rates) && rates['code'] !== '0')
      throw new PayloadError(`code ${textOf(rates['code'])}: ${textOf(rates['msg'])}`)
    const parsed = createParsed(at)
    for (const row of rowsOf(rates, 'data')) {
      const instrument = textOf(row['instId'])
      const [base = '', pricedIn = '', type] = instrument.split('-')
      if (type !== 'SWAP') continue
      const quote = pricedIn.replace(/_UM$/, '')
      const inverse = pricedIn === 'USD'
      const [next, after] = [secondsOf(row['fundingTime']), secondsOf(row['nextFundingTime'])]
      const hours = next === null || after === null ? null : Math.round(((after - next) / 3600) * 1000) / 1000
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
