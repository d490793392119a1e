/** The codes of a report in words. */

/** What each reason and warning means; those with figures in them are shown as they are. */
export const REASON_MESSAGES: Readonly<Record<string, string>> = {
  'structural_share_above_0.005': 'More than 0.5% of the rows cannot be used.',
  'impossible_share_above_0.005': 'More than 0.5% of the fills could not have happened.',
  'unadjusted_split_share_above_0.005': 'More than 0.5% of the trades were held over a split at unadjusted prices.',
  lookahead_extremes: 'Fills lie at the extremes of their bars, as only hindsight could place them.',
  lookahead_same_bar: 'Entries at the open know the direction of the bar.',
  touch_fill: 'Too many fills lie exactly on a high or low.',
  net_expectancy_not_positive: 'Nothing is left after costs.',
  too_few_trades_for_statistics: 'Too few trades, or all alike: no statistics.',
  'dsr_below_0.95': 'The deflated Sharpe ratio is below 95%.',
  'pbo_above_0.5': 'The best trial is more likely than not overfitted.',
  fewer_trades_than_min_trl: 'The record is shorter than the minimum for this Sharpe ratio.',
  times_without_zone_read_as_utc: 'The times name no zone and were read as UTC.',
  fees_all_zero: 'Every reported fee is zero; the commission of the preset was charged instead.',
}

/** What was looked at, by check. */
export const CHECK_DESCRIPTIONS: Readonly<Record<string, string>> = {
  outside_range: 'the price lies between the low and the high of its bar',
  session: 'the market was open',
  listing: 'the symbol was traded at the time',
  volume: 'the size is a possible part of the volume',
  tick: 'the price is one that the market quotes',
  split: 'no trade was held over a split at unadjusted prices',
  pnl: 'the stated profit follows from the prices',
  lookahead: 'the fills do not know what came after them',
}

/** What to say for a code that the form came back with. */
const PROBLEMS: Readonly<Record<string, string>> = {
  validation_failed:
    'The file could not be read as a ledger, or a number was out of range. Its first row has to name the columns as listed below, every price has to be a number and every time a date. With scripts on, this page names the row.',
  body_too_large: 'The file is larger than 40 MB, or has more than 200,000 rows.',
  media_unsupported: 'The form has to be sent with a file.',
  rate_limited: 'Too many audits at once. Please wait a minute.',
  product_timeout: 'The audit took too long and was given up.',
  not_found: 'There is no such report.',
}

/** The sentence for a code; null for none. Codes are shown only where they are codes. */
export function problemMessage(code: string): string | null {
  if (code === '') return null
  return PROBLEMS[code] ?? 'That did not work. Please try again in a minute.'
}
