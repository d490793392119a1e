import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { costPerSide, PRESETS } from './cost-presets.ts'
import {
  MAX_DEFECT_SHARE,
  MAX_FEW_BETS,
  MAX_P,
  MAX_PBO,
  MAX_SHARPE,
  MIN_ALPHA_T,
  MIN_CHECKED,
  MIN_DSR,
} from './limits.ts'

export const MODEL = 'audit/2'

/** `npm run lab -- products --write` writes this file. */
const measured = JSON.parse(readFileSync(new URL('audit-measurements.json', import.meta.url), 'utf8')) as Pick<
  Required<Method>,
  'claims' | 'tables'
>

const formulas: Required<Method>['formulas'] = [
  {
    name: 'Annual Sharpe ratio',
    formula: 'SR · √(trades per year), SR = mean / deviation (n-1) per trade',
    source: 'W. F. Sharpe, J. Portfolio Management 21 (1994)',
  },
  {
    name: 'With autocorrelation',
    formula: 'SR · q / √(q + 2 Σ (q-k) ρk), k < q, k at most 250 and a quarter of the trades',
    source: 'A. W. Lo, Financial Analysts Journal 58 (2002)',
  },
  {
    name: 'Probabilistic Sharpe ratio',
    formula: 'Φ((SR - SR*) √(T-1) / √(1 - γ3 SR + (γ4-1)/4 SR²))',
    source: 'Bailey and López de Prado, J. Risk 15 (2012)',
  },
  {
    name: 'Below 30 bets',
    formula: 'the smaller of the probabilistic Sharpe ratio and F(SR √T; n-1, SR* √T), the noncentral t distribution',
    source: 'Student, Biometrika 6 (1908)',
  },
  {
    name: 'Deflated Sharpe ratio',
    formula: 'the probabilistic Sharpe ratio with SR* = √V ((1-γ) Z(1-1/N) + γ Z(1-1/(N e)))',
    source: 'Bailey and López de Prado, J. Portfolio Management 40 (2014)',
  },
  {
    name: 'Minimum track record',
    formula: '1 + (1 - γ3 SR + (γ4-1)/4 SR²) (Z(0.95) / SR)² trades',
    source: 'Bailey and López de Prado, J. Risk 15 (2012)',
  },
  {
    name: 'Minimum backtest length',
    formula: '(E[maximum of N] / annual SR)² years, at most 2 ln N / SR²',
    source: 'Bailey, Borwein, López de Prado and Zhu, Notices of the AMS 61 (2014)',
  },
  {
    name: 'Haircut',
    formula: 'the SR with p value min(1, N p), p = 2 Φ(-SR √T)',
    source: 'Harvey and Liu, J. Portfolio Management 42 (2015)',
  },
  {
    name: 'Probability of overfitting',
    formula: 'share of splits whose in-sample winner is at or below the median out of sample; 8 or 16 blocks of days',
    source: 'Bailey, Borwein, López de Prado and Zhu, J. Computational Finance 20 (2016)',
  },
  {
    name: 'Superior predictive ability',
    formula:
      'P(max √T (m* - g) / ω > max √T m / ω), g = m if m ≥ -ω √(2 ln ln T / T), else 0; reality check: ω = 1, g = m',
    source: 'P. R. Hansen, J. Business and Economic Statistics 23 (2005); H. White, Econometrica 68 (2000)',
  },
  {
    name: 'Alpha and beta',
    formula: 'least squares of the daily returns on those of the benchmark; errors with 4 (T/100)^(2/9) lags',
    source: 'Newey and West, Econometrica 55 (1987)',
  },
  {
    name: 'Independent bets',
    formula: 'n Σ r² of trades / Σ r² of days, at most n',
    source: 'L. Kish, Survey Sampling (1965)',
  },
  {
    name: 'Intervals',
    formula: 'stationary bootstrap, 2,000 draws, mean block n^(1/3), fixed seed',
    source: 'Politis and Romano, J. American Statistical Association 89 (1994)',
  },
]

/** common.json#/$defs/Method */
export function methodology(): Method {
  return {
    model: MODEL,
    paragraphs: [
      'The audit recognises columns by their names and by what they hold, and names each as used or not. It joins fills into round trips: a trip begins when a position in a symbol is opened and ends when it is flat again. What is left, less than a lot or 1% of the largest size, is a remainder. Fees in the traded coin leave the position; others are converted at a price of the file, or named as unknown. Stated profits show contract sizes and hidden commissions. Unambiguous values decide how the others are read: 95,10 shows a decimal comma, and 31/1/2024 shows that the day comes first. Unusable rows are listed and left out. Open positions are valued apart.',
      'The audit compares each fill with the bar of its time, from the request or our own. Findings are: a price more than half a basis point outside the range, a day without a session, a day before the first or after the last bar, a quantity above the volume, and a trade held over an unadjusted split. Our own bars do not show when a symbol was listed. Online they are the median of several venues: a price may be 1% outside, and volume, tick and the places of fills within their bars are not checked. Made-up sample bars are never compared with a ledger. What is not checked is named.',
      'Three checks look at the ledger as a whole: where buys and sells lie within their bars, whether entries at the open predict the direction of the bar, and how many fills are exactly at a high or low.',
      'The return of a trade is its sign times (exit / entry - 1), minus twice the cost per side. Fees in the file replace the commission of the preset. Of several trials, the audit judges the one with the highest Sharpe ratio and uses the others to measure how much searching led to it.',
      'Trades that overlap are not independent, so the audit also follows the judged trial from day to day. Every position is valued at the close of its bar, otherwise at the last fill of the symbol on that day. One unit per trade gives the return of a day; of a position built in steps, the unit is the largest value held until then, so that those who buy more while they lose do not seem to win. Days without a position count as 0. If more than a tenth of the days with a position have no price, blocks of at least twice the longest trade take their place.',
      'Fewer than 30 bets are judged by Student’s t. The daily returns are compared with holding the traded symbols in equal parts and with the benchmark of the request: what a regression leaves is alpha. Trials in one file are tested together, by Hansen’s and White’s tests.',
      `The verdict is reject if more than ${MAX_DEFECT_SHARE * 100}% of rows or fills are impossible, or if a flag is raised. It is not_profitable if the mean trade or the sum of money is not above zero after costs. It is unproven for ${MAX_FEW_BETS} independent bets or fewer, an interval that holds zero, a DSR below ${MIN_DSR}, a PBO above ${MAX_PBO}, a record below the minimum, trades and money of different sign, fewer than ${MIN_CHECKED * 100}% of the fills compared with bars, days without prices, no trade that lost, a yearly Sharpe ratio above ${MAX_SHARPE}, open positions that could turn the profit, a t statistic of alpha below ${MIN_ALPHA_T}, or a p value of Hansen’s test above ${MAX_P}. Otherwise it is plausible. No verdict says that a strategy is good.`,
    ],
    formulas,
    claims: measured.claims,
    tables: [
      {
        caption: 'Cost presets, basis points per side',
        columns: ['preset', 'half spread', 'slippage', 'commission', 'total', 'basis'],
        rows: Object.entries(PRESETS).map(([name, preset]) => [
          name,
          preset.halfSpread,
          preset.slippage,
          preset.commission,
          costPerSide(preset),
          preset.basis,
        ]),
      },
      ...measured.tables,
    ],
    limits: [
      'The costs of mid, small and micro caps, currencies and futures are assumptions, because we had no quotes to measure them.',
      'A fill inside the range of its bar may still have been impossible, because bars do not show the queue of orders.',
      'If every symbol of a ledger still trades, the audit cannot know whether the list was chosen with hindsight.',
      'A ledger without its worst trades looks like a better strategy. Only one without any loser is recognised.',
    ],
    sources: ['Novy-Marx and Velikov, Review of Financial Studies 29 (2016), for small caps'],
  }
}

/**
 * How each figure of a report follows from other figures, by field name. Phi is the standard normal distribution function
 * and Z its inverse; F(t, d, s) is the distribution function of the noncentral t with d degrees of freedom and shift s.
 */
export const FORMULAS = {
  gross_return: 'sign * (exit_price / entry_price - 1), per trade',
  net_return:
    'gross_return - 2 * (cost_per_side_bps + extra_bps) / 1e4; if the file reports fees, - fees / (qty * entry_price * contract_size) replaces commission_bps',
  breakeven_cost_per_side_bps: 'gross_expectancy_bps / 2',
  sharpe_per_trade: 'mean(net_return) / deviation(net_return), with n - 1',
  t_stat: 'sharpe_per_trade * sqrt(trades)',
  trades_per_year: 'trades / years from the first entry to the last exit, of 365.25 days',
  sharpe: 'sharpe_per_trade * sqrt(trades_per_year)',
  sharpe_se: 'sqrt((1 + sharpe_per_trade^2 / 2) / trades) * sqrt(trades_per_year)',
  sharpe_lo:
    'sharpe_per_trade * q / sqrt(q + 2 * sum((q - k) * autocorrelation(k), k < q)), q = trades_per_year, k at most min(trades / 4, 250)',
  psr: 'Phi(sharpe_per_trade * sqrt(trades - 1) / sqrt(1 - skewness * sharpe_per_trade + (kurtosis - 1) / 4 * sharpe_per_trade^2)); below 30 trades at most F(t_stat, trades - 1, 0)',
  sr0_per_trade:
    'sqrt(sr_variance) * ((1 - g) * Z(1 - 1 / n_trials) + g * Z(1 - 1 / (n_trials * e))), g = 0.5772156649',
  sr0: 'sr0_per_trade * sqrt(trades_per_year)',
  dsr: 'psr with sharpe_per_trade - sr0_per_trade in place of the first sharpe_per_trade; below 30 trades at most F(t_stat, trades - 1, sr0_per_trade * sqrt(trades))',
  min_trl_trades:
    '1 + (1 - skewness * sharpe_per_trade + (kurtosis - 1) / 4 * sharpe_per_trade^2) * (Z(0.95) / sharpe_per_trade)^2',
  min_btl_years: '(sr0_per_trade / sqrt(sr_variance) / sharpe)^2, at most 2 * ln(n_trials) / sharpe^2',
  p_value: '2 * Phi(-abs(t_stat)); below 30 trades 2 * (1 - F(abs(t_stat), trades - 1, 0))',
  haircut_sharpe:
    'Z(1 - min(1, n_trials * p_value) / 2) / sqrt(trades) * sqrt(trades_per_year), with the sign of sharpe',
  intervals: 'stationary bootstrap of net_return, 2,000 draws, mean block trades^(1/3), fixed seed',
  'days.effective_bets':
    'trades * sum(net_return^2) / sum(r^2), at least 1 and at most trades, r = net return of a day; for a trade with several entries its sum of r',
  'days.t_stat': 'mean(r) / deviation(r) * sqrt(days), with n - 1',
  'days.p_value': '2 * (1 - F(abs(t_stat), d, 0)), d = days - 1, below 30 effective_bets effective_bets - 1',
  'days.sharpe': 'mean(r) / deviation(r) * sqrt(days per year)',
  'days.dsr':
    'as dsr, with r; below 30 effective_bets at most F(t_stat, effective_bets - 1, sr0 of a day * sqrt(days))',
  'days.alpha_bps': 'mean(r) - beta * mean(b), b = return of the benchmark on the day',
  'days.beta': 'covariance(r, b) / variance(b)',
} as const
