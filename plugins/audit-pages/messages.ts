/** Texts for the codes of a report and for the errors of the form. */

/** Explains reasons and warnings. Codes that contain figures are not listed; the page shows them as they are. */
export const REASON_MESSAGES: Readonly<Record<string, string>> = {
  'structural_share_above_0.005': 'More than 0.5% of the rows cannot be used.',
  'impossible_share_above_0.005': 'More than 0.5% of the fills could not have happened.',
  'unadjusted_split_share_above_0.005': 'More than 0.5% of the trades were held across a split at unadjusted prices.',
  lookahead_extremes: 'Fills lie at the extremes of their bars, which is possible only with hindsight.',
  lookahead_same_bar: 'Entries at the open match the direction of the bar, which is possible only with hindsight.',
  touch_fill: 'Too many fills lie exactly on a high or low.',
  net_expectancy_not_positive: 'The trades make no profit after costs.',
  too_few_trades_for_statistics: 'The trades are too few or too similar for statistics.',
  'dsr_below_0.95': 'The deflated Sharpe ratio is below 95%.',
  'pbo_above_0.5': 'The best trial is probably overfitted.',
  fewer_trades_than_min_trl: 'The record is shorter than the minimum for this Sharpe ratio.',
  times_without_zone_read_as_utc: 'The times name no zone and were read as UTC.',
  fees_all_zero: 'All reported fees are zero, so the commission of the preset was charged instead.',
}

/** What each check verifies. */
export const CHECK_DESCRIPTIONS: Readonly<Record<string, string>> = {
  outside_range: 'the price lies between the low and the high of its bar',
  session: 'the market was open',
  listing: 'the symbol was traded at the time',
  volume: 'the size fits the volume of its bar',
  tick: 'the price is a multiple of the tick size',
  split: 'no trade was held across a split at unadjusted prices',
  pnl: 'the stated profit follows from the prices',
  lookahead: 'the fills do not use later prices',
}

/** Texts for error codes with which the form comes back. */
const PROBLEMS: Readonly<Record<string, string>> = {
  validation_failed:
    'The file could not be read as a ledger, or a field was out of range. Every price must be a number and every time a date. Under “My file is read wrong” you can say what the columns are. If you enable scripts, this page names the row or column.',
  body_too_large: 'The file is larger than 40 MB, or has more than 200,000 rows.',
  media_unsupported: 'Choose a file before you send the form.',
  rate_limited: 'There are too many audits at the moment. Please wait a minute.',
  product_suspended:
    'There are too many free audits at the moment, or too many of their reports are kept. Please try again later, or delete a report that you no longer need.',
  product_timeout: 'The audit took too long and was stopped.',
  not_found: 'This report does not exist.',
}

/** The text for an error code; null without a code. Unknown codes get a general text and are not shown. */
export function problemMessage(code: string): string | null {
  if (code === '') return null
  const message = Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code] : undefined
  return message ?? 'Something went wrong. Please try again in a minute.'
}
