import type { Audit } from './audit.ts'

const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })
const SHARE = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 2 })
const UNCHECKED = 'No fill could be held against bars, so whether they could have happened is not known.'

/** The verdict in two sentences, for those who read no further. */
export function summaryOf({ verdict, ledger, fills, performance, overfitting }: Audit): string {
  const trades = `${COUNT.format(performance.trades)} trades`
  const net = `${COUNT.format(performance.net_expectancy_bps)} bps a trade after costs`
  const dsr = overfitting.dsr === null ? null : certainty(overfitting.dsr)
  switch (verdict) {
    case 'reject':
      return `${rejection(ledger, fills)} What ${trades} seem to have earned, ${net}, cannot be relied on.`
    case 'not_profitable':
      return `The ${trades} lose: ${net}. They break even at ${COUNT.format(performance.breakeven_cost_per_side_bps)} bps a side.`
    case 'unproven':
      return dsr === null
        ? `The ${trades} make ${net}, but they are too few, or too much alike, to tell from luck.`
        : `The ${trades} make ${net}, but luck explains too much: a deflated Sharpe ratio of ${dsr} with ${overfitting.n_trials} trials.`
    case 'plausible':
      return `The ${trades} make ${net}, with a deflated Sharpe ratio of ${dsr ?? ''} at ${overfitting.n_trials} trials. ${fills.checked === 0 ? UNCHECKED : 'Nothing found speaks against it; that is not a promise.'}`
  }
}

/** A probability that is rounded to certainty is told as a bound. */
const certainty = (share: number): string => (share > 0.9999 ? 'over 99.99%' : SHARE.format(share))

function rejection(ledger: Audit['ledger'], fills: Audit['fills']): string {
  const flag = fills.flags.find(({ severity }) => severity === 'error')
  if (fills.share > 0.005)
    return `${COUNT.format(fills.impossible)} of ${COUNT.format(fills.fills)} fills could not have happened (${SHARE.format(fills.share)} of those checked).`
  if (fills.structural_share > 0.005)
    return `${COUNT.format(ledger.excluded)} of ${COUNT.format(ledger.rows)} rows cannot be used.`
  return flag?.explanation ?? 'Trades were held over splits at prices that were not adjusted.'
}
