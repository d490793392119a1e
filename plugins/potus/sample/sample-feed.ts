/** Writes the made-up news: the last days at start, new items in real time, and the month before in the first step. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, Unavailable } from 'tollgate/plugin'
import type { Writer } from '../ingest/event-writer.ts'
import type { SequenceRange } from '../ingest/writer-state.ts'
import { insertPolls } from '../store/change-counters.ts'
import { DAY } from '../time-range.ts'
import { parseBody } from '../sources/parsers.ts'
import type { Source } from '../sources/source.ts'
import { sampleDay, type SampleBody } from './sample-day.ts'

/** First day of the sample. */
export const SAMPLE_START = Date.UTC(2026, 1, 1)
/** Each day has its own range of numbers, so that days can be written in any order and are numbered alike everywhere. */
const NUMBERS_PER_DAY = 1000
const FIRST_DAYS = 3
/** How far the sample reaches back. */
const HISTORY_DAYS = 30
/** The sources that the sample imitates. */
export const SAMPLED_SOURCES: readonly string[] = ['truth.mirror', 'wh.news', 'fr.pi']

/** A process that opens the sample must renew its claim within this time. Afterwards another process takes over. */
const CLAIM_MS = 15_000
/** How long a claim is kept before it is renewed. */
const RENEW_MS = 3_000
const RETRY_MS = 250
const CLAIM = 'sample:opener'

export interface Sample {
  /** Writes today so far and the two days before. Only one process does so at a time. */
  open(signal?: AbortSignal): Promise<void>
  /** Throws Unavailable until the sample is open. */
  assertReady(): void
  /** Writes what is due, and in the first step the month before. Throws between two items if `signal` aborts. */
  step(signal?: AbortSignal): Promise<void>
}

/** Creates the sample. It writes nothing until it is opened. */
export function createSample(
  db: Database,
  writer: Writer,
  sources: ReadonlyMap<string, Source>,
  now: () => number,
): Sample {
  return new SampleFeed({ db, writer, sources, now })
}

interface SampleParts {
  readonly db: Database
  readonly writer: Writer
  readonly sources: ReadonlyMap<string, Source>
  readonly now: () => number
}

class SampleFeed implements Sample {
  readonly #parts: SampleParts
  /** Time until which each day is written, by its midnight. */
  readonly #written = new Map<number, number>()
  #isOpen = false
  #isOpening = false
  /** When the claim was taken or renewed last. */
  #claimedAt = 0

  constructor(parts: SampleParts) {
    this.#parts = parts
  }

  /** Writes what was seen on the day after `from` and by `to`. Known items are not written twice. */
  async #write(midnight: number, from: number, to: number, signal?: AbortSignal): Promise<void> {
    if (midnight < SAMPLE_START) return
    const range = sequencesOf(midnight)
    for (const seen of sampleDay(midnight).filter(({ at }) => at > from && at <= to)) {
      signal?.throwIfAborted()
      await this.#writeBody(seen, range)
      await this.#renewClaim()
    }
  }

  async #writeBody({ source: id, at, body }: SampleBody, range: SequenceRange): Promise<void> {
    const source = this.#parts.sources.get(id) as Source
    const poll = { source, at, url: `https://sample.invalid/${id}`, status: 200, headers: {}, body }
    const timing = { now: at, ingest: 'live', measured: true } as const
    const { items } = await parseBody(source, body, at)
    await this.#parts.writer.add(poll, items, { timing, range })
  }

  /** Writes a day until `until`. Returns false if it was already written. */
  async #day(midnight: number, until: number, signal?: AbortSignal): Promise<boolean> {
    const from = this.#written.get(midnight) ?? (await this.#lastOf(midnight))
    if (from >= until) {
      this.#written.set(midnight, from)
      return false
    }
    await this.#write(midnight, from, until, signal)
    this.#written.set(midnight, until)
    const value = String(until)
    await this.#parts
      .db('potus_notes')
      .insert({ name: `sample:${midnight}`, value })
      .onConflict('name')
      .merge()
    return true
  }

  /** Time until which a process has written the day; the millisecond before it if none has. */
  async #lastOf(midnight: number): Promise<number> {
    const row = (await this.#parts
      .db('potus_notes')
      .where({ name: `sample:${midnight}` })
      .first()) as { value: string } | undefined
    return row ? Number(row.value) : midnight - 1
  }

  /** Logs a poll of every source in the minute of `at`, once. */
  async #logPolls(at: number): Promise<void> {
    const minute = Math.floor(at / 60_000) * 60_000
    const rows = SAMPLED_SOURCES.map((id) => ({
      source: id,
      at: minute,
      outcome: 'not_modified' as const,
      status: 304,
      url: `https://sample.invalid/${id}`,
      parser: this.#parts.sources.get(id)?.parser ?? '',
      items: 0,
      fresh: 0,
    }))
    await this.#parts.db.transaction(async (tx) => {
      // The upsert locks the row, so that several processes log a minute once.
      await tx('potus_notes').insert({ name: 'log', value: '' }).onConflict('name').merge()
      if ((await tx('potus_polls').where({ at: minute }).first('id')) === undefined) await insertPolls(tx, rows)
    })
  }

  /** The newest day that was written, also by an earlier process. */
  async #newestDay(): Promise<number> {
    if (this.#written.size > 0) return Math.max(...this.#written.keys())
    const rows = (await this.#parts.db('potus_notes').where('name', 'like', 'sample:%').select('name')) as {
      name: string
    }[]
    return Math.max(...rows.map(({ name }) => Number(name.slice('sample:'.length))).filter(Number.isFinite))
  }

  /** Writes the last days, and all days since the newest written one, because followers never read lower numbers. */
  async #current(least: number, signal?: AbortSignal): Promise<void> {
    const time = this.#parts.now()
    const today = midnightOf(time)
    const since = (today - (await this.#newestDay())) / DAY + 1
    const days = Number.isFinite(since) ? Math.min(Math.max(least, since), HISTORY_DAYS) : least
    for (let back = days - 1; back >= 0; back -= 1)
      await this.#day(today - back * DAY, Math.min(time, today - back * DAY + DAY - 1), signal)
    await this.#logPolls(time)
  }

  /** Claims the opening of the sample. Returns false if another process holds the claim. */
  async #claim(): Promise<boolean> {
    const taken = (await this.#parts
      .db('potus_notes')
      .insert({ name: CLAIM, value: String(this.#parts.now() + CLAIM_MS) })
      .onConflict('name')
      .merge()
      .whereRaw('cast(potus_notes.value as bigint) <= ?', [this.#parts.now()])
      .returning('name')) as readonly unknown[]
    return taken.length === 1
  }

  /** Keeps the claim until `time`; 0 gives it up. */
  async #claimUntil(time: number): Promise<void> {
    await this.#parts
      .db('potus_notes')
      .where({ name: CLAIM })
      .update({ value: String(time) })
  }

  async #renewClaim(): Promise<void> {
    const time = this.#parts.now()
    if (!this.#isOpening || time < this.#claimedAt + RENEW_MS) return
    this.#claimedAt = time
    await this.#claimUntil(time + CLAIM_MS)
  }

  async open(signal?: AbortSignal): Promise<void> {
    while (!(await this.#claim())) await sleep(RETRY_MS, undefined, { signal })
    this.#claimedAt = this.#parts.now()
    this.#isOpening = true
    try {
      await this.#current(FIRST_DAYS, signal)
      this.#isOpen = true
    } finally {
      this.#isOpening = false
      await this.#claimUntil(0)
    }
  }

  assertReady(): void {
    if (this.#isOpen) return
    throw new Unavailable('The sample is being generated. You were not charged; retry in a few seconds.', 5)
  }

  async step(signal?: AbortSignal): Promise<void> {
    if (!this.#isOpen) await this.open(signal)
    // Includes yesterday, whose last minutes may have passed after the previous step.
    await this.#current(2, signal)
    const today = midnightOf(this.#parts.now())
    const oldest = Math.max(SAMPLE_START, today - HISTORY_DAYS * DAY)
    for (let before = today - 2 * DAY; before >= oldest; before -= DAY)
      await this.#day(before, before + DAY - 1, signal)
  }
}

const midnightOf = (time: number): number => Math.floor(time / DAY) * DAY

/** The numbers that belong to the day that starts at `midnight`. */
function sequencesOf(midnight: number): SequenceRange {
  const first = ((midnight - SAMPLE_START) / DAY) * NUMBERS_PER_DAY + 1
  return { first, last: first + NUMBERS_PER_DAY - 1 }
}
