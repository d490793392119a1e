import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { costPerSide, PRESETS } from './cost-presets.ts'

export const MODEL = 'audit/1'

/** `npm run bench:products -- --write` writes this file. */
const measured = JSON.parse(
  readFileSync(new URL('audit-measurements.json', import.meta.url), 'utf8'),
) as Required<Method>['tables']

/** common.json#/$defs/Method */
export function methodology(): Method {
  return {
    model: MODEL,
    paragraphs: [
      'The audit recognises the layout of a ledger by its header and reads it row by row. It matches fills first in, first out. Unambiguous values decide how the others are read: 95,10 shows a decimal comma, and 31/1/2024 shows that the day comes first. If no value decides, the audit reads points as decimal and months first, and warns about the dates. It lists unusable rows and leaves them out of the statistics: a missing value, an unreadable or future time, a price or quantity that is not positive, an exit before its entry, a repeated row. It counts open trades and leaves them out too.',
      'The audit compares each fill with the bar of its time, from the bars in the request or from our own. Each of these is a finding with its row: a price more than half a basis point outside the range, a day without a session, a day before the first or after the last bar, a quantity above the volume, and a trade held over an unadjusted split. Our own bars do not show when a symbol was listed. Online they are the median of several venues, at none of which the fill need have been made: a price may be 1% outside, and volume, tick and the places of fills within their bars are not checked. Made-up sample bars are never compared with a ledger. If something cannot be checked, the report says so and gives the reason.',
      'Three checks look at the ledger as a whole: where buys and sells lie within their bars, whether entries at the open predict the direction of the bar, and how many fills are exactly at a high or low. An honest strategy cannot know any of these in advance.',
      'The return of a trade is its sign times (exit / entry - 1), minus twice the cost per side. Fees in the file replace the commission of the preset. All statistics use net returns per trade in the order of the exits. If the file has several trials, the audit judges the one with the highest Sharpe ratio and uses the others to measure how much searching led to it.',
      'The verdict is reject if more than 0.5% of rows or fills are impossible, or if a flag is raised. It is not_profitable if costs use up the profit, and unproven if the DSR is below 0.95, the PBO is above 0.5, or the record is shorter than the minimum. Otherwise it is plausible. No verdict says that a strategy is good.',
    ],
    formulas: [
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
      ...measured,
    ],
    limits: [
      'The costs of mid, small and micro caps, currencies and futures are assumptions, because we had no quotes to measure them.',
      'A fill inside the range of its bar may still have been impossible, because bars do not show the queue of orders.',
      'If every symbol of a ledger still trades, the audit cannot know whether the list was chosen with hindsight.',
      'Overlapping trades count as one unit each, because the audit does not know the size of the account.',
    ],
    sources: [
      'Novy-Marx and Velikov, Review of Financial Studies 29 (2016), for small caps',
      'Layouts: the exports of freqtrade, vectorbt, backtesting.py, QuantConnect LEAN and TradingView',
    ],
  }
}

/**
 * How each figure of a report follows from other figures, by field name. Phi is the standard normal distribution function
 * and Z its inverse.
 */
export const FORMULAS = {
  gross_return: 'sign * (exit_price / entry_price - 1), per trade',
  net_return:
    'gross_return - 2 * (cost_per_side_bps + extra_bps) / 1e4; if the file reports fees, - fees / (qty * entry_price) replaces commission_bps',
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
