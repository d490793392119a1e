/**
 * Loads the recorded bars of REPLAY_DIR into the store once, with their times moved as REPLAY_SHIFT says. A job does it while
 * the gateway is open, because a large folder takes minutes.
 */
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Job, type PluginContext, type ReplayShift, Unavailable } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { findRecordings, readRecording } from '../lib/feeds/recordings.ts'
import { createColumns, type Columns, badPrints } from './bars.ts'
import { fillQuiet, recordingFormat, type RecordingFormat } from './bar-recordings.ts'
import type { BarStore } from './bar-store.ts'
import type { ParsedRecording } from './parse-recording-work.ts'

const DAY = 86_400
const WEEK = 7 * DAY
/** Quiet minutes are filled up to this length; a longer silence stays a hole. */
export const LONGEST_QUIET_SECONDS = 3 * 3600
/** Two files of one series are joined if the pause between them is no longer than this. */
const JOIN_SECONDS = 2 * DAY
/** `auto` puts the first start at this share of a long recording; the rest plays in real time. */
const STARTS_AT = 0.8
const LONG_SECONDS = 20 * DAY
/** Another process may have finished loading; its note is read this often at most. */
const LOOK_MS = 1_000
/** Reading the files takes about this share of the time, storing their bars the rest. */
const READING_SHARE = 0.3
/** Enough for a file of a gigabyte. */
const PARSE_SECONDS = 600
const PARSE = new URL('./parse-recording-work.ts', import.meta.url)

export interface Recording extends Omit<RecordingFormat, 'symbol'> {
  readonly symbol: string
  readonly bars: Columns
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

/** The set of bars that is stored. Another folder or another shift replaces it. */
interface Loaded {
  readonly folder: string
  readonly shift: string
  readonly id: string
}

/** The recorded bars of the store, as far as they are loaded. */
export class BarReplay {
  readonly job: Job = { name: 'load', everySeconds: 60, run: ({ signal }) => this.#load(signal) }
  readonly #context: PluginContext
  readonly #store: BarStore
  readonly #folder: string
  readonly #shift: ReplayShift
  #origin: string | null = null
  #lookedAt = -Infinity
  /** How much is loaded, from 0 to 1. Other processes do not know. */
  #progress = 0

  constructor(context: PluginContext, store: BarStore) {
    const { replayDir = '', replayShift } = dataSettings(context)
    this.#context = context
    this.#store = store
    this.#folder = replayDir
    this.#shift = replayShift
  }

  /** True once the bars are loaded, by this process or another one. */
  async isLoaded(): Promise<boolean> {
    if (this.#origin === null && performance.now() - this.#lookedAt > LOOK_MS) {
      this.#lookedAt = performance.now()
      this.#origin = await this.#loaded()
    }
    return this.#origin !== null
  }

  /** Returns an id of this set of bars. Throws Unavailable while they are being loaded. */
  async origin(): Promise<string> {
    if ((await this.isLoaded()) && this.#origin !== null) return this.#origin
    const done = Math.floor(100 * this.#progress)
    const message = `${done}% of the recorded bars are loaded. You were not charged; retry in a few seconds.`
    throw new Unavailable(message, 5, this.#progress)
  }

  async #loaded(): Promise<string | null> {
    const loaded = JSON.parse((await this.#store.note('replay')) ?? 'null') as Loaded | null
    return loaded?.folder === this.#folder && loaded.shift === this.#shift.setting ? loaded.id : null
  }

  /** Loads the recordings unless that is done. The shift is chosen now and kept with the bars. */
  async #load(signal: AbortSignal): Promise<void> {
    this.#origin ??= await this.#loaded()
    if (this.#origin !== null) return
    const { log, now: clock, progress } = this.#context
    const store = this.#store
    await store.setNote('replay', 'null')
    await store.clear()
    const now = Math.floor(clock().getTime() / 1000)
    const recordings = await this.#read(signal)
    const storing = progress('storing recorded bars', recordings.length)
    for (const [nth, recording] of recordings.entries()) {
      signal.throwIfAborted()
      const { venue, symbol, interval_seconds } = recording
      const isContinuous = recording.clock === 'UTC' && interval_seconds < DAY
      const bars = isContinuous ? fillQuiet(recording.bars, interval_seconds, LONGEST_QUIET_SECONDS) : recording.bars
      const seconds = barShift(recording, this.#shift, now)
      const moved = { ...bars, time: bars.time.map((time) => time + seconds) }
      const series = await store.series(venue, symbol, interval_seconds)
      await store.add(series, moved, { misprints: interval_seconds === 60 ? badPrints(bars) : [] })
      log.info({ symbol, venue, interval_seconds, bars: bars.count, shift_seconds: seconds }, 'recording stored')
      storing.advance(1)
      this.#progress = READING_SHARE + ((1 - READING_SHARE) * (nth + 1)) / recordings.length
    }
    storing.end()
    const loaded: Loaded = { folder: this.#folder, shift: this.#shift.setting, id: `replay:${now}` }
    await store.setNote('replay', JSON.stringify(loaded))
    this.#origin = loaded.id
  }

  /**
   * Reads all recordings of the folder, parses them in a worker thread and joins files of one venue that follow each other. Keeps two
   * recordings of each symbol: the daily bars and the finest other interval. Of two with the same interval the longer one is
   * kept. Logs how many rows of a file are left out, by reason.
   */
  async #read(signal: AbortSignal): Promise<Recording[]> {
    const { log, work, progress } = this.#context
    const files: { path: string; format: RecordingFormat; size: number }[] = []
    for (const { name, path } of await findRecordings(this.#folder, (name) => recordingFormat(name) !== null)) {
      const format = recordingFormat(name)
      if (format) files.push({ path, format, size: (await stat(path)).size })
    }
    files.sort((a, b) => basename(a.path).localeCompare(basename(b.path)))
    const total = files.reduce((sum, file) => sum + file.size, 0)
    const reading = progress('reading recorded bars', total)
    const pieces: Recording[] = []
    for (const { path, format, size } of files) {
      const input = { bytes: await readRecording(path), format }
      const { parts, dropped } = await work<ParsedRecording>(PARSE, input, { signal, timeoutSeconds: PARSE_SECONDS })
      for (const [symbol, bars] of parts) if (bars.count > 0) pieces.push({ ...format, symbol, bars })
      if (Object.keys(dropped).length > 0)
        log.warn({ file: basename(path), dropped }, 'rows of a recording are left out')
      reading.advance(size)
      this.#progress += (READING_SHARE * size) / total
    }
    reading.end()
    return chooseRecordings(joinRecordings(pieces))
  }
}
