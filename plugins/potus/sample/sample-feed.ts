/** Writes the made-up news: the last days at start, new items in real time, and the month before in the first step. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, Unavailable } from 'tollgate/plugin'
import type { Writer } from '../ingest/event-writer.ts'
import type { SequenceRange } from '../ingest/writer-state.ts'
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

export function createSample(
  db: Database,
  writer: Writer,
  sources: ReadonlyMap<string, Source>,
  now: () => number,
): Sample {
  /** Time until which each day is written, by its midnight. */
  const written = new Map<number, number>()
  let isOpen = false
  let isOpening = false

  const midnightOf = (time: number): number => Math.floor(time / DAY) * DAY
  const stretchOf = (midnight: number): SequenceRange => {
    const first = ((midnight - SAMPLE_START) / DAY) * NUMBERS_PER_DAY + 1
    return { first, last: first + NUMBERS_PER_DAY - 1 }
  }

  /** Writes what was seen on the day after `from` and by `to`. Known items are not written twice. */
  async function write(midnight: number, from: number, to: number, signal?: AbortSignal): Promise<void> {
    if (midnight < SAMPLE_START) return
    const range = stretchOf(midnight)
    for (const sight of sampleDay(midnight).filter(({ at }) => at > from && at <= to)) {
      signal?.throwIfAborted()
      await show(sight, range)
      await renewClaim()
    }
  }

  async function show({ source: id, at, body }: SampleBody, range: SequenceRange): Promise<void> {
    const source = sources.get(id) as Source
    const poll = { source, at, url: `https://sample.invalid/${id}`, status: 200, headers: {}, body }
    const sight = { now: at, ingest: 'live', measured: true } as const
    await writer.add(poll, parseBody(source, body, at).items, { timing: sight, range: range })
  }

  /** Writes a day until `until`. Returns false if it was already written. */
  async function day(midnight: number, until: number, signal?: AbortSignal): Promise<boolean> {
    const from = written.get(midnight) ?? (await lastOf(midnight))
    if (from >= until) {
      written.set(midnight, from)
      return false
    }
    await write(midnight, from, until, signal)
    written.set(midnight, until)
    const value = String(until)
    await db('potus_notes')
      .insert({ name: `sample:${midnight}`, value })
      .onConflict('name')
      .merge()
    return true
  }

  async function lastOf(midnight: number): Promise<number> {
    const row = (await db('potus_notes')
      .where({ name: `sample:${midnight}` })
      .first()) as { value: string } | undefined
    return row ? Number(row.value) : midnight - 1
  }

  async function log(at: number): Promise<void> {
    const minute = Math.floor(at / 60_000) * 60_000
    const rows = SAMPLED_SOURCES.map((id) => ({
      source: id,
      at: minute,
      outcome: 'not_modified',
      status: 304,
      url: `https://sample.invalid/${id}`,
      parser: sources.get(id)?.parser ?? '',
      items: 0,
      fresh: 0,
    }))
    await db.transaction(async (tx) => {
      // The upsert locks the row, so that several processes log a minute once.
      await tx('potus_notes').insert({ name: 'log', value: '' }).onConflict('name').merge()
      if ((await tx('potus_polls').where({ at: minute }).first('id')) === undefined)
        await tx('potus_polls').insert(rows)
    })
  }

  /** The newest day that was written, also by an earlier process. */
  async function newestDay(): Promise<number> {
    if (written.size > 0) return Math.max(...written.keys())
    const rows = (await db('potus_notes').where('name', 'like', 'sample:%').select('name')) as { name: string }[]
    return Math.max(...rows.map(({ name }) => Number(name.slice('sample:'.length))).filter(Number.isFinite))
  }

  /** Writes the last days, and all days since the newest written one, because followers never read lower numbers. */
  async function current(least: number, signal?: AbortSignal): Promise<void> {
    const time = now()
    const today = midnightOf(time)
    const since = (today - (await newestDay())) / DAY + 1
    const days = Number.isFinite(since) ? Math.min(Math.max(least, since), HISTORY_DAYS) : least
    for (let back = days - 1; back >= 0; back -= 1)
      await day(today - back * DAY, Math.min(time, today - back * DAY + DAY - 1), signal)
    await log(time)
  }

  /** Claims the opening of the sample. Returns false if another process holds the claim. */
  async function claim(): Promise<boolean> {
    const taken = (await db('potus_notes')
      .insert({ name: CLAIM, value: String(now() + CLAIM_MS) })
      .onConflict('name')
      .merge()
      .whereRaw('cast(potus_notes.value as bigint) <= ?', [now()])
      .returning('name')) as readonly unknown[]
    return taken.length === 1
  }

  async function claimUntil(time: number): Promise<void> {
    await db('potus_notes')
      .where({ name: CLAIM })
      .update({ value: String(time) })
  }

  async function renewClaim(): Promise<void> {
    if (isOpening) await claimUntil(now() + CLAIM_MS)
  }

  async function open(signal?: AbortSignal): Promise<void> {
    while (!(await claim())) await sleep(RETRY_MS, undefined, { signal })
    isOpening = true
    try {
      await current(FIRST_DAYS, signal)
      isOpen = true
    } finally {
      isOpening = false
      await claimUntil(0)
    }
  }

  return {
    open,
    assertReady() {
      if (isOpen) return
      throw new Unavailable('The sample is being generated. You were not charged; retry in a few seconds.', 5)
    },
    async step(signal) {
      if (!isOpen) await open(signal)
      // Includes yesterday, whose last minutes may have passed after the previous step.
      await current(2, signal)
      const today = midnightOf(now())
      const oldest = Math.max(SAMPLE_START, today - HISTORY_DAYS * DAY)
      for (let before = today - 2 * DAY; before >= oldest; before -= DAY) await day(before, before + DAY - 1, signal)
    },
  }
}
