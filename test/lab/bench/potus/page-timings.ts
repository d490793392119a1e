/**
 * Times pages of the feed on stores of three sizes with the same density of events. The time of a page must not grow with
 * the size of the store.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OpenDatabase, openDatabase } from '../../../../gateway/stores/database.ts'
import { migrate } from '../../../../gateway/stores/migrations.ts'
import { median } from '../../../../plugins/lib/quant/rolling-median.ts'
import { parseFilter, readPage } from '../../../../plugins/potus/answers/event-filters.ts'
import { eventRecord } from '../../../../plugins/potus/answers/event-record.ts'
import { minuteWindow, ONE_MINUTE, readWindows } from '../../../../plugins/potus/answers/event-windows.ts'
import { readSources } from '../../../../plugins/potus/sources/source.ts'
import { createReader, type EventReader } from '../../../../plugins/potus/store/event-reader.ts'
import { migrations } from '../../../../plugins/potus/store/tables.ts'
import { APART_MS, insertMadeUpEvents } from '../../../plugins/potus/made-up-events.ts'

export const SIZES = [10_000, 100_000, 1_000_000]
export const ROUNDS = 120
/** The share of rounds that counts as undisturbed by other work on the machine. */
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

/** Reads one page and returns its length as JSON. */
type PageQuery = (reader: EventReader, size: number) => Promise<number>

/** Reads a page of the archive that starts `eventsBeforeEnd(size)` events before the newest. */
const archive =
  (eventsBeforeEnd: (size: number) => number, filter = none, order: 'asc' | 'desc' = 'asc'): PageQuery =>
  async (reader, size) => {
    const after = { availableAt: END - Math.floor(eventsBeforeEnd(size)) * APART_MS, seq: 1 }
    const scan = { asOf: END - DAY, order, from: 0, to: END, after } as const
    const { events: found } = await readPage(reader, context, filter, scan, 100, signal)
    return JSON.stringify(found.map((one) => eventRecord(one, context))).length
  }

const PAGES: Readonly<Record<string, PageQuery>> = {
  'events/1m, a day, 60 windows': async (reader) => {
    const range = { from: END - DAY, to: END }
    const { windows } = await readWindows(reader, context, ONE_MINUTE, range, END, {
      after: null,
      limit: 60,
      withEmpty: false,
    })
    return JSON.stringify(windows.map(minuteWindow)).length
  },
  'events/1m, a day, 1,440 windows': async (reader) => {
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

/** Rotates a list, so that every store comes first equally often. */
function rotated<Value>(list: readonly Value[], by: number): readonly Value[] {
  const at = ((by % list.length) + list.length) % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

export interface Timing {
  readonly name: string
  /** Median milliseconds, one for each size. */
  readonly medians: readonly number[]
  /**
   * Time of the largest store divided by that of the smallest. Each time is the mean of the quickest tenth of the rounds:
   * other work on the machine only adds time, so the quickest rounds show the cost of the store. On a busy machine the
   * medians of one store differ by up to a half, these means by less than a tenth.
   */
  readonly ratio: number
}

/** Times every page on stores of the given sizes. The stores take turns, so that a busy machine slows all of them. */
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
      for (const [name, readPageOf] of Object.entries(PAGES))
        for (const { size, reader } of rotated(stores, round)) {
          const begun = performance.now()
          await readPageOf(reader, size)
          const key = `${name} ${size}`
          if (round >= 0) times.set(key, [...(times.get(key) ?? []), performance.now() - begun])
        }
    for (const { db } of stores) await db.destroy()
    return Object.keys(PAGES).map((name) => {
      const sorted = stores.map(({ size }) => (times.get(`${name} ${size}`) ?? []).toSorted((a, b) => a - b))
      const quickest = sorted.map((list) => mean(list.slice(0, Math.ceil(list.length * QUICKEST))))
      const medians = sorted.map(median)
      return { name, medians, ratio: (quickest.at(-1) ?? NaN) / (quickest[0] ?? NaN) }
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function mean(list: readonly number[]): number {
  return list.reduce((sum, one) => sum + one, 0) / list.length
}
