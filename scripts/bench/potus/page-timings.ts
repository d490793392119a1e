/** Pages of the feed at three sizes of the store and one density: a page's cost must not grow with what is behind it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OpenDatabase, openDatabase } from '../../../gateway/stores/database.ts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { parseFilter, readPage } from '../../../plugins/potus/answers/event-filters.ts'
import { eventRecord } from '../../../plugins/potus/answers/event-record.ts'
import { minuteWindow, ONE_MINUTE, readWindows } from '../../../plugins/potus/answers/event-windows.ts'
import { readSources } from '../../../plugins/potus/sources/source.ts'
import { createReader, type EventReader } from '../../../plugins/potus/store/event-reader.ts'
import { migrations } from '../../../plugins/potus/store/tables.ts'
import { APART_MS, insertMadeUpEvents } from './made-up-events.ts'

export const SIZES = [10_000, 100_000, 1_000_000]
export const ROUNDS = 120
/** The share of the rounds that is taken for undisturbed. */
const QUICKEST = 0.1
const DAY = 86_400_000
const END = Date.UTC(2026, 10, 20)

const sources = readSources()
const context = {
  dataMode: 'online',
  shift: () => null,
  sources: new Map(sources.map((source) => [source.id, source])),
} as const
const { signal } = new AbortController()
const none = parseFilter({}, [])

type Question = (reader: EventReader, size: number) => Promise<number>

const archive =
  (where: (size: number) => number, filter = none, order: 'asc' | 'desc' = 'asc'): Question =>
  async (reader, size) => {
    const after = { availableAt: END - Math.floor(where(size)) * APART_MS, seq: 1 }
    const scan = { asOf: END - DAY, order, from: 0, to: END, after } as const
    const { events: found } = await readPage(reader, context, filter, scan, 100, signal)
    return JSON.stringify(found.map((one) => eventRecord(one, context))).length
  }

const QUESTIONS: Readonly<Record<string, Question>> = {
  'events/1m, a day, 60 windows': async (reader) => {
    const range = { from: END - DAY, to: END }
    const { windows } = await readWindows(reader, context, ONE_MINUTE, range, END, {
      after: null,
      limit: 60,
      withEmpty: false,
    })
    return JSON.stringify(windows.map(minuteWindow)).length
  },
  'events/1m, a day, 1440 windows': async (reader) => {
    const range = { from: END - DAY, to: END }
    const { windows } = await readWindows(reader, context, ONE_MINUTE, range, END, {
      after: null,
      limit: 1440,
      withEmpty: false,
    })
    return JSON.stringify(windows.map(minuteWindow)).length
  },
  'archive, first page': archive((size) => size),
  'archive, a page in the middle': archive((size) => size / 2),
  'archive, newest page': archive(() => 1440, none, 'desc'),
  'archive, one topic': archive((size) => size / 2, parseFilter({ topics: 'trade' }, [])),
}

/** Every store comes first as often as any other. */
function turned<Value>(list: readonly Value[], by: number): readonly Value[] {
  const at = ((by % list.length) + list.length) % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

export interface Timing {
  readonly name: string
  /** Median milliseconds by size. */
  readonly medians: readonly number[]
  /**
   * Largest store over smallest, both by the mean of their quickest tenth: what others on the machine take is never
   * negative, so the quickest rounds are those that tell of the store. Medians of one idle store differ by a half on a
   * busy machine, these by less than a tenth; a page that grew with the store would grow in its quickest rounds too.
   */
  readonly ratio: number
}

/** Rounds go from store to store, so that a busy machine slows all alike. */
export async function pageTimings(sizes: readonly number[]): Promise<Timing[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  try {
    const stores: { readonly size: number; readonly db: OpenDatabase; readonly reader: EventReader }[] = []
    for (const size of sizes) {
      const db = openDatabase({ file: join(folder, `${size}.sqlite`) })
      await migrate(db, 'potus', migrations)
      await insertMadeUpEvents(db, size, END)
      stores.push({ size, db, reader: createReader(db) })
    }
    const times = new Map<string, number[]>()
    for (let round = -3; round < ROUNDS; round += 1)
      for (const [name, question] of Object.entries(QUESTIONS))
        for (const { size, reader } of turned(stores, round)) {
          const begun = performance.now()
          await question(reader, size)
          const key = `${name} ${size}`
          if (round >= 0) times.set(key, [...(times.get(key) ?? []), performance.now() - begun])
        }
    for (const { db } of stores) await db.destroy()
    return Object.keys(QUESTIONS).map((name) => {
      const sorted = stores.map(({ size }) => (times.get(`${name} ${size}`) ?? []).toSorted((a, b) => a - b))
      const quickest = sorted.map((list) => mean(list.slice(0, Math.ceil(list.length * QUICKEST))))
      const medians = sorted.map((list) => list[Math.floor(list.length / 2)] ?? NaN)
      return { name, medians, ratio: (quickest.at(-1) ?? NaN) / (quickest[0] ?? NaN) }
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function mean(list: readonly number[]): number {
  return list.reduce((sum, one) => sum + one, 0) / list.length
}
