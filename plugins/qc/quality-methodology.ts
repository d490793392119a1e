/** How the report is made, for the methodology page. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { RATIOS } from './unadjusted-splits.ts'
import { MODEL } from './quality-report.ts'

/** Written by `npm run bench:products -- --write`. */
const measured = JSON.parse(
  readFileSync(new URL('measured.json', import.meta.url), 'utf8'),
) as Required<Method>['tables']

const paragraphs = [
  'The report judges bars by themselves: by what cannot be, by their own clock, and by their own neighbours. No other data is used, so it works on any instrument, and every number in it can be redone from the bars.',
  'Rows that cannot be are set aside first, then time is put in order (rows sent from newest to oldest are read so), splits are undone and bars displaced by a power of ten removed; what remains gives the local scale s that wicks and closes are measured in.',
  'A lone wick is scored by the smaller of its length beyond the body and its length beyond both neighbours, a lone close by its distance beyond the closes and opens around it. Both are divided by s and by the square root of relative volume (at least 1, at most 6), because real extremes trade; a price off the series’ own grid did not, and no volume excuses it. In thin markets most bars are flat, so s is taken from the bars that moved, counted from the close before. On bars of a day or more the threshold is fixed, as measured on genuine misprints of the US tape; on shorter bars it is 1.25 times the score that one bar of a clean file of this length is expected to reach, read from the file’s own tail and kept between 2 and 8.',
  'A split is a likelihood ratio for each gap between a close and the next open above 17% that lasts and follows no stale run: how close the gap is to a ratio that companies announce, against the tail of real jumps; then the range of the bar, its turnover, which a split leaves alone and a crash multiplies, and the lasting change of share volume. A night between shorter bars is judged as of daily ones; within trading a jump that lasts is taken for a hundred times rarer. The odds are published with each split.',
  'A gap is a hole inside a session. Breaks that begin and end at hours where breaks recur are nights, weekends or pauses; for US equities the holidays and early closes of the NYSE are known by rule. In a thin market, where bars are missing all the time, only holes longer than chance at the rate of the bars around them are reported and the rest are counted. Bars that keep no common step, as bars of a number of trades do, are judged without grid and gaps.',
]

const formulas = [
  {
    name: 'Local scale',
    formula:
      's = max(median m of 10 neighbours, median m of those of 101 bars with m > 0.0003, 0.0003); m = ln(max(H,C₋₁)/min(L,C₋₁)), on bars of a day or more ln(H/L) where above 0',
  },
  {
    name: 'Wick',
    formula:
      'min(ln(H/max(O,C)), ln(H/max(H₋₁,H₊₁))) / (s √a), a = volume / median of 51, 1 ≤ √a ≤ 6, 1 off the grid; lows alike',
  },
  { name: 'Lone close', formula: 'ln(C/max(C₋₁,C₊₁,O₊₁,O)) / (max(s, 1.5 median |r|) √a); below alike' },
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
      'n (m/(m + 200))^L < 0.05: of n bars, after a hole of L, where m - 1 others are missing beside the 200 bars around',
  },
  { name: 'Stale run', formula: 'shortest L with m p^(L-1) < 0.001, m and p from the runs shorter than 8; at least 5' },
  {
    name: 'Split',
    formula:
      'ln[ρ π t₃(g + ln f; σ) / (λ/2 (0.97 e^(-x/0.15)/0.15 + 0.03 e^(-x/0.8)/0.8) + t₃(g; σ))] + range + turnover + share volume; x = |g| - ln 1.17, ρ = 0.0004 and λ = 0.00024 a day, π popularity of the ratio f, σ local scale of gaps; within trading t₁₀ for the second t₃ and λ/100',
  },
  {
    name: 'Volume',
    formula:
      '(ln v - median)/(1.4826 median |·|) > 5, v > 30 medians, v > 8 times six neighbours, R < 4 s; or v > 25 times twenty neighbours, R < 6 s',
  },
  { name: 'Score', formula: '1 - min(1, 100 (errors + 0.3 warnings)/bars)' },
]

/** common.json#/$defs/Method */
export function methodology(): Method {
  const rows = RATIOS.filter(({ popularity }) => popularity >= 0.001).map(({ name, factor, popularity }) => [
    name,
    Number(factor.toPrecision(4)),
    popularity,
  ])
  const ratios = { caption: 'Ratios looked for and their popularity π', columns: ['ratio', 'f', 'π'], rows }
  return {
    model: MODEL,
    paragraphs,
    formulas,
    tables: [...measured, ratios],
    limits: [
      'A misprint smaller than the local movement, or one that traded heavily, looks like the market and is not reported.',
      'Splits below 6:5, and those on a day when the price moved as much as the ratio, are missed.',
      'Holidays are known for the NYSE only; elsewhere up to four missing weekdays pass for a holiday.',
      'possible_dividend is a hint from the shape of one gap, not a record of a payment.',
    ],
    sources: [
      'Barndorff-Nielsen, Hansen, Lunde and Shephard, Realized kernels in practice, Econometrics J. 12 (2009)',
      'Brownlees and Gallo, Financial econometric analysis at ultra-high frequency, Computational Statistics & Data Analysis 51 (2006)',
      'NYSE Rule 7.2, holidays',
    ],
  }
}
