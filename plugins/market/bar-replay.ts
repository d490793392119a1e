/** Loads the recorded bars of REPLAY_DIR into the store once, with their times moved as REPLAY_SHIFT says. */
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Logger, PluginContext } from 'tollgate/plugin'
import { dataSettings, type ReplayShift } from '../lib/feeds/data-settings.ts'
import { findRecordings } from '../lib/feeds/recordings.ts'
import { createColumns, type Columns, badPrints } from './bars.ts'
import { type DroppedRow, fillQuiet, readBarFile, recordingFormat, type RecordingFormat } from './bar-recordings.ts'
import type { BarStore } from './bar-store.ts'

const DAY = 86_400
const WEEK = 7 * DAY
/** Quiet minutes are filled up to this length; a longer silence stays a hole. */
export const LONGEST_QUIET_SECONDS = 3 * 3600
/** Two files of one series are joined if the pause between them is no longer than this. */
const JOIN_SECONDS = 2 * DAY
/** `auto` puts the first start at this share of a long recording; the rest plays in real time. */
const STARTS_AT = 0.8
const LONG_SECONDS = 20 * DAY

export interface Recording extends Omit<RecordingFormat, 'symbol'> {
  readonly symbol: string
  readonly bars: Columns
}

/**
 * Reads all recordings of the folder and joins files of one venue that follow each other. Keeps two recordings of each
 * symbol: the daily bars and the finest other interval. Of two with the same interval the longer one is kept. Logs how many
 * rows of a file are left out, by reason.
 */
async function readBarRecordings(folder: string, log: Logger, advance: (share: number) => void): Promise<Recording[]> {
  const files: { path: string; name: RecordingFormat; size: number }[] = []
  for (const { name: fileName, path } of await findRecordings(folder, (name) => recordingFormat(name) !== null)) {
    const name = recordingFormat(fileName)
    if (name) files.push({ path, name, size: (await stat(path)).size })
  }
  files.sort((a, b) => basename(a.path).localeCompare(basename(b.path)))
  const total = files.reduce((sum, file) => sum + file.size, 0)
  const pieces: Recording[] = []
  for (const { path, name, size } of files) {
    const dropped: Partial<Record<DroppedRow, number>> = {}
    const count = (reason: DroppedRow): void => void (dropped[reason] = (dropped[reason] ?? 0) + 1)
    for (const [symbol, bars] of await readBarFile(path, name, count))
      if (bars.count > 0) pieces.push({ ...name, symbol, bars })
    if (Object.keys(dropped).length > 0) log.warn({ file: basename(path), dropped }, 'rows of a recording are left out')
    advance(size / total)
  }
  return chooseRecordings(joinRecordings(pieces))
}

const key = ({ symbol, interval_seconds, venue }: Recording): string => `${symbol} ${interval_seconds} ${venue}`
const first = ({ bars }: Recording): number => bars.time[0]!
const last = ({ bars }: Recording): number => bars.time[bars.count - 1]!

/** Joins files of one venue that follow each other. */
export function joinRecordings(pieces: readonly Recording[]): Recording[] {
  const out: Recording[] = []
  for (const piece of pieces.toSorted((a, b) => first(a) - first(b))) {
    const at = out.findIndex((whole) => key(whole) === key(piece) && first(piece) - last(whole) <= JOIN_SECONDS)
    if (at < 0) out.push(piece)
    else out[at] = { ...piece, bars: concatenate(out[at]!.bars, piece.bars) }
  }
  return out
}

function concatenate(a: Columns, b: Columns): Columns {
  const out = createColumns(a.count + b.count)
  const end = a.time[a.count - 1]!
  for (const part of [a, b])
    for (let i = 0; i < part.count; i += 1)
      if (part === a || part.time[i]! > end) {
        const { time, open, high, low, close, volume, state } = part
        out.add(time[i]!, open[i]!, high[i]!, low[i]!, close[i]!, volume[i]!, state[i]!)
      }
  return out.end()
}

/** Keeps one daily and one finer recording of each symbol, since two recordings of one interval may contradict each other. */
function chooseRecordings(recordings: readonly Recording[]): Recording[] {
  const best = new Map<string, Recording>()
  for (const recording of recordings) {
    const slot = `${recording.symbol} ${recording.interval_seconds < DAY}`
    const other = best.get(slot)
    if (!other || isBetter(recording, other)) best.set(slot, recording)
  }
  return [...best.values()]
}

function isBetter(a: Recording, b: Recording): boolean {
  if (a.interval_seconds !== b.interval_seconds) return a.interval_seconds < b.interval_seconds
  return last(a) - first(a) > last(b) - first(b)
}

/**
 * Seconds to add to the recorded times of a series. Daily bars keep their dates. With `auto`, the first start falls four
 * fifths into a long recording, so that the rest plays in real time, and just after the end of a short one. The shift is
 * always whole weeks, so that hours and weekdays stay what they were.
 */
export function barShift(recording: Recording, shift: ReplayShift, now: number): number {
  if (recording.interval_seconds >= DAY) return 0
  if (shift.seconds !== null) return Math.floor(shift.seconds / 60) * 60
  const length = last(recording) - first(recording)
  if (length < LONG_SECONDS) return Math.floor((now - last(recording) - recording.interval_seconds) / WEEK) * WEEK
  return Math.round((now - first(recording) - STARTS_AT * length) / WEEK) * WEEK
}

/** What was loaded. Another folder or another shift replaces it. */
interface Ingested {
  readonly folder: string
  readonly shift: string
  readonly id: string
}

/**
 * Loads the recordings unless an earlier start already has. The shift is chosen then and kept with the bars. Another
 * folder or REPLAY_SHIFT replaces all bars. Returns an id of this set of bars.
 */
export async function ingestRecordings(context: PluginContext, store: BarStore): Promise<string> {
  const { log } = context
  const { replayDir: folder = '', replayShift: shift } = dataSettings(context)
  const earlier = JSON.parse((await store.note('replay')) ?? 'null') as Ingested | null
  if (earlier?.folder === folder && earlier.shift === shift.setting) return earlier.id
  await store.clear()
  const now = Math.floor(context.now().getTime() / 1000)
  const reading = context.progress('reading recorded bars', 100)
  const recordings = await readBarRecordings(folder, log, (share) => reading.advance(100 * share))
  reading.end()
  const storing = context.progress('storing recorded bars', recordings.length)
  for (const recording of recordings) {
    const { venue, symbol, interval_seconds } = recording
    const seconds = barShift(recording, shift, now)
    const continuous = recording.clock === 'UTC' && interval_seconds < DAY
    const bars = continuous ? fillQuiet(recording.bars, interval_seconds, LONGEST_QUIET_SECONDS) : recording.bars
    const moved = { ...bars, time: bars.time.map((time) => time + seconds) }
    const series = await store.series(venue, symbol, interval_seconds)
    await store.add(series, moved, { misprints: interval_seconds === 60 ? badPrints(bars) : [] })
    log.info({ symbol, venue, interval_seconds, bars: bars.count, shift_seconds: seconds }, 'recording stored')
    storing.advance(1)
  }
  storing.end()
  const ingested: Ingested = { folder, shift: shift.setting, id: `replay:${now}` }
  await store.setNote('replay', JSON.stringify(ingested))
  return ingested.id
}
