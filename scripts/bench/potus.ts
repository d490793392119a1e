/**
 * `npm run bench:potus`, or `node --import tsx/esm scripts/bench/potus.ts [sizes...]`: how long `events/1m` over a day and
 * pages of the archive take at 10,000, 100,000 and 1,000,000 events of one density, and how the largest compares with
 * the smallest. Rounds go from store to store, so that a busy machine slows all alike.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../gateway/stores/database.ts'
import { migrate } from '../../gateway/stores/migrations.ts'
import { filterOf, pageOf } from '../../plugins/potus/answers/filter.ts'
import { recordOf } from '../../plugins/potus/answers/record.ts'
import { minuteOf, ONE_MINUTE, windowsIn } from '../../plugins/potus/answers/windows.ts'
import { readSources } from '../../plugins/potus/sources/source.ts'
import { createReader, type Reader } from '../../plugins/potus/store/read.ts'
import { migrations } from '../../plugins/potus/store/tables.ts'
import { APART_MS, stuff } from './potus/stuff.ts'

const SIZES = [10_000, 100_000, 1_000_000]
const ROUNDS = 90
const DAY = 86_400_000
const END = Date.UTC(2026, 10, 20)

const sources = readSources()
const marks = {
  dataMode: 'online',
  shift: () => null,
  sources: new Map(sources.map((source) => [source.id, source])),
} as const
const { signal } = new AbortController()
const none = filterOf({}, [])

type Question = (reader: Reader, size: number) => Promise<number>

const archive =
  (where: (size: number) => number, filter = none, order: 'asc' | 'desc' = 'asc'): Question =>
  async (reader, size) => {
    const after = { availableAt: END - Math.floor(where(size)) * APART_MS, seq: 1 }
    const scan = { asOf: END - DAY, order, from: 0, to: END, after } as const
    const { found } = await pageOf(reader, marks, filter, scan, 100, signal)
    return JSON.stringify(found.map((one) => recordOf(one, marks))).length
  }

const QUESTIONS: Readonly<Record<string, Question>> = {
  'events/1m, a day, 60 windows': async (reader) => {
    const range = { from: END - DAY, to: END }
    const { windows } = await windowsIn(reader, marks, ONE_MINUTE, range, END, {
      after: null,
      limit: 60,
      withEmpty: false,
    })
    return JSON.stringify(windows.map(minuteOf)).length
  },
  'events/1m, a day, 1440 windows': async (reader) => {
    const range = { from: END - DAY, to: END }
    const { windows } = await windowsIn(reader, marks, ONE_MINUTE, range, END, {
      after: null,
      limit: 1440,
      withEmpty: false,
    })
    return JSON.stringify(windows.map(minuteOf)).length
  },
  'archive, first page': archive((size) => size),
  'archive, a page in the middle': archive((size) => size / 2),
  'archive, newest page': archive(() => 1440, none, 'desc'),
  'archive, one topic': archive((size) => size / 2, filterOf({ topics: 'trade' }, [])),
}

/** Every store comes first as often as any other. */
function turned<Value>(list: readonly Value[], by: number): readonly Value[] {
  const at = ((by % list.length) + list.length) % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
try {
  const sizes = process.argv.slice(2).map(Number).filter(Boolean)
  const stores = []
  for (const size of sizes.length > 0 ? sizes : SIZES) {
    const db = openDatabase({ file: join(folder, `${size}.sqlite`) })
    await migrate(db, 'potus', migrations)
    await stuff(db, size, END)
    stores.push({ size, db, reader: createReader(db) })
  }
  const times = new Map<string, number[]>()
  for (let round = -3; round < ROUNDS; round += 1)
    for (const [name, question] of Object.entries(QUESTIONS))
      for (const { size, reader } of turned(stores, round)) {
        const begun = performance.now()
        await question(reader, size)
        if (round >= 0)
          times.set(`${name} ${size}`, [...(times.get(`${name} ${size}`) ?? []), performance.now() - begun])
      }
  const median = (list: readonly number[]): number =>
    list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] as number
  for (const name of Object.keys(QUESTIONS)) {
    const medians = stores.map(({ size }) => median(times.get(`${name} ${size}`) ?? [NaN]))
    const cells = stores.map(({ size }, at) => `${size.toLocaleString('en')}: ${(medians[at] as number).toFixed(2)} ms`)
    const ratio = (medians.at(-1) as number) / (medians[0] as number)
    process.stdout.write(`${name.padEnd(32)} ${cells.join('   ')}   ratio ${ratio.toFixed(2)}\n`)
  }
  for (const { db } of stores) await db.destroy()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
