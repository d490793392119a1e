/** Replays a recording through the same writer as the real sources, with its times shifted into the present. */
import { type Database, type PluginContext, Unavailable, type ReplayShift } from 'tollgate/plugin'
import { dataSettings } from '../../lib/feeds/data-settings.ts'
import type { Item, Source } from '../sources/source.ts'
import type { Writer, WriteOptions } from '../ingest/event-writer.ts'
import type { WriteResult } from '../ingest/new-events.ts'
import { COUNTERS, noteRemoval, raiseCounter, TURN } from '../store/change-counters.ts'
import { DAY } from '../time-range.ts'
import { type RecordedEntry, readRecordings } from './recordings.ts'

const WEEK = 7 * DAY
/** Share of the recording that is in the past when it is first opened. The rest is played in real time, then it repeats. */
const STARTS_AT = 0.8

export interface Replay {
  /** Milliseconds that every time is shifted by in the first round. */
  readonly shift: number
  /** The source as this recording has it: enabled if there are polls or posts of it. */
  replayedSource(source: Source): Source
  /** Writes the entries that are due. */
  step(signal: AbortSignal): Promise<void>
  /** Throws Unavailable until everything due has been written once. */
  assertReady(): void
}

interface Position {
  readonly folder: string
  readonly setting: string
  /** Number of entries of the recording. If files were added to the folder, it is another recording. */
  readonly entries: number
  readonly shift: number
  /** Entries written so far, including those of earlier rounds. */
  readonly written: number
  /** True once a process has written everything that was due. */
  readonly ready: boolean
}

export interface ReplayParts {
  readonly context: Pick<PluginContext, 'db' | 'deployment' | 'log' | 'progress'>
  readonly writer: Writer
  readonly sources: ReadonlyMap<string, Source>
  readonly now: () => number
}

/** Reads the recording. If it or REPLAY_SHIFT differs from last time, everything in the store is replaced. */
export async function openReplay(parts: ReplayParts): Promise<Replay> {
  const { context, sources, now } = parts
  const { replayDir: folder = '', replayShift } = dataSettings(context)
  const recorded = await readRecordings(folder, sources)
  const shift = replayShiftMs(recorded, replayShift, now())
  const start: Position = {
    folder,
    setting: replayShift.setting,
    entries: recorded.length,
    shift,
    written: 0,
    ready: false,
  }
  const opened = { ...start, shift: (await loadPosition(context.db, start)).shift }
  return new RecordingReplay(parts, recorded, opened, replayShift.seconds !== 0)
}

/** An entry with the shift and the round in which it is played. The first round is 0. */
interface Scheduled {
  readonly recorded: RecordedEntry
  readonly shift: number
  readonly round: number
}

class RecordingReplay implements Replay {
  readonly shift: number
  readonly #parts: ReplayParts
  readonly #recorded: readonly RecordedEntry[]
  /** The position at the beginning, with the shift that the store has. */
  readonly #start: Position
  readonly #repeats: boolean
  readonly #roundLength: number
  readonly #present: ReadonlySet<string>
  #written = 0
  #isReady = false
  /** True if this process plays the recording. */
  #isPlaying = false

  constructor(parts: ReplayParts, recorded: readonly RecordedEntry[], start: Position, repeats: boolean) {
    this.shift = start.shift
    this.#parts = parts
    this.#recorded = recorded
    this.#start = start
    this.#repeats = repeats
    this.#roundLength = roundLengthOf(recorded)
    this.#present = new Set(recorded.map(({ source }) => source))
  }

  replayedSource(source: Source): Source {
    return { ...source, enabled: this.#present.has(source.id) }
  }

  async step(signal: AbortSignal): Promise<void> {
    const { context, writer, sources, now } = this.#parts
    if (!this.#isPlaying) this.#isReady = false
    this.#isPlaying = true
    await this.#catchUp()
    const time = now()
    const shown = this.#isReady ? null : context.progress('replaying recorded news', this.#recorded.length)
    shown?.advance(this.#written % Math.max(1, this.#recorded.length))
    for (let next = this.#due(this.#written, time); next && !signal.aborted; next = this.#due(this.#written, time)) {
      const rows = rowsFrom(next, (n) => this.#due(this.#written + n, time))
      const count = Math.max(1, rows.length)
      const position = { ...this.#start, written: this.#written + count, ready: this.#isReady }
      await playEntries(writer, sources, rows.length > 0 ? rows : [next.recorded], {
        shift: next.shift,
        round: next.round,
        inTransaction: (tx) => savePosition(tx, position),
      })
      this.#written += count
      shown?.advance(count)
    }
    if (signal.aborted) return
    shown?.end()
    if (this.#isReady) return
    context.log.info({ entries: this.#written, shift_ms: this.shift }, 'replayed the recording up to now')
    this.#isReady = true
    await savePosition(context.db, { ...this.#start, written: this.#written, ready: true })
  }

  assertReady(): void {
    if (this.#isReady) return
    const { log } = this.#parts.context
    // If another process plays the recording, its position is in the store.
    void this.#catchUp().catch((error: unknown) =>
      log.warn({ err: error }, 'the position of the replay could not be read'),
    )
    const done = Math.floor((100 * this.#written) / Math.max(1, this.#recorded.length))
    throw new Unavailable(`${done}% of the recording is loaded. You were not charged; retry in a few seconds.`, 5)
  }

  /** The nth entry; null after the end of a recording that does not repeat. */
  #entry(n: number): Scheduled | null {
    if (this.#recorded.length === 0) return null
    const round = Math.floor(n / this.#recorded.length)
    if (round > 0 && !this.#repeats) return null
    const recorded = this.#recorded[n % this.#recorded.length] as RecordedEntry
    return { recorded, shift: this.shift + round * this.#roundLength, round }
  }

  /** The nth entry if its time has come by `time`. */
  #due(n: number, time: number): Scheduled | null {
    const next = this.#entry(n)
    return next && next.recorded.at + next.shift <= time ? next : null
  }

  /** Reads how far another process has played the recording. */
  async #catchUp(): Promise<void> {
    const kept = JSON.parse((await readPosition(this.#parts.context.db)) ?? 'null') as Position | null
    if (kept) this.#written = kept.written
    if (kept && !this.#isPlaying) this.#isReady = kept.ready
  }
}

/** Consecutive rows of one source in one round, to be written together. Empty if the first entry is a poll. */
function rowsFrom(first: Scheduled, at: (n: number) => Scheduled | null): RecordedEntry[] {
  const rows: RecordedEntry[] = []
  for (let next: Scheduled | null = first; next?.recorded.item && rows.length < 100; next = at(rows.length)) {
    if (next.round !== first.round || next.recorded.source !== first.recorded.source) break
    rows.push(next.recorded)
  }
  return rows
}

/** Writes one recorded poll, or rows that were recorded one by one. Without options, times are not shifted. */
export async function playEntries(
  writer: Writer,
  sources: ReadonlyMap<string, Source>,
  entries: readonly RecordedEntry[],
  options: Pick<WriteOptions, 'shift' | 'round' | 'inTransaction'> = {},
): Promise<WriteResult> {
  const [{ source: id, url, body, item: first, answer }, last] = [
    entries[0] as RecordedEntry,
    entries.at(-1) as RecordedEntry,
  ]
  const poll = { source: sources.get(id) as Source, at: last.at, url, status: 200, headers: {}, body, ...answer }
  if (first === null) return writer.write(poll, { shift: 0, ...options })
  const items = entries.map(({ item }) => item as Item)
  const timing = { seenAt: ({ publishedAt }: Item) => publishedAt, measured: false }
  return writer.add(poll, items, { shift: 0, ...options, timing })
}

/**
 * Milliseconds to add to recorded times. Without a fixed shift it is a number of whole weeks, which keeps hours and
 * weekdays, chosen so that about four fifths of the entries lie in the past.
 */
export function replayShiftMs(recorded: readonly RecordedEntry[], { seconds }: ReplayShift, now: number): number {
  if (seconds !== null) return seconds * 1000
  const anchor = recorded[Math.floor(STARTS_AT * (recorded.length - 1))]
  if (!anchor) return 0
  return Math.round((now - anchor.at) / WEEK) * WEEK
}

/** Length of a round: whole weeks, with at least a day between the end and the next beginning. */
function roundLengthOf(recorded: readonly RecordedEntry[]): number {
  const length = (recorded.at(-1)?.at ?? 0) - (recorded[0]?.at ?? 0)
  return Math.ceil((length + DAY) / WEEK) * WEEK
}

async function readPosition(db: Database): Promise<string | null> {
  const row = (await db('potus_notes').where({ name: 'replay' }).first()) as { value: string } | undefined
  return row?.value ?? null
}

async function savePosition(db: Database, position: Position): Promise<void> {
  await db('potus_notes')
    .insert({ name: 'replay', value: JSON.stringify(position) })
    .onConflict('name')
    .merge()
}

const TABLES = ['polls', 'feeds', 'events', 'versions', 'mentions', 'held', 'missing', 'engagement']

/** The stored position of this recording. If the store has another recording, deletes its data and starts from the beginning. */
async function loadPosition(db: Database, mine: Position): Promise<Position> {
  return db.transaction(async (tx) => {
    await tx('potus_notes').insert({ name: 'opening', value: '' }).onConflict('name').merge()
    const earlier = JSON.parse((await readPosition(tx)) ?? 'null') as Position | null
    const isSame = earlier?.folder === mine.folder && earlier.setting === mine.setting
    if (isSame && earlier.entries === mine.entries) return earlier
    if (earlier) await deleteAll(tx)
    await savePosition(tx, mine)
    return mine
  })
}

async function deleteAll(db: Database): Promise<void> {
  // Writers compare this counter too: what they remember of the store is gone.
  await raiseCounter(db, TURN)
  await noteRemoval(db)
  for (const table of TABLES) await db(`potus_${table}`).delete()
  await db('potus_notes')
    .whereRaw(`name not in (${COUNTERS.map(() => '?').join(', ')})`, COUNTERS)
    .delete()
}
