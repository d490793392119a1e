/** The limits that decide the verdict of an audit. The code, the pages and the methodology take them from here. */

/** A ledger with a larger share of unusable rows, impossible fills or unadjusted splits is rejected. */
export const MAX_DEFECT_SHARE = 0.005
export const MIN_DSR = 0.95
export const MAX_PBO = 0.5
export const MAX_P = 0.05
/** The record of so few independent bets, or fewer, proves nothing. */
export const MAX_FEW_BETS = 10
/** At least this share of fills must have been compared with bars. */
export const MIN_CHECKED = 0.5
/** No strategy that holds positions overnight has kept a larger Sharpe ratio for years. */
export const MAX_SHARPE = 10
/** One-sided 95 % point of the normal distribution. */
export const MIN_ALPHA_T = 1.645
