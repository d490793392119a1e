/** How figures of a report follow from its others, in their own names; Phi is the normal distribution, Z its inverse. */
export const FORMULAS = {
  gross_return: 'sign * (exit_price / entry_price - 1), per trade',
  net_return:
    'gross_return - 2 * (cost_per_side_bps + extra_bps) / 1e4; where the file reports fees, - fees / (qty * entry_price) in place of commission_bps',
  breakeven_cost_per_side_bps: 'gross_expectancy_bps / 2',
  sharpe_per_trade: 'mean(net_return) / deviation(net_return), with n - 1',
  t_stat: 'sharpe_per_trade * sqrt(trades)',
  trades_per_year: 'trades / years from the first entry to the last exit, of 365.25 days',
  sharpe: 'sharpe_per_trade * sqrt(trades_per_year)',
  sharpe_se: 'sqrt((1 + sharpe_per_trade^2 / 2) / trades) * sqrt(trades_per_year)',
  sharpe_lo:
    'sharpe_per_trade * q / sqrt(q + 2 * sum((q - k) * autocorrelation(k), k < q)), q = trades_per_year, k at most min(trades / 4, 250)',
  psr: 'Phi(sharpe_per_trade * sqrt(trades - 1) / sqrt(1 - skewness * sharpe_per_trade + (kurtosis - 1) / 4 * sharpe_per_trade^2))',
  sr0_per_trade:
    'sqrt(sr_variance) * ((1 - g) * Z(1 - 1 / n_trials) + g * Z(1 - 1 / (n_trials * e))), g = 0.5772156649',
  sr0: 'sr0_per_trade * sqrt(trades_per_year)',
  dsr: 'psr with sharpe_per_trade - sr0_per_trade in place of the first sharpe_per_trade',
  min_trl_trades:
    '1 + (1 - skewness * sharpe_per_trade + (kurtosis - 1) / 4 * sharpe_per_trade^2) * (Z(0.95) / sharpe_per_trade)^2',
  min_btl_years: '(sr0_per_trade / sqrt(sr_variance) / sharpe)^2, at most 2 * ln(n_trials) / sharpe^2',
  p_value: '2 * Phi(-abs(t_stat))',
  haircut_sharpe:
    'Z(1 - min(1, n_trials * p_value) / 2) / sqrt(trades) * sqrt(trades_per_year), with the sign of sharpe',
  intervals: 'stationary bootstrap of net_return, 2,000 draws, mean block trades^(1/3), fixed seed',
} as const
