import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import { Grader, gradeLabels, type Grades } from '../../../plugins/regime/label-grades.ts'
import {
  BACKFILL,
  encodeSnapshots,
  LIVE,
  migrations,
  openSnapshots,
  type Snapshot,
  type Snapshots,
} from '../../../plugins/regime/snapshots.ts'
import { snapshotAt } from './snapshot.ts'

describe('the grades of the labels', () => {
  // Steps of half an hour, so an hour has two.
  const graded = {
    stepMinutes: 30,
    volatile: [0, 0, 1, 1, 1, 0],
    probability: [0.1, 0.3, 0.7, 0.9, 0.7, 0.3],
    boundary: [1, 1, 1, 1, 1, 1],
    forward: [0.5, 2, 4, 2, NaN, NaN],
  }

  it('equal the definitions computed by hand', () => {
    const found = gradeLabels(graded)
    expect(found.snapshots).to.equal(6)
    expect(found.share_volatile).to.equal(0.5)
    expect(found.flips_per_day).to.equal(2 / (6 / 48))
    expect(found.forward_vol_ratio).to.equal(3 / 1.25)
    // Each label and the one two steps later: 0→1, 0→1, 1→1, 1→0.
    expect(found.persistence_1h).to.equal(1 / 4)
    expect(found.volatile_persistence_1h).to.equal(1 / 2)
    expect(found.accuracy).to.equal(3 / 4)
    expect(found.brier).to.be.closeTo((0.1 ** 2 + 0.7 ** 2 + 0.3 ** 2 + 0.1 ** 2) / 4, 1e-12)
  })

  it('have a calibration error of 0 when labels are right as often as stated', () => {
    const n = 1000
    const volatile = new Uint8Array(n).fill(1)
    const forward = Float64Array.from({ length: n }, (_, i) => (i % 4 === 0 ? 0 : 2))
    const boundary = new Float64Array(n).fill(1)
    const honest = gradeLabels({
      stepMinutes: 1,
      volatile,
      forward,
      boundary,
      probability: new Float64Array(n).fill(0.75),
    })
    const boastful = gradeLabels({
      stepMinutes: 1,
      volatile,
      forward,
      boundary,
      probability: new Float64Array(n).fill(0.95),
    })
    expect(honest.ece).to.be.closeTo(0, 1e-12)
    expect(boastful.ece).to.be.closeTo(0.2, 1e-12)
  })

  it('have no figure when nothing was volatile', () => {
    const calm = gradeLabels({ ...graded, volatile: [0, 0, 0, 0, 0, 0] })
    expect(calm.forward_vol_ratio).to.be.NaN
    expect(calm.volatile_persistence_1h).to.be.NaN
  })
})

describe('the grader of stored snapshots', () => {
  const DAY = 86_400
  const START = 20_000 * DAY
  let db: OpenDatabase
  let stored: Snapshots
  beforeEach(async () => {
    db = openDatabase({ file: ':memory:' })
    await migrate(db, 'regime', migrations)
    stored = await openSnapshots(db, 'BTC-USD', 'online')
  })
  afterEach(() => db.destroy())

  /** A minute whose label, probability and volatility follow from its number, the same in every run. */
  const minute = (at: number): Snapshot => {
    const chance = (salt: number): number => ((Math.imul(at + salt, 2_654_435_761) >>> 8) % 1000) / 1000
    const volatile = chance(1) < 0.4 ? 1 : 0
    return {
      ...snapshotAt(START + 60 * at),
      volatile,
      confidence: 0.5 + chance(2) / 2,
      boundary_vol: 0.5,
      realized_vol_1h: 0.1 + chance(3) + volatile / 4,
      origin: at < 2_000 ? BACKFILL : LIVE,
    }
  }
  const add = (rows: readonly Snapshot[]): Promise<unknown> => stored.add(encodeSnapshots(rows))
  const minutes = (from: number, to: number): Snapshot[] =>
    Array.from({ length: to - from }, (_, i) => minute(from + i))
  /** The same grades from arrays. */
  const expected = (rows: readonly Snapshot[]): Grades =>
    gradeLabels({
      stepMinutes: 1,
      volatile: rows.map(({ volatile }) => volatile),
      probability: rows.map(({ volatile, confidence }) => (volatile === 1 ? confidence : 1 - confidence)),
      boundary: rows.map(({ boundary_vol }) => boundary_vol),
      forward: rows.map((_, i) => rows[i + 60]?.realized_vol_1h ?? NaN),
    })
  const expectGrades = (found: Grades, wanted: Grades): void => {
    for (const [name, value] of Object.entries(wanted))
      expect(found[name as keyof Grades], name).to.be.closeTo(value, 1e-9)
  }

  /** Whether the first label of a run is a change depends on the one before it. */
  const withoutFlips = (grades: Grades): Grades => ({ ...grades, flips_per_day: 0 })

  it('finds the grades of the whole run, however many calls it reads it in', async () => {
    const rows = minutes(0, 4_000)
    const grader = new Grader(stored, 90)
    for (const [from, to] of [
      [0, 1],
      [1, 61],
      [61, 2_500],
      [2_500, 4_000],
    ] as const) {
      await add(rows.slice(from, to))
      await grader.grade(START + 60 * to)
    }
    const [found, again] = await Promise.all([grader.grade(START + 3 * DAY), grader.grade(START + 3 * DAY)])
    expect(again).to.deep.equal(found)
    expectGrades(found.all, expected(rows))
    expect([found.others.snapshots, found.live.snapshots]).to.deep.equal([2_000, 2_000])
    expectGrades(withoutFlips(found.live), withoutFlips(expected(rows.slice(2_000))))
    expect([found.all.start, found.all.end]).to.deep.equal([START, START + 60 * 3_999])
    expect([found.live.start, found.others.end]).to.deep.equal([START + 60 * 2_000, START + 60 * 1_999])
  })

  it('grades the rule of the last hour on the same snapshots, as certain', async () => {
    // A minute without a volatility has no label by that rule, and is no outcome.
    const rows = minutes(0, 4_000).map((row, at) => (at % 100 === 99 ? { ...row, realized_vol_1h: null } : row))
    await add(rows)
    const { all } = await new Grader(stored, 90).grade(START + 3 * DAY)
    const label = (row: Snapshot | undefined): number | null =>
      row?.realized_vol_1h == null ? null : Number(row.realized_vol_1h > row.boundary_vol)
    const judged = rows.flatMap((row, at) => {
      const [now, later] = [label(row), label(rows[at + 60])]
      return now === null || later === null ? [] : [Number(now === later)]
    })
    const right = judged.reduce((sum, one) => sum + one, 0) / judged.length
    expect(all.lastHour.snapshots).to.equal(3_960)
    for (const figure of ['accuracy', 'persistence_1h'] as const)
      expect(all.lastHour[figure], figure).to.be.closeTo(right, 1e-12)
    for (const figure of ['brier', 'ece'] as const) expect(all.lastHour[figure], figure).to.be.closeTo(1 - right, 1e-12)
  })

  it('forgets days before the window', async () => {
    await add(minutes(0, 4 * 1440))
    const grader = new Grader(stored, 2)
    expect((await grader.grade(START + 2 * DAY)).all.snapshots).to.equal(2 * 1440 + 1)
    const [last, fresh] = [grader, new Grader(stored, 2)].map((one) => one.grade(START + 4 * DAY - 60))
    expect((await last)!.all.snapshots).to.equal(3 * 1440)
    const { start, end, lastHour, ...wanted } = (await fresh)!.all
    expectGrades(withoutFlips((await last)!.all), withoutFlips(wanted))
    expectGrades(withoutFlips((await last)!.all.lastHour), withoutFlips(lastHour))
    expect([(await last)!.all.start, (await last)!.all.end]).to.deep.equal([start, end])
  })

  it('compares a label with the minute an hour later, and with none if that is missing', async () => {
    const calm = { volatile: 0, confidence: 0.9, boundary_vol: 0.5, realized_vol_1h: 0.1 } as const
    const rows = minutes(0, 300).map((row) => ({ ...row, ...calm }))
    // Ten minutes are missing, and so is what followed ten others. One of the rest proves its label wrong.
    rows.splice(100, 10)
    await add(rows.map((row, at) => (at === 200 ? { ...row, realized_vol_1h: 2 } : row)))
    const { all } = await new Grader(stored, 90).grade(START + DAY)
    expect(all.snapshots).to.equal(290)
    expect(all.accuracy).to.be.closeTo(1 - 1 / (290 - 10 - 60), 1e-12)
    expect(all.flips_per_day).to.equal(0)
  })
})
