/**
 * `npm run bench:regime`: measures the regime model on recorded bars, out of sample: every forecast uses a fit on earlier
 * bars only.
 */
import { writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fillQuiet, readBarFile, recordingFormat } from '../../plugins/market/bar-recordings.ts'
import { joinRecordings, LONGEST_QUIET_SECONDS, type Recording } from '../../plugins/market/bar-replay.ts'
import type { Curves } from '../../plugins/regime/label-grades.ts'
import { createModel, MODEL } from '../../plugins/regime/regime-model.ts'
import { formatSeconds } from '../../plugins/lib/time/timestamps.ts'
import { readFlags } from '../command-line.ts'
import { textTable } from '../text-table.ts'
import { baselineOf, figuresOf, type Figures, trackCurves } from './regime/model-figures.ts'
import { since, track } from './regime/model-track.ts'
import { badPrintTrials, prefixHolds } from './regime/model-trials.ts'

interface Measured {
  readonly recording: string
  readonly files: readonly string[]
  readonly trained_on: string | null
  readonly first: string
  readonly last: string
  readonly interval_minutes: number
  readonly figures: Figures
  readonly baseline: Figures
  readonly curves: Curves
  /** Median minutes for which one bad print changes the label, over 20 trials. */
  readonly bad_print_minutes: number
  readonly prefix_identical: boolean
  readonly seconds: number
}

const DAY = 1440

async function read(paths: readonly string[]): Promise<(Recording & { files: string[] })[]> {
  const pieces: (Recording & { files: string[] })[] = []
  for (const path of paths) {
    const name = recordingFormat(basename(path))
    if (!name) throw new Error(`${path}: the file name lacks symbol and interval. Name it like venue_pair_1m_….csv`)
    for (const [symbol, bars] of await readBarFile(path, name))
      pieces.push({ ...name, symbol, bars, files: [basename(path)] })
  }
  return joinRecordings(pieces).map((recording) => ({
    ...recording,
    bars: fillQuiet(recording.bars, recording.interval_seconds, LONGEST_QUIET_SECONDS),
    files: pieces
      .filter(
        ({ symbol, venue, interval_seconds }) =>
          symbol === recording.symbol && venue === recording.venue && interval_seconds === recording.interval_seconds,
      )
      .flatMap(({ files }) => files),
  }))
}

function measure(
  recording: Recording & { files: string[] },
  from: string | undefined,
  trained: Recording | null,
): Measured {
  const { bars, symbol, venue, interval_seconds } = recording
  const barMinutes = interval_seconds / 60
  const begun = performance.now()
  const fit = trained ? fitOf(trained) : undefined
  const whole = track(bars, barMinutes, fit)
  const seconds = (performance.now() - begun) / 1000
  const days = (whole.minute[whole.count - 1]! - whole.minute[0]!) / DAY
  const start = from === undefined ? whole.minute[0]! + (days < 90 ? 0 : 30 * DAY) : Date.parse(from) / 60_000
  const graded = since(whole, start)
  const trials = badPrintTrials(bars, barMinutes).toSorted((a, b) => a - b)
  return {
    recording: `${symbol} ${venue} ${barMinutes} min`,
    files: recording.files,
    trained_on: trained ? `${trained.symbol} ${trained.venue}` : null,
    first: formatSeconds(graded.minute[0]! * 60),
    last: formatSeconds(graded.minute[graded.count - 1]! * 60),
    interval_minutes: barMinutes,
    figures: rounded(figuresOf(graded)),
    baseline: rounded(baselineOf(graded)),
    curves: roundedCurves(trackCurves(graded)),
    bad_print_minutes: ((trials[9]! + trials[10]!) / 2) * barMinutes,
    prefix_identical: prefixHolds(bars, barMinutes, trained ? track(bars, barMinutes) : whole),
    seconds: Math.round(seconds * 100) / 100,
  }
}

function fitOf({ bars, interval_seconds }: Recording) {
  const model = createModel(interval_seconds / 60)
  track(bars, interval_seconds / 60, undefined, model)
  return model.fit
}

function rounded(figures: Figures): Figures {
  const entries = Object.entries(figures) as [string, number | null][]
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value === null || Number.isNaN(value) ? null : round4(value)]),
  ) as unknown as Figures
}

function roundedCurves({ calibration, persistence }: Curves): Curves {
  return {
    calibration: calibration.map(([stated, right, share]) => [round4(stated), round4(right), round4(share)] as const),
    persistence: persistence.map(([hours, all, volatile]) => [hours, round4(all), round4(volatile)] as const),
  }
}

/** Rounds to four decimals. */
function round4(value: number): number {
  return Math.round(value * 1e4) / 1e4
}

const COLUMNS = [
  ['ratio', 'forward_vol_ratio', 2],
  ['stay 1h', 'persistence_1h', 3],
  ['V stay', 'volatile_persistence_1h', 3],
  ['flips/day', 'flips_per_day', 2],
  ['share V', 'share_volatile', 2],
  ['accuracy', 'accuracy', 3],
  ['Brier', 'brier', 3],
  ['ECE', 'ece', 3],
  ['corr', 'correlation', 2],
  ['CV', 'daily_vol_cv', 2],
  ['CV sized', 'scaled_daily_vol_cv', 2],
] as const

/** Formats a text table with model and baseline of each recording, followed by the results of the trials. */
function tableOf(results: readonly Measured[]): string {
  const head = ['recording', ...COLUMNS.map(([title]) => title)]
  const rows = results.flatMap(({ recording, trained_on, figures, baseline }) => [
    [trained_on === null ? recording : `${recording} (fit on ${trained_on})`, ...cells(figures)],
    ['  last hour > boundary', ...cells(baseline)],
  ])
  const notes = results.map(
    ({ recording, first, last, figures, bad_print_minutes, prefix_identical, seconds }) =>
      `${recording}: ${figures.snapshots} snapshots graded from ${first} to ${last}; one bad print changes the label for ` +
      `${bad_print_minutes} min (median of 20); prefixes ${prefix_identical ? 'identical' : 'DIFFER'}; ${seconds} s`,
  )
  return `${[textTable([head, ...rows]), '', ...notes].join('\n')}\n`
}

function cells(figures: Measured['figures']): string[] {
  return COLUMNS.map(([, name, digits]) => figures[name]?.toFixed(digits) ?? '-')
}

const USAGE = `Usage: npm run bench:regime -- [OPTIONS] FILE...

  FILE          recorded bars; consecutive files of one venue form one recording
  --from DATE   grade the snapshots from that day on (default: without the first 30 days, or all of them if the
                recording is shorter than 90 days)
  --train FILE  fit the model on this file, and use that fit for all others
  --json        print everything as JSON
  --write       save the figures in plugins/regime/regime-measurements.json, where the methodology page reads them`
const { values, positionals } = readFlags(USAGE, {
  allowPositionals: true,
  options: {
    from: { type: 'string' },
    train: { type: 'string' },
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})
if (positionals.length === 0) {
  process.stderr.write(`${USAGE}\n`)
  process.exit(2)
}
const trained = values.train === undefined ? null : ((await read([values.train]))[0] ?? null)
const results = (await read(positionals)).map((recording) => measure(recording, values.from, trained))
process.stdout.write(values.json ? `${JSON.stringify(results, null, 2)}\n` : tableOf(results))
if (values.write) {
  const file = join(resolve(import.meta.dirname, '..', '..'), 'plugins', 'regime', 'regime-measurements.json')
  const command = `npm run bench:regime -- ${results.flatMap(({ files }) => files).join(' ')}`
  writeFileSync(file, `${JSON.stringify({ model: MODEL, command, results }, null, 2)}\n`)
  process.stdout.write(`Wrote ${file}\n`)
}
