import { symbolOf } from '../contract-names.ts'
import { decimalOf, priceOf } from '../payload-numbers.ts'
import { createParsed, rowsOf, textOf, type Venue } from './funding-venue.ts'

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
        observed: at,
      })
    }
    return parsed
  },
}
