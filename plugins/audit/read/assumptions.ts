import { quoted } from '../../lib/tables/column-names.ts'
import { isFills } from './ledger-header.ts'
import type { LedgerBuilder } from './ledger-rows.ts'

/** Notes what the file does not say and the reading took for granted. */
export function noteAssumptions(builder: LedgerBuilder): void {
  const { has, header, options, times, trades, feeSigns, assume } = builder
  const { layout, instrumentColumns } = header
  const saysSide = has('side') || has('short') || has('long') || has('exitSide') || has('buyTime')
  if (!saysSide && !isFills(layout) && layout !== 'tradingview' && trades.every(({ sign }) => sign === 1))
    assume('all_long', 'No column says long or short, so every trade is read as long.', 'columns')
  if (instrumentColumns.length === 0 && options.symbol === undefined)
    assume('one_instrument', 'No column names the instrument, so all rows are read as one.', 'symbol')
  if (!times.hasZone() && !times.isDaily())
    assume('time_zone', 'The times name no zone and are read as UTC.', 'timezone')
  const { repeated, skipped } = times.odd
  if (repeated + skipped > 0)
    assume('time_zone', `${oddTimes(repeated, skipped)} on the clocks of ${options.stated.timezone}.`, null)
  const order = times.assumedOrder()
  if (order !== null) assume('date_order', `Dates such as 1/2/2024 are read with the ${order} first.`, null)
  if (feeSigns.isMixed && !header.paidSign) {
    const sign = feeSigns.paid() === 1 ? 'positive' : 'negative'
    const columns = feeSigns.names.slice(0, 6).map(quoted).join(', ')
    const text = `${columns} has ${feeSigns.summary}; the ${sign} ones are read as paid and the others as rebates.`
    assume('fee_signs', text, 'columns')
  }
}

function oddTimes(repeated: number, skipped: number): string {
  const parts = [
    ...(repeated > 0
      ? [`${repeated} times are in the hour that comes twice, and are read as the first if possible`]
      : []),
    ...(skipped > 0 ? [`${skipped} times are in the hour that is skipped, and are read an hour later`] : []),
  ]
  return parts.join('; ')
}
