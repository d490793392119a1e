/** The text of the methodology page about bar quality. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { RATIOS } from './unadjusted-splits.ts'
import { MODEL } from './quality-report.ts'

/** `npm run lab -- products --write` writes this file. */
const measured = JSON.parse(readFileSync(new URL('quality-measurements.json', import.meta.url), 'utf8')) as Pick<
  Required<Method>,
  'claims' | 'tables'
>

const paragraphs = [
  'Columns are recognised by their names, otherwise by their values. Times without a zone are read in the stated one; an hour that a clock shows twice is told apart by the order of the rows.',
  'The report checks the bars against logic (impossible values), against their own timestamps, and against neighbouring bars. It uses no other data, so it works for any instrument, and you can recompute every number from the bars.',
  'The report first sets impossible rows aside. It then puts the rows in order of time (files with the newest row first are accepted), reverses splits, and removes bars that are off by a power of ten. The remaining bars give the usual size of a move near each bar, s. Wicks and closes are measured in multiples of it.',
  'The score of a lone wick is the smaller of two lengths: beyond the body, and beyond both neighbours. The score of a lone close is its distance beyond the surrounding closes and opens. Both are divided by s and by the square root of relative volume (at least 1, at most 6), because genuine extremes come with volume. A price off the tick grid of the series did not trade, so its volume does not lower the score. In thin markets most bars are flat, so s uses only bars that moved, measured from the previous close. For bars of a day or more the threshold is fixed; it was measured on genuine misprints of the US tape. For shorter bars it is 1.25 times the highest score expected in a clean file of the same length, estimated from the tail of the file and kept between 2 and 8. For US equities with bars in extended hours, those have thresholds and a grade of their own. The scale is at least one step of the price, and nothing within two steps is a bad print, because any trade may be a step away.',
  'The report considers a split at every gap above 17% and of more than five steps of the price between a close and the next open, if the gap persists and does not follow a stale run. It computes a likelihood ratio: how close the gap is to a ratio that companies announce, compared with the tail of real jumps. It adds the evidence of the range of the bar, of turnover (which stays the same after a split and rises in a crash), and of a lasting change in share volume. A gap overnight between shorter bars is treated as a gap between daily bars. Within trading hours a persistent jump is assumed to be a hundred times rarer. The report states the odds of every split.',
  'Repaired bars differ from those sent only where an error was found. Every change is listed, the result is checked again, and what is still found is listed.',
  'A gap is a hole inside a session. Breaks that begin and end at recurring hours count as nights, weekends or pauses. For US equities the report knows the holidays and early closes of the NYSE. In a thin market, where bars are often missing, the report lists only holes that are too long to be chance at the rate of the surrounding bars, and counts the rest. Bars without a common interval, such as bars of a fixed number of trades, are checked without grid and gaps.',
]

const formulas = [
  {
    name: 'Local scale',
    formula:
      's = max(median m of 10 neighbours, median m of those of 101 bars with m > 0.0003, 0.0003, ln(1 + step/L)); m = ln(max(H,C₋₁)/min(L,C₋₁)); for bars of a day or more m = ln(H/L) if above 0',
  },
  {
    name: 'Wick',
    formula:
      'min(ln(H/max(O,C)), ln(H/max(H₋₁,H₊₁))) / (s √a), a = volume / median of 51, 1 ≤ √a ≤ 6, √a = 1 off the tick grid; the same for lows',
  },
  { name: 'Lone close', formula: 'ln(C/max(C₋₁,C₊₁,O₊₁,O)) / (max(s, 1.5 median |r|) √a); the same below' },
  {
    name: 'Carried close',
    formula: 'min(|r|,|r₊₁|) / (max(s, 1.5 median |r|) √a), r and r₊₁ opposite, |r+r₊₁| < 0.4 of the smaller',
  },
  {
    name: 'Tail',
    formula: 'expected(x) = 0.02 n exp((q₉₈ - x)/β), β = (q₉₈ - q₉₀)/ln 5; confidence = 1/(1 + min(1, expected(x)))',
  },
  {
    name: 'Gap in a thin market',
    formula:
      'n (m/(m + 200))^L < 0.05, for a hole of L bars in n bars, with m - 1 other bars missing among the surrounding 200',
  },
  { name: 'Stale run', formula: 'shortest L with m p^(L-1) < 0.001, m and p from the runs shorter than 8; at least 5' },
  {
    name: 'Split',
    formula:
      'ln[ρ π t₃(g + ln f; σ) / (λ/2 (0.97 e^(-x/0.15)/0.15 + 0.03 e^(-x/0.8)/0.8) + t₃(g; σ))] + range + turnover + share volume; x = |g| - ln 1.17, ρ = 0.0004 and λ = 0.00024 per day, π popularity of the ratio f, σ usual size of the gaps nearby; within trading hours t₁₀ replaces the second t₃ and λ/100 replaces λ',
  },
  {
    name: 'Volume',
    formula:
      '(ln v - median)/(1.4826 median |·|) > 5, v > 30 medians, v > 8 times six neighbours, R < 4 s; or v > 25 times twenty neighbours, R < 6 s',
  },
  {
    name: 'Split ratios, with their popularity π',
    formula: RATIOS.filter(({ popularity }) => popularity >= 0.001)
      .map(({ name, popularity }) => `${name} ${popularity}`)
      .join(', '),
  },
  { name: 'Score', formula: '1 - min(1, 100 (errors + 0.3 warnings)/bars)' },
]

/** common.json#/$defs/Method */
export function methodology(): Method {
  return {
    model: MODEL,
    paragraphs,
    formulas,
    // Figures without a limit, and those of a small sample, are in the file only.
    claims: measured.claims,
    tables: measured.tables.map(({ rows, ...table }) => ({
      ...table,
      rows: rows.filter(([name, , limit]) => limit !== '' && !String(name).startsWith('corrupted sample')),
    })),
    limits: [
      'The report misses misprints that are smaller than the local movement or that come with high volume, because they look like real trading.',
      'The report misses splits below 6:5, and splits on a day when the price moved as much as the ratio.',
      'The report knows only the holidays of the NYSE. In other markets it accepts up to four missing weekdays as a holiday.',
      'possible_dividend is a guess from the shape of one gap, not a record of a payment.',
    ],
    sources: [
      'Barndorff-Nielsen, Hansen, Lunde and Shephard, Realized kernels in practice, Econometrics J. 12 (2009)',
      'Brownlees and Gallo, Financial econometric analysis at ultra-high frequency, Computational Statistics & Data Analysis 51 (2006)',
      'NYSE Rule 7.2, holidays',
    ],
  }
}
