import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { costPerSide, PRESETS } from './cost-presets.ts'

export const MODEL = 'audit/1'

/** Written by `npm run bench:products -- --write`. */
const measured = JSON.parse(
  readFileSync(new URL('measured.json', import.meta.url), 'utf8'),
) as Required<Method>['tables']

/** common.json#/$defs/Method */
export function methodology(): Method {
  return {
    model: MODEL,
    paragraphs: [
      'A ledger is read row by row in the layout its header shows; fills are matched first in, first out. Numbers and dates are read as those are written that leave no doubt: 95,10 is a decimal comma, 31/1/2024 has its day first. Where none does, points are decimal and months come first, and a warning says so of the dates. Rows that cannot be used (a missing value, an unreadable or future time, a price or quantity not above zero, an exit before its entry, a repeated row) are named and leave the statistics; trades still open are counted and left out.',
      'Each fill is held against the bar it falls in: the bars sent along, or our own. A price more than half a basis point outside the range, a day without a session, a day before the first or after the last bar, a quantity above the volume, a trade held over an unadjusted split: each is a finding with its row. Our own bars say nothing of listings, and made-up sample bars are never used against a ledger. What could not be checked is reported as not checked, with the reason.',
      'Over the ledger as a whole: where in their bars the buys and sales lie, whether entries at the open know the direction of the bar, and how many fills sit exactly on a high or low. An honest strategy knows none of these.',
      'Returns are sign times (exit / entry - 1) less twice the cost a side; fees the file reports replace the commission of the preset. All statistics are of net returns a trade, ordered by exit; where a file has trials, of the one with the highest Sharpe ratio, and the others say how much searching lies behind it.',
      'The verdict is reject where more than 0.5% of rows or fills are impossible or a flag is raised; not_profitable where nothing is left after costs; unproven where DSR is below 0.95, PBO above 0.5 or the record shorter than the minimum; else plausible. It is never good.',
    ],
    formulas: [
      {
        name: 'Sharpe ratio a year',
        formula: 'SR · √(trades a year), SR = mean / deviation (n-1) per trade',
        source: 'W. F. Sharpe, J. Portfolio Management 21 (1994)',
      },
      {
        name: 'With autocorrelation',
        formula: 'SR · q / √(q + 2 Σ (q-k) ρk), k < q, at most a quarter of the trades and 250 lags',
        source: 'A. W. Lo, Financial Analysts Journal 58 (2002)',
      },
      {
        name: 'Probabilistic Sharpe ratio',
        formula: 'Φ((SR - SR*) √(T-1) / √(1 - γ3 SR + (γ4-1)/4 SR²))',
        source: 'Bailey and López de Prado, J. Risk 15 (2012)',
      },
      {
        name: 'Deflated Sharpe ratio',
        formula: 'the same at SR0 = √V ((1-γ) Z(1-1/N) + γ Z(1-1/(N e)))',
        source: 'Bailey and López de Prado, J. Portfolio Management 40 (2014)',
      },
      {
        name: 'Minimum track record',
        formula: '1 + (1 - γ3 SR + (γ4-1)/4 SR²) (Z(0.95) / SR)² trades',
        source: 'Bailey and López de Prado, J. Risk 15 (2012)',
      },
      {
        name: 'Minimum backtest length',
        formula: '(E[max of N] / annual SR)² years, at most 2 ln N / SR²',
        source: 'Bailey, Borwein, López de Prado and Zhu, Notices of the AMS 61 (2014)',
      },
      {
        name: 'Haircut',
        formula: 'the SR whose p value is min(1, N p), p = 2 Φ(-SR √T)',
        source: 'Harvey and Liu, J. Portfolio Management 42 (2015)',
      },
      {
        name: 'Probability of overfitting',
        formula:
          'share of splits whose in-sample winner is at or below the median out of sample; 8 or 16 blocks of days',
        source: 'Bailey, Borwein, López de Prado and Zhu, J. Computational Finance 20 (2016)',
      },
      {
        name: 'Intervals',
        formula: 'stationary bootstrap, 2,000 draws, mean block n^(1/3), fixed seed',
        source: 'Politis and Romano, J. American Statistical Association 89 (1994)',
      },
    ],
    tables: [
      {
        caption: 'Cost presets, basis points a side',
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
      ...measured,
    ],
    limits: [
      'Mid, small and micro cap, currency and futures costs are assumptions: no quotes were at hand.',
      'A fill inside the range of its bar may still have been impossible: bars do not show the queue.',
      'A list of symbols that all survived cannot be told from one chosen with hindsight.',
      'Trades that overlap count one unit each; the audit does not know the size of the account.',
    ],
    sources: [
      'Novy-Marx and Velikov, Review of Financial Studies 29 (2016), for small caps',
      'Layouts: freqtrade, vectorbt, backtesting.py, QuantConnect LEAN and TradingView, as they export them',
    ],
  }
}

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
