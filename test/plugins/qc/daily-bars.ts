import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { atLeast, atMost, type Measure } from '../../support/measure.ts'
import { type Bar, readBarsFile, readRecorded } from '../../support/recorded-data.ts'

const PART = 'real daily bars'

/** Measures known splits, false splits, and genuine misprints confirmed by a second source. */
export function measureDaily(): Measure[] {
  return [...measureSplits(), ...measureMisprints()]
}

function measureSplits(): Measure[] {
  const known = JSON.parse(readRecorded('bars/splits.json')) as {
    readonly splits: Readonly<Record<string, readonly { readonly date: string; readonly ratio: string }[]>>
  }
  let [hits, wanted, wrong] = [0, 0, 0]
  for (const [file, dates] of Object.entries(known.splits)) {
    const { splits } = checkBarQuality({ bars: readBarsFile(`bars/${file}.csv.gz`) })
    const expected = dates.map(({ date, ratio }) => `${date} ${ratio}`)
    const told = splits.map(({ timestamp, ratio }) => `${timestamp.slice(0, 10)} ${ratio}`)
    wanted += expected.length
    hits += expected.filter((split) => told.includes(split)).length
    wrong += told.filter((split) => !expected.includes(split)).length
  }
  const stocks = new Map<string, Bar[]>()
  for (const { symbol = '', ...bar } of readBarsFile('bars/sp500_daily_adjusted_2021-2026_sample.csv.gz'))
    stocks.set(symbol, [...(stocks.get(symbol) ?? []), bar])
  const onAdjusted = [...stocks.values()].reduce((sum, bars) => sum + checkBarQuality({ bars }).splits.length, 0)
  return [
    atLeast(PART, `splits at the exact day and ratio (${hits}/${wanted})`, hits / wanted, 1),
    atMost(PART, 'false splits on those series', wrong, 0, 0),
    atMost(PART, `false splits on ${stocks.size} adjusted stocks`, onAdjusted, 0, 0),
  ]
}

/** An extreme of the consolidated tape is wrong if it exceeds that of the second source by both of these. */
const WRONG = { share: 0.01, ranges: 2 }
/** A flag is confirmed if the extreme of the second source is nearer by this much. */
const CONFIRMED = 0.003

function measureMisprints(): Measure[] {
  const tape = readBarsFile('bars/daily_raw_aapl_lean.csv.gz')
  const other = new Map(readBarsFile('bars/daily_raw_aapl_alphavantage.csv.gz').map((bar) => [bar.t, bar]))
  const ranges = tape.map(({ h, l }) => Math.log(h! / l!))
  const flagged = new Set(checkBarQuality({ bars: tape }).findings.map(({ code, index }) => `${code} ${index}`))
  let [hits, wanted, flags, confirmed] = [0, 0, 0, 0]
  for (const [index, bar] of tape.entries()) {
    const second = other.get(bar.t)
    if (!second || Math.abs(Math.log(bar.c! / second.c!)) > 0.05) continue
    const around = ranges.slice(Math.max(0, index - 5), index + 6).sort((a, b) => a - b)
    const usual = around[around.length >> 1]!
    const beyond = { bad_print_high: Math.log(bar.h! / second.h!), bad_print_low: Math.log(second.l! / bar.l!) }
    for (const [code, distance] of Object.entries(beyond)) {
      const isFlagged = flagged.has(`${code} ${index}`)
      if (isFlagged) flags += 1
      if (isFlagged && distance > CONFIRMED) confirmed += 1
      if (distance <= Math.max(WRONG.share, WRONG.ranges * usual)) continue
      wanted += 1
      if (isFlagged) hits += 1
    }
  }
  return [
    atLeast(PART, `AAPL misprints of the tape, recall (${hits}/${wanted})`, hits / wanted, 0.72),
    atLeast(
      PART,
      `AAPL misprints, flags confirmed by the second source (${confirmed}/${flags})`,
      confirmed / flags,
      0.95,
    ),
  ]
}
