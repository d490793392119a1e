import { deserialize, serialize } from 'node:v8'
import { expect } from 'chai'
import fc from 'fast-check'
import { createSampleBars, SAMPLE_START } from '../../../plugins/market/sample-bars.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { parkinson } from '../../../plugins/lib/quant/volatility-estimators.ts'
import {
  createMeasures,
  FEATURES,
  hourlyVolatility,
  measure,
  recomputeSums,
  writeMeasuredFeatures,
} from '../../../plugins/regime/volatility-features.ts'
import { advance, createModel, hasOwnFit, type ModelState, type Step } from '../../../plugins/regime/regime-model.ts'

const DAY = 86_400
const sample = createSampleBars({
  symbol: 'BTC-USD',
  price: 98_000,
  volatility: 0.5,
  turnover: 2e9,
  tick: 0.01,
  session: '24x7',
})
const days = (count: number) => sample.read(SAMPLE_START, SAMPLE_START + count * DAY)
const BARS = days(70)

type Change = (
  i: number,
  bar: [time: number, open: number, high: number, low: number, close: number],
) => typeof bar | null

/** Returns the model's steps for bars [from, to) of the sample. `change` may change or remove a bar. */
function run(from: number, to: number, model: ModelState = createModel(1), change: Change = (_, bar) => bar): Step[] {
  const steps: Step[] = []
  for (let i = from; i < to; i += 1) {
    const bar = change(i, [BARS.time[i]!, BARS.open[i]!, BARS.high[i]!, BARS.low[i]!, BARS.close[i]!])
    if (bar) advance(model, bar[0] / 60, bar[1], bar[2], bar[3], bar[4], (step) => steps.push({ ...step }))
  }
  return steps
}

/** Returns all numbers of all steps as bytes. Serialized objects can differ even if their numbers are equal. */
function bytesOf(steps: readonly Step[]): Buffer {
  return Buffer.from(Float64Array.from(steps.flatMap((step) => Object.values(step).map(Number))).buffer)
}

describe('the regime model', () => {
  it('emits nothing in the first day, then one step a minute without a gap', () => {
    const steps = run(0, 5 * 1440)
    const first = steps[0]!.minute - SAMPLE_START / 60
    expect(first).to.be.within(1440, 1440 + 120)
    expect(steps.map(({ minute }) => minute)).to.deep.equal(steps.map((_, i) => steps[0]!.minute + i))
    expect(steps.at(-1)!.minute).to.equal(SAMPLE_START / 60 + 5 * 1440)
  })

  it('tells from the time and the number of bars whether a step rests on a fit of its own', () => {
    // A week begins as the 30th day of rows ends, or minutes before or after that.
    const week = Math.ceil((SAMPLE_START / 60 + 35 * 1440) / 10_080) * 10_080
    const edge = week - 31 * 1440 - 60 - SAMPLE_START / 60
    for (const start of [0, edge - 14, edge - 7, edge - 2, edge, edge + 7, edge + 1440]) {
      const model = createModel(1)
      const isOwn = (): boolean => model.fit.rows >= (30 * 1440) / 7
      let [wrong, fitted] = [0, 0]
      for (let i = start; i < start + 40 * 1440; i += 1)
        advance(model, BARS.time[i]! / 60, BARS.open[i]!, BARS.high[i]!, BARS.low[i]!, BARS.close[i]!, (step) => {
          if (isOwn()) fitted += 1
          if (hasOwnFit(step.minute, step.bars) !== isOwn()) wrong += 1
        })
      expect([wrong, fitted > 1440], `from ${start}`).to.deep.equal([0, true])
    }
  })

  it('gives byte-identical steps for a prefix, whether or not later bars exist', () => {
    const whole = run(0, BARS.count)
    const prefix = run(0, 50 * 1440)
    expect(bytesOf(prefix).equals(bytesOf(whole.slice(0, prefix.length)))).to.equal(true)
  })

  it('continues with identical bytes after its state was stored and restored', () => {
    const whole = run(0, 60 * 1440)
    const model = createModel(1)
    const firstPart = run(0, 45 * 1440 + 7, model)
    const restored = deserialize(serialize(model)) as ModelState
    const rest = run(45 * 1440 + 7, 60 * 1440, restored)
    expect(bytesOf([...firstPart, ...rest]).equals(bytesOf(whole))).to.equal(true)
  })

  it('keeps every number within its range', () => {
    const wrong = run(0, BARS.count).filter(
      ({ volatile, probability, confidence, p10, median, mean, p90, scalar, since, minute }) => {
        const smoothed = volatile ? probability : 1 - probability
        const isOrdered = p10 < median && median < p90 && p10 < mean && mean < p90
        return !(
          smoothed >= 0.4 - 1e-12 &&
          confidence >= 0 &&
          confidence <= 1 &&
          isOrdered &&
          scalar >= 0.25 &&
          scalar <= 1.5 &&
          since <= minute
        )
      },
    )
    expect(wrong).to.deep.equal([])
  })

  it('turns VOLATILE only above 0.60 and STABLE only below 0.40', () => {
    const steps = run(0, BARS.count)
    const turns = steps.filter((step, i) => i > 0 && step.volatile !== steps[i - 1]!.volatile)
    expect(turns.length).to.be.above(5)
    for (const { volatile, probability, since, minute } of turns) {
      expect(volatile ? probability > 0.6 : probability < 0.4).to.equal(true)
      expect(since).to.equal(minute)
    }
  })

  it('ignores a single bad print', () => {
    const start = 40 * 1440
    const model = createModel(1)
    run(0, start, model)
    const savedModel = serialize(model)
    const truth = run(start, start + 1440, deserialize(Buffer.from(savedModel)) as ModelState)
    const wrong = BARS.close[start + 10]! * 1.05
    const withBadPrint = run(
      start,
      start + 1440,
      deserialize(Buffer.from(savedModel)) as ModelState,
      (i, [time, open, high, low, close]) => {
        if (i === start + 10) return [time, open, wrong, low, wrong]
        return i === start + 11 ? [time, wrong, wrong, low, close] : [time, open, high, low, close]
      },
    )
    const differ = truth.filter((step, i) => step.volatile !== withBadPrint[i]!.volatile)
    expect(differ.length).to.be.at.most(5)
    for (const [i, step] of truth.entries())
      expect(Math.abs(step.probability - withBadPrint[i]!.probability)).to.be.below(0.1)
  })

  it('never raises the scalar at a bar beyond six standard deviations, and holds its risk while the bar is judged', () => {
    for (const minutes of [1, 15]) {
      const model = createModel(minutes)
      let [scalar, forecast, jumps, raised, lowered] = [NaN, NaN, 0, 0, 0]
      const random = seededRandom(5)
      const sized = minutes === 1 ? 20 * 1440 : 60 * 1440
      let shift = 1
      for (let i = 0; i + minutes <= sized; i += minutes) {
        const part = (column: Float64Array): Float64Array => column.subarray(i, i + minutes)
        // A jump that stays, or a spike that the next bar takes back.
        const isJump = i > 3 * 1440 && random() < 0.01
        const isSpike = isJump && random() < 0.5
        const moved = isJump ? shift * (random() < 0.5 ? 0.92 : 1.07) : shift
        const [open, close] = [BARS.open[i]! * shift, BARS.close[i + minutes - 1]! * moved]
        const [high, low] = [Math.max(...part(BARS.high)) * shift, Math.min(...part(BARS.low)) * shift]
        advance(model, BARS.time[i]! / 60, open, Math.max(high, close), Math.min(low, close), close, (step) => {
          if (isJump) jumps += 1
          if (isJump && step.scalar > scalar) raised += 1
          if (isJump && step.forecast < forecast) lowered += 1
          ;[scalar, forecast] = [step.scalar, step.forecast]
        })
        if (!isSpike) shift = moved
      }
      expect([raised, lowered, jumps > 30], `${minutes} minutes`).to.deep.equal([0, 0, true])
    }
  })

  it('repeats its last step through a hole of at most 30 minutes, whose minutes count as quiet afterwards', () => {
    // The bar after it is no surprise: that would keep the forecast before the hole.
    const start = 40 * 1440 + 13
    const isMissing = (i: number): boolean => i >= start && i < start + 25
    const steps = run(start - 2880, start + 60, createModel(1), (i, bar) => (isMissing(i) ? null : bar))
    const at = steps.findIndex(({ held }) => held)
    const during = steps.slice(at, at + 25)
    const { minute, realized: _, ...last } = steps[at - 1]!
    expect(during).to.deep.equal(during.map((_, i) => ({ ...last, minute: minute + 1 + i, realized: NaN, held: true })))
    const after = steps.slice(at + 25)
    expect(after.some(({ held }) => held)).to.equal(false)
    const quiet = run(start - 2880, start + 60, createModel(1), (i, bar) =>
      isMissing(i) ? [bar[0], ...(Array(4).fill(BARS.close[start - 1]!) as [number, number, number, number])] : bar,
    )
    const measured = ({ since: _, ...step }: Step) => step
    expect(after.map(measured)).to.deep.equal(quiet.slice(-after.length).map(measured))
  })

  it('says the same of a minute of a hole, however long the hole will be', () => {
    const start = 40 * 1440
    const before = createModel(1)
    run(start - 2880, start, before)
    const through = (minutes: number): Step[] =>
      run(start + minutes, start + minutes + 1, deserialize(serialize(before)) as ModelState).slice(0, 20)
    expect(through(25)[19]!.minute).to.equal(BARS.time[start + 20]! / 60)
    for (const minutes of [20, 30, 31, 35, 500])
      expect(bytesOf(through(minutes)).equals(bytesOf(through(25)))).to.equal(true)
  })

  it('gives byte-identical steps up to every minute, whichever bars are missing and whatever follows', () => {
    const [from, to] = [3 * 1440, 4 * 1440]
    const begun = createModel(1)
    run(0, from, begun)
    const state = serialize(begun)
    const index = fc.integer({ min: from + 1, max: to - 2 })
    const length = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 20, max: 45 }))
    const holes = fc.array(fc.record({ at: index, length }), { minLength: 1, maxLength: 12 })
    // Cuts lie within holes or anywhere, and the next bar comes at once or later.
    const cuts = fc.array(fc.record({ cut: index, inHole: fc.nat(44), next: fc.nat(60) }), {
      minLength: 8,
      maxLength: 8,
    })
    fc.assert(
      fc.property(holes, cuts, (missing, drawn) => {
        const isMissing = (i: number): boolean =>
          i < to - 1 && missing.some(({ at, length }) => i >= at && i < at + length)
        const steps = (end: number, model: ModelState): Step[] =>
          run(from, end, model, (i, bar) => (isMissing(i) ? null : bar))
        const whole = steps(to, deserialize(Buffer.from(state)) as ModelState)
        const wrong = whole.filter(({ held, minute }) => held !== isMissing(minute - 1 - BARS.time[0]! / 60))
        expect(wrong).to.deep.equal([])
        for (const [nth, { cut: anywhere, inHole, next }] of drawn.entries()) {
          const cut = nth % 2 === 0 ? anywhere : Math.min(to - 2, missing[nth % missing.length]!.at + inHole)
          const model = deserialize(Buffer.from(state)) as ModelState
          const told = [...steps(cut, model), ...run(cut + next, cut + next + 1, model)]
          const upToCut = ({ minute }: Step): boolean => minute <= BARS.time[cut]! / 60
          expect(bytesOf(told.filter(upToCut)).equals(bytesOf(whole.filter(upToCut))), `cut at ${cut}`).to.equal(true)
        }
      }),
      { numRuns: 25 },
    )
  })

  it('dates a change of label within a hole to the first minute that shows it', () => {
    const whole = run(0, 20 * 1440)
    const turn = whole.find((step, i) => i > 1440 && !step.volatile && whole[i - 1]!.volatile)!
    const turned = turn.minute - BARS.time[0]! / 60
    // Quiet minutes calm the model sooner.
    const start = turned - 15
    const steps = run(0, turned + 60, createModel(1), (i, bar) => (i >= start && i < start + 25 ? null : bar))
    const after = steps.find(({ minute, volatile }) => minute > turn.minute - 15 && !volatile)!
    expect(after.minute).to.equal(BARS.time[start + 25]! / 60 + 1)
    expect(after.since).to.equal(after.minute)
  })

  it('learns nothing from a longer hole: repeats the last label and does not count the jump as a return', () => {
    const start = 40 * 1440
    const model = createModel(1)
    const steps = run(start - 2880, start + 300, model, (i, [time, open, high, low, close]) => {
      if (i >= start && i < start + 120) return null
      const jump = i >= start + 120 ? 1.1 : 1
      return [time, open * jump, high * jump, low * jump, close * jump]
    })
    const held = steps.filter((step) => step.held)
    expect(held).to.have.length(120)
    expect(new Set(held.map(({ probability }) => probability)).size).to.equal(1)
    const after = steps.slice(steps.indexOf(held.at(-1)!) + 1)
    expect(after[0]!.realized).to.be.NaN
    expect(Math.max(...after.map(({ forecast }) => forecast))).to.be.below(
      Math.max(...steps.map(({ forecast }) => forecast)) + 1e-9,
    )
    expect(after.at(-1)!.forecast).to.be.below(held[0]!.forecast + 1)
  })

  it('takes the first minutes after a hole for no calmer than the market is', () => {
    const start = 40 * 1440
    const isMissing = (i: number): boolean => i >= start && i < start + 120
    const steps = run(start - 2880, start + 180, createModel(1), (i, bar) => (isMissing(i) ? null : bar))
    const after = steps.slice(steps.findLastIndex(({ held }) => held) + 1, -40).map(({ forecast }) => forecast)
    expect(after).to.have.length(20)
    for (const [i, forecast] of after.slice(1).entries()) expect(Math.abs(forecast - after[i]!)).to.be.below(0.1)
  })

  it('fits itself daily for 30 days and then weekly, and keeps a fit that it was given', () => {
    const [young, old] = [new Set<number>(), new Set<number>()]
    const model = createModel(1)
    for (let day = 0; day < 70; day += 1) {
      run(day * 1440, (day + 1) * 1440, model)
      ;(day < 30 ? young : old).add(model.fit.coefficients[0]!)
    }
    expect(young.size).to.be.within(28, 30)
    expect(old.size).to.be.within(5, 8)
    const given = createModel(1, model.fit)
    run(0, 40 * 1440, given)
    expect(given.fit).to.equal(model.fit)
  })

  it('reads bars of 5, 15 and 60 minutes and refuses others', () => {
    expect(() => createModel(7)).to.throw(RangeError)
    for (const minutes of [5, 15, 60]) {
      const model = createModel(minutes)
      const steps: number[] = []
      for (let i = 0; i + minutes <= 4 * 1440; i += minutes) {
        const part = (column: Float64Array): Float64Array => column.subarray(i, i + minutes)
        const [high, low] = [Math.max(...part(BARS.high)), Math.min(...part(BARS.low))]
        advance(model, BARS.time[i]! / 60, BARS.open[i]!, high, low, BARS.close[i + minutes - 1]!, (step) =>
          steps.push(step.minute),
        )
      }
      expect(steps.length, `${minutes} minutes`).to.be.above((2.9 * 1440) / minutes)
      expect(steps[1]! - steps[0]!).to.equal(minutes)
    }
  })
})

describe('the measured features', () => {
  it('equal their definitions after running sums are recomputed', () => {
    const measures = createMeasures(1)
    const count = 12_000
    for (let i = 0; i < count; i += 1)
      measure(measures, { open: 0, high: BARS.high[i]!, low: BARS.low[i]!, close: BARS.close[i]!, verdict: 'good' }, 0)
    const q = (i: number): number => Math.log(BARS.close[i]! / BARS.close[i - 5]!) ** 2 / 5
    const mean = (minutes: number, valueAt: (i: number) => number): number =>
      Array.from({ length: minutes }, (_, k) => valueAt(count - 1 - k)).reduce((sum, value) => sum + value, 0) / minutes
    const out = new Float64Array(FEATURES)
    writeMeasuredFeatures(measures, out)
    for (const [i, minutes] of [5, 15, 60, 240, 1440, 10_080].entries())
      expect(out[i]).to.be.closeTo(0.5 * Math.log(mean(minutes, q) + 1e-12), 1e-9)
    expect(out[6]).to.be.closeTo(0.5 * Math.log(mean(15, (i) => parkinson(BARS.high[i]!, BARS.low[i]!)) + 1e-12), 1e-9)
    const average = (hours: number): number => {
      const fresh = 1 - 2 ** (-1 / 60 / hours)
      let sum = 0
      for (let i = 0; i < count; i += 1) sum += Math.max(fresh, 1 / (i + 1)) * ((i < 5 ? 0 : q(i)) - sum)
      return sum
    }
    for (const [i, hours] of [4, 11, 24].entries())
      expect(out[7 + i]).to.be.closeTo(0.5 * Math.log(average(hours) + 1e-12), 1e-9)
    // The first return within the last hour ends five minutes into it, so there are 56.
    expect(hourlyVolatility(measures)).to.be.closeTo(0.5 * Math.log(mean(56, q) + 1e-12), 1e-9)
    const before = measures.sums.slice()
    recomputeSums(measures)
    for (const [i, sum] of measures.sums.entries()) expect(sum / before[i]!).to.be.closeTo(1, 1e-9)
  })
})
