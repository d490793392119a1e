/** What a process remembers of the snapshots is what the database would answer, at every moment and whoever writes. */
import { expect } from 'chai'
import fc from 'fast-check'
import {
  type Call,
  type Handlers,
  InvalidInput,
  JsonReply,
  NotHeld,
  type Plugin,
  Reply,
  ServiceError,
  Unavailable,
} from 'tollgate/plugin'
import type { OpenDatabase } from '../../../gateway/stores/database.ts'
import { roundTo } from '../../../plugins/lib/quant/rounding.ts'
import { formatSeconds, requireEpochSeconds } from '../../../plugins/lib/time/timestamps.ts'
import regime from '../../../plugins/regime/index.ts'
import { turnsPerYear } from '../../../plugins/regime/regime-methodology.ts'
import { RememberedSnapshots } from '../../../plugins/regime/remembered-snapshots.ts'
import {
  encodeSnapshots,
  HELD,
  LIVE,
  openSnapshots,
  type Snapshot,
  type Snapshots,
} from '../../../plugins/regime/snapshots.ts'
import { noTradeBand } from '../../../plugins/regime/volatility-horizons.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { openPluginHost } from '../plugin-host.ts'
import { snapshotAt } from './snapshot.ts'

const SYMBOL = 'BTC-USD'
const ORIGIN = 'recorded'
const MINUTE = 60
const HOUR = 3600
const DAY = 24 * HOUR
/** The first snapshot. */
const START = Date.UTC(2026, 4, 1, 12) / 1000
const BASE_HOURS = 40
/** Holes in the data: an early one, and one among the newest snapshots. */
const HOLES = [
  { from: START + 3 * HOUR + 25 * MINUTE, to: START + 6 * HOUR + 10 * MINUTE },
  { from: START + 37 * HOUR + 50 * MINUTE, to: START + 39 * HOUR + 5 * MINUTE },
] as const

interface Question {
  readonly operation: 'getRegimeCurrent' | 'getRegimeSample' | 'getRegimeHistory'
  readonly query: { readonly start?: string; readonly end?: string; readonly limit?: number }
  /** Epoch milliseconds. */
  readonly asOf: number
}

/** A moment in seconds after the first snapshot of all, or after the newest one. */
interface Moment {
  readonly of: 'first' | 'newest'
  readonly after: number
}

interface DrawnQuestion {
  readonly operation: Question['operation']
  readonly start?: Moment
  readonly end?: Moment
  readonly limit: number
  readonly asOf: Moment
}

type Handler = (call: Call) => unknown

const range = (from: number, to: number, step: number): number[] =>
  Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, nth) => from + nth * step)

/** Minutes that are stored late, long after those that follow them. */
const LATE = [
  ...range(START + 8 * HOUR, START + 9.5 * HOUR, 3 * MINUTE),
  ...range(START + 33 * HOUR, START + 34 * HOUR, 4 * MINUTE),
]

/** A snapshot with figures of its own. Those within a hole became known when it ended. */
function snapshotOf(time: number): Snapshot {
  const drawn = (time / MINUTE) * 7919
  return {
    ...snapshotAt(time),
    volatile: drawn % 3 === 0 ? 1 : 0,
    confidence: (drawn % 10_000) / 10_000,
    position_scalar: 0.25 + (drawn % 12_500) / 10_000,
    realized_vol_1h: drawn % 5 === 0 ? null : (drawn % 777) / 1000,
    since: time - (drawn % 90) * MINUTE,
    bars_used: 1 + (drawn % 1000),
    known_at: HOLES.find(({ from, to }) => time >= from && time < to)?.to ?? time,
  }
}

const encoded = (times: readonly number[]) => encodeSnapshots(times.map(snapshotOf))

/** The first snapshot of the first pass, and all that it stores. */
const FIRST = START + 2 * HOUR
const FIRST_PASS = encoded(range(FIRST, START + BASE_HOURS * HOUR, MINUTE).filter((time) => !LATE.includes(time)))

/** What a handler answered, as it is sent, or its refusal. */
async function sent(answer: Promise<unknown>): Promise<string> {
  try {
    const value = await answer
    if (value instanceof JsonReply) return value.json.toString()
    return JSON.stringify(value instanceof Reply ? value.body : value)
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code}: ${error.message} ${JSON.stringify(error.fields)}`
    throw error
  }
}

const market: Plugin = {
  name: 'market',
  setup: () => ({
    handlers: { getMarketStatus: () => ({ symbol: SYMBOL, origin: ORIGIN, ready: false, series: [] }) },
  }),
}

/** A process that answers from memory. */
async function openProcess(db: OpenDatabase): Promise<(question: Question) => Promise<string>> {
  const settings = { symbol: SYMBOL, symbols: [], since: formatSeconds(START) }
  const hosted = [
    { plugin: market, settings: {} },
    { plugin: regime, settings },
  ]
  const { registrations } = await openPluginHost(hosted, { db, now: () => new Date(START * 1000) })
  const [{ handlers: ofMarket }, { handlers }] = registrations as { handlers: Handlers<string> }[] as [
    { handlers: Record<string, Handler> },
    { handlers: Record<string, Handler> },
  ]
  return ({ operation, query, asOf }) => {
    const call = {
      input: { params: {}, query, body: undefined },
      asOf: new Date(asOf),
      operation: { id: operation, maxFreshnessSeconds: operation === 'getRegimeSample' ? DAY : 0 },
      ask: async (id: string) => ofMarket[id]!({} as Call),
    } as unknown as Call
    return sent((async () => handlers[operation]!(call))())
  }
}

/** The answer of a process that remembers nothing. */
function storedAnswer(stored: Snapshots, { operation, query, asOf }: Question): Promise<string> {
  const at = Math.floor(asOf / 1000)
  return sent(
    operation === 'getRegimeHistory' ? storedHistory(stored, query, at) : storedSnapshot(stored, operation, at),
  )
}

/** The refusal of what is not computed yet: the model goes from START to where the first pass began. */
async function waiting(stored: Snapshots): Promise<Unavailable> {
  const missing = await stored.missing()
  const share = missing ? (missing.from - START) / (missing.to - START) : 1
  const percent = Number.isNaN(share) ? 0 : Math.min(99, Math.max(0, Math.floor(100 * share)))
  const message = `${percent}% of the history is computed. Nothing was charged; ask again in a few seconds.`
  return new Unavailable(message, 10, percent / 100)
}

const itemOf = (snapshot: Pick<Snapshot, 'as_of' | 'volatile' | 'confidence' | 'position_scalar'>) => ({
  as_of: formatSeconds(snapshot.as_of),
  symbol: SYMBOL,
  regime: snapshot.volatile === 1 ? 'VOLATILE' : 'STABLE',
  confidence: snapshot.confidence,
  position_scalar: snapshot.position_scalar,
})

function bandOf(scalar: number) {
  const { low, high } = noTradeBand('1h', scalar)
  return { low: roundTo(low, 4), high: roundTo(high, 4), turns_per_year: turnsPerYear('1h') }
}

async function storedSnapshot(stored: Snapshots, operation: string, at: number): Promise<object> {
  const found = await stored.latest(at)
  if (!found) throw await waiting(stored)
  const age = at - found.as_of
  if (age > 300) throw new Unavailable(`The last bar is ${age} seconds old, more than 300. Nothing was charged.`)
  return {
    ...itemOf(found),
    forecast_vol: found.forecast_vol,
    boundary_vol: found.boundary_vol,
    realized_vol_1h: found.realized_vol_1h,
    horizon_minutes: 60,
    since: formatSeconds(found.since),
    annualisation: 365,
    bars_used: found.bars_used,
    data_age_seconds: age,
    model: 'har-schmitt/1',
    data_mode: 'sample',
    ...(operation === 'getRegimeSample' ? { delayed_by_seconds: DAY } : {}),
    horizon: '1h',
    no_trade_band: bandOf(found.position_scalar),
  }
}

async function storedHistory(stored: Snapshots, query: Question['query'], at: number): Promise<object> {
  const limit = query.limit!
  const until = query.end === undefined ? at + 1 : requireEpochSeconds(query.end, 'end')
  const from = query.start === undefined ? Math.max(0, until - limit * 60) : requireEpochSeconds(query.start, 'start')
  if (from >= until) throw new InvalidInput(`must be before end, which is ${formatSeconds(until)}`, ['query', 'start'])
  const missing = await stored.missing()
  const columns = ['as_of', 'volatile', 'confidence', 'position_scalar'] as const
  const found = await stored.between(columns, { from, to: until, asOf: at, limit: limit + 1 })
  const next = found[limit]?.as_of ?? null
  const isComputing = missing !== null && from < missing.to
  if (isComputing && (next === null ? until : next + 1) > Math.max(missing.from, START)) throw await waiting(stored)
  const page = found.slice(0, limit)
  if (page.length === 0) throw await nothingHeld(stored, from, until, at)
  const newest = page.at(-1)!.as_of
  // Minutes that closed within the last minute count if they have a snapshot.
  const due = Math.max(newest, at - MINUTE) + 1
  const minutes = range(Math.ceil(from / MINUTE) * MINUTE, next ?? Math.min(until, due), MINUTE).length
  return {
    symbol: SYMBOL,
    start: formatSeconds(from),
    end: formatSeconds(until),
    count: page.length,
    next_cursor: next === null ? null : formatSeconds(next),
    next_start: next === null ? null : formatSeconds(next),
    coverage: Math.round((page.length / minutes) * 10_000) / 10_000,
    newest: formatSeconds(newest),
    data_mode: 'sample',
    snapshots: page.map(itemOf),
  }
}

/** The refusal of a window without snapshots. */
async function nothingHeld(stored: Snapshots, from: number, until: number, at: number): Promise<Error> {
  const columns = ['as_of'] as const
  const known = await stored.between(columns, { from: 0, to: Number.MAX_SAFE_INTEGER, asOf: at, limit: 1_000_000 })
  const [first, last] = [known.at(0)?.as_of, known.at(-1)?.as_of]
  if (first === undefined || last === undefined) return waiting(stored)
  if (from > last && from <= at)
    return new Unavailable(`The newest snapshot is of ${formatSeconds(last)}: the bars are late. Nothing was charged.`)
  const before = known.findLast(({ as_of }) => as_of < from)
  const end = before ? before.as_of + 60 : Math.min(first + until - from, last + 60)
  const held = `${formatSeconds(first)} to ${formatSeconds(last)}`
  return new NotHeld(`There are no snapshots in this window. They reach from ${held}. Nothing was charged.`, {
    start: new Date(Math.max(first, end - (until - from)) * 1000),
    end: new Date(end * 1000),
  })
}

/** Moments are often at the edge of an hour, within a hole, or near the newest snapshots. */
const moment: fc.Arbitrary<Moment> = fc.oneof(
  fc.record({
    of: fc.constant('first' as const),
    after: fc.oneof(
      fc.integer({ min: -2 * HOUR, max: (BASE_HOURS + 6) * HOUR }),
      fc.integer({ min: -2, max: BASE_HOURS + 2 }).map((hour) => hour * HOUR),
      ...HOLES.map(({ from, to }) => fc.integer({ min: from - START - 70, max: to - START + 70 })),
    ),
  }),
  fc.record({ of: fc.constant('newest' as const), after: fc.integer({ min: -5000, max: 400 }) }),
)
const limit = fc.oneof(fc.integer({ min: 1, max: 200 }), fc.constantFrom(1, 59, 60, 61, 1000, 10_000))
const question: fc.Arbitrary<DrawnQuestion> = fc.record(
  {
    operation: fc.constantFrom('getRegimeHistory', 'getRegimeHistory', 'getRegimeCurrent', 'getRegimeSample'),
    start: moment,
    end: moment,
    limit,
    asOf: fc.oneof(moment, fc.constant({ of: 'newest' as const, after: 30 })),
  },
  { requiredKeys: ['operation', 'limit', 'asOf'] },
)

/**
 * Something that a process stores: minutes after the last one, ones that come late, both, the next of those before the
 * first pass, or only the note of how far that has come.
 */
const write = fc.record({
  by: fc.constantFrom(0, 1),
  kind: fc.constantFrom('newer', 'newer', 'late', 'both', 'fill', 'note'),
  minutes: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 30, max: 90 }), fc.constant(800)),
})

for (const name of ['a SQLite file', 'PostgreSQL'])
  describe(`the remembered snapshots on ${name}`, function () {
    this.timeout(240_000)
    let store: TestDatabase | null
    let databases: readonly [OpenDatabase, OpenDatabase]
    let stored: readonly [Snapshots, Snapshots]
    /** Times of the first snapshot of the first pass, after the last one, and until when earlier ones are filled in. */
    let [first, next, filled] = [0, 0, 0]
    /** How many of LATE are stored. */
    let arrived = 0
    const realNow = performance.now
    let passed = 0

    beforeEach(async function () {
      store = await DATABASES[name]!()
      if (!store) return this.skip()
      databases = [store.db, store.open!()]
      await openProcess(databases[0])
      stored = [await openSnapshots(databases[0], SYMBOL, ORIGIN), await openSnapshots(databases[1], SYMBOL, ORIGIN)]
      // Time passes as the test says.
      passed = 0
      performance.now = () => 1e6 + passed
    })
    afterEach(async () => {
      performance.now = realNow
      await store?.drop()
    })

    /** As after the first pass of a first start: the newest snapshots are stored, and earlier ones are being computed. */
    async function begin(): Promise<void> {
      for (const table of ['regime_snapshots', 'regime_checkpoints']) await databases[0](table).delete()
      await databases[0]('regime_series').update({ snapshots: 0, filled_before: null })
      ;[first, next, filled, arrived] = [FIRST, START + BASE_HOURS * HOUR, START, 0]
      await stored[0].fillBefore(first)
      await stored[0].add(FIRST_PASS)
    }

    /** Stores everything that is missing. */
    async function finish(): Promise<void> {
      await stored[0].add(encoded([...LATE, ...range(filled, first, MINUTE)]))
      await stored[0].fillBefore(null)
    }

    async function keepMore(snapshots: Snapshots, kind: string, minutes: number): Promise<void> {
      if (kind === 'note') {
        await snapshots.keep(filled - MINUTE, Buffer.alloc(0))
        if (filled === first) await snapshots.fillBefore(null)
        return
      }
      const times: number[] = []
      if (kind === 'fill') {
        const until = Math.min(first, filled + minutes * MINUTE)
        times.push(...range(filled, until, MINUTE))
        filled = until
      }
      if (kind === 'late' || kind === 'both') {
        times.push(...LATE.slice(arrived, arrived + minutes))
        arrived += minutes
      }
      if (kind === 'newer' || kind === 'both') {
        times.push(...range(next, next + minutes * MINUTE, MINUTE))
        next += minutes * MINUTE
      }
      await snapshots.add(encoded(times))
    }

    function asked({ operation, start, end, limit, asOf }: DrawnQuestion): Question {
      const at = ({ of, after }: Moment): number => after + (of === 'first' ? START : next - MINUTE)
      return {
        operation,
        query: {
          ...(start ? { start: formatSeconds(at(start)) } : {}),
          ...(end ? { end: formatSeconds(at(end)) } : {}),
          limit,
        },
        asOf: at(asOf) * 1000 + 321,
      }
    }

    it('are answered as the database would, whoever writes and whatever is asked', () =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(write, fc.array(question, { minLength: 1, maxLength: 6 })), {
            minLength: 2,
            maxLength: 10,
          }),
          async (steps) => {
            await begin()
            const processes = [await openProcess(databases[0]), await openProcess(databases[1])]
            for (const [{ by, kind, minutes }, questions] of steps) {
              await keepMore(stored[by], kind, minutes)
              passed += 1_000
              // Nobody writes before the next step, so the database would answer the second time as the first.
              const wanted: string[] = []
              for (const drawn of questions) wanted.push(await storedAnswer(stored[0], asked(drawn)))
              for (const [nth, drawn] of [...questions.entries(), ...questions.entries()])
                for (const ask of processes) expect(await ask(asked(drawn))).to.equal(wanted[nth])
            }
          },
        ),
        { numRuns: 25 },
      ))

    it('are answered as they were before a write or after it while another process writes', () =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.constantFrom('newer', 'late', 'both'), fc.integer({ min: 1, max: 120 }), question), {
            minLength: 1,
            maxLength: 6,
          }),
          async (steps) => {
            await begin()
            const ask = await openProcess(databases[1])
            for (const [kind, minutes, drawn] of steps) {
              const question = asked(drawn)
              const before = await storedAnswer(stored[0], question)
              passed += 1_000
              const [answer] = await Promise.all([ask(question), keepMore(stored[0], kind, minutes)])
              expect([before, await storedAnswer(stored[0], question)]).to.include(answer)
              passed += 1_000
              expect(await ask(question)).to.equal(await storedAnswer(stored[0], question))
            }
          },
        ),
        { numRuns: 25 },
      ))

    it('make up the whole history page by page', async () => {
      await begin()
      await finish()
      const ask = await openProcess(databases[1])
      const asOf = next * 1000
      const history = async (start: string, limit: number) =>
        JSON.parse(await ask({ operation: 'getRegimeHistory', query: { start, limit }, asOf })) as {
          next_start: string | null
          snapshots: readonly object[]
        }
      for (const limit of [37, 60, 1000, 10_000]) {
        const pages: object[] = []
        for (let start: string | null = formatSeconds(0); start !== null;) {
          const page = await history(start, limit)
          pages.push(...page.snapshots)
          start = page.next_start
        }
        expect(pages).to.deep.equal(range(START, next, MINUTE).map((at) => itemOf(snapshotOf(at))))
      }
    })

    it('are shown as of every moment of a hole in the data', async () => {
      await begin()
      await finish()
      const ask = await openProcess(databases[1])
      for (const hole of HOLES)
        for (const at of range(hole.from - 2 * HOUR, hole.to + HOUR, 13 * MINUTE))
          for (const limit of [20, 100, 300]) {
            const question = { operation: 'getRegimeHistory', query: { limit }, asOf: at * 1000 } as const
            expect(await ask(question)).to.equal(await storedAnswer(stored[0], question))
          }
    })

    it('count the bars of an hour alike in memory and in the database', async () => {
      await begin()
      await finish()
      const last = next + 27 * HOUR
      const hasBar = (at: number): boolean => (at / MINUTE) % 7 !== 0
      const rows = range(next, last, MINUTE).map((at): Snapshot => ({
        ...snapshotOf(at),
        origin: hasBar(at) ? LIVE : HELD,
      }))
      await stored[0].add(encodeSnapshots(rows))
      const label = { symbol: SYMBOL, hasOrigin: true }
      const remembered = new RememberedSnapshots({ db: databases[1], stored: stored[1], label })
      await remembered.latest(last)
      // The first minutes of the series, the first with gaps, and the newest: only these are in memory.
      for (const at of [START, START + 9 * MINUTE, next + HOUR / 2, next + 2 * HOUR, last - HOUR, last - MINUTE]) {
        const due = range(Math.max(START, at - HOUR + MINUTE), at + MINUTE, MINUTE)
        const held = due.filter((minute) => minute >= next && !hasBar(minute)).length
        const counted = remembered.barCoverage(snapshotOf(at), last, MINUTE)
        expect(counted instanceof Promise, formatSeconds(at)).to.equal(at < last - 25 * HOUR)
        expect(await counted, formatSeconds(at)).to.be.closeTo(1 - held / due.length, 1e-9)
      }
    })

    it('are sold from the minute on up to which the first pass is noted to have come', async () => {
      await begin()
      const ask = await openProcess(databases[1])
      const page = async (from: number): Promise<string> => {
        passed += 1_000
        const query = { start: formatSeconds(from), limit: 10 }
        return (await ask({ operation: 'getRegimeHistory', query, asOf: next * 1000 })).slice(0, 17)
      }
      const [refused, sold] = ['product_suspended', '{"symbol":"BTC-US']
      await keepMore(stored[0], 'fill', 60)
      expect(await page(START)).to.equal(refused)
      await keepMore(stored[0], 'note', 0)
      expect([await page(START), await page(START + HOUR)]).to.deep.equal([sold, refused])
      await keepMore(stored[0], 'fill', 60)
      expect(await page(START + HOUR)).to.equal(refused)
      await keepMore(stored[0], 'note', 0)
      expect(await page(START + HOUR)).to.equal(sold)
      expect(await page(first - 5 * MINUTE)).to.equal(sold)
    })

    it('are read again when minutes come late, also together with new ones', async () => {
      await begin()
      const ask = await openProcess(databases[1])
      const questions = [LATE[0]!, LATE.at(-1)! - HOUR, next - 5 * MINUTE].map((from) => ({
        operation: 'getRegimeHistory' as const,
        query: { start: formatSeconds(from), limit: 120 },
        asOf: (next + HOUR) * 1000,
      }))
      for (const kind of ['newer', 'late', 'both', 'late', 'both'])
        for (const question of [...questions, ...questions]) {
          expect(await ask(question)).to.equal(await storedAnswer(stored[0], question))
          await keepMore(stored[0], kind, 4)
          passed += 1_000
        }
    })

    it('may lie further apart than the newest, and may be few', async () => {
      await begin()
      await finish()
      // Half a year without any, then one an hour, then one a minute.
      const later = [
        ...range(next + 180 * DAY, next + 182 * DAY, HOUR),
        ...range(next + 183 * DAY, next + 184 * DAY, 60),
      ]
      await stored[0].add(encoded(later))
      const ask = await openProcess(databases[1])
      const starts = [0, START, next - HOUR, next + 10, next + 100 * DAY, ...later.filter((_, nth) => nth % 40 === 7)]
      const asOf = later.at(-1)! * 1000
      const questions = starts.flatMap((start) =>
        [1, 7, 300, 3000].map((limit) => {
          const query = { start: formatSeconds(start), limit }
          return { operation: 'getRegimeHistory', query, asOf } as const
        }),
      )
      const wanted: string[] = []
      for (const question of questions) wanted.push(await storedAnswer(stored[0], question))
      for (const round of [1, 2, 3])
        for (const [nth, question] of questions.entries())
          expect(await ask(question), `round ${round}`).to.equal(wanted[nth])
    })

    it('show what another process wrote once a second has passed, and what this one wrote at once', async () => {
      await begin()
      const ask = await openProcess(databases[1])
      const current = async (): Promise<string> => {
        const asked = { operation: 'getRegimeCurrent', query: {}, asOf: next * 1000 } as const
        return (JSON.parse(await ask(asked)) as { as_of: string }).as_of
      }
      const newest = formatSeconds(next - MINUTE)
      expect(await current()).to.equal(newest)
      passed += 400
      await keepMore(stored[0], 'newer', 1)
      passed += 599
      expect(await current()).to.equal(newest)
      passed += 1
      expect(await current()).to.equal(formatSeconds(next - MINUTE))
      await keepMore(stored[1], 'newer', 1)
      expect(await current()).to.equal(formatSeconds(next - MINUTE))
    })

    it('cost no statement within a second, and one of the state after that, until there are more', async () => {
      await begin()
      await finish()
      const ask = await openProcess(databases[1])
      let statements = 0
      databases[1].on('query', () => (statements += 1))
      const spent = (): number => {
        const counted = statements
        statements = 0
        return counted
      }
      const now = (next - MINUTE) * 1000
      const current = (): Promise<string> => ask({ operation: 'getRegimeCurrent', query: {}, asOf: now })
      const sample = (): Promise<string> => ask({ operation: 'getRegimeSample', query: {}, asOf: now - DAY * 1000 })
      const page = (query: Question['query']): Promise<string> =>
        ask({ operation: 'getRegimeHistory', query, asOf: now })
      const pages = [{ limit: 1000 }, { start: formatSeconds(HOLES[0].from), limit: 600 }]
      await current()
      spent()
      for (const query of pages) {
        await page(query)
        // The blocks, and whether somebody wrote meanwhile.
        expect(spent()).to.equal(2)
      }
      for (let call = 0; call < 10; call += 1) {
        for (const answer of [await current(), await sample(), ...(await Promise.all(pages.map(page)))])
          expect(answer).not.to.match(/^product_suspended/)
      }
      expect(spent()).to.equal(0)
      passed += 1_000
      await Promise.all([current(), sample(), ...pages.map(page)])
      expect(spent()).to.equal(1)
      // A new minute is added to what is remembered.
      await keepMore(stored[0], 'newer', 1)
      passed += 1_000
      for (const query of pages) await page(query)
      await page({ end: formatSeconds(next), limit: 100 })
      expect(spent()).to.equal(3)
    })
  })
