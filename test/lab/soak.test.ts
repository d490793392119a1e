import { expect } from 'chai'
import { budgetBreaches, type Ending, errorsByCode, heapSlope, recoveryOf, type Sample } from './soak/measures.ts'

const sample = (kind: string, at: number, ending: Ending = 'answered', ms = 10, outcome = '200'): Sample => {
  return { kind, at, ms, ending, outcome }
}
const FAULT = { name: 'node down', beganAt: 5_000, endedAt: 25_000, cuts: false }

describe('the error budget of a soak run', () => {
  const refused = (at: number): Sample => sample('paid', at, 'refused', 10, '503 settler_unavailable')
  const calm = Array.from({ length: 2_000 }, (_, nth) => sample('402', nth * 30))

  it('allows refusals during a fault and for five seconds after it', () => {
    const samples = [...calm, refused(6_000), refused(24_000), refused(29_900)]
    expect(budgetBreaches(samples, FAULT)).to.deep.equal([])
    expect(errorsByCode(samples)).to.deep.equal({ '503 settler_unavailable': 3 })
  })

  it('allows one refusal in a thousand without a fault, and no more', () => {
    const few = [...calm, refused(40_000), refused(41_000)]
    expect(budgetBreaches(few, FAULT)).to.deep.equal([])
    expect(budgetBreaches([...few, refused(42_000)], FAULT)).to.deep.equal([
      'refusals without a fault: 3 × 503 settler_unavailable',
    ])
  })

  it('allows no wrong answer, not even during a fault', () => {
    const samples = [...calm, sample('free', 10_000, 'wrong', 10, '500 internal')]
    expect(budgetBreaches(samples, FAULT)).to.deep.equal(['answers that must never be: 1 × 500 internal'])
  })

  it('allows lost requests only around a fault that breaks connections', () => {
    const lost = [...calm, sample('paid', 6_000, 'lost', 10, 'ECONNRESET')]
    expect(budgetBreaches(lost, { ...FAULT, cuts: true })).to.deep.equal([])
    expect(budgetBreaches(lost, FAULT)).to.deep.equal(['requests without an answer: 1 × ECONNRESET'])
    const late = [...calm, sample('paid', 31_000, 'lost', 10, 'ECONNRESET')]
    expect(budgetBreaches(late, { ...FAULT, cuts: true })).to.have.length(1)
  })
})

describe('the recovery of a soak run', () => {
  const quotes = (from: number, to: number, ms: number): readonly Sample[] =>
    Array.from({ length: (to - from) / 20 }, (_, nth) => sample('402', from + nth * 20, 'answered', ms))

  it('counts until the first purchase sent after the fault is delivered', () => {
    const samples = [
      ...quotes(25_000, 35_000, 10),
      sample('paid', 24_000, 'answered', 1_500),
      sample('paid', 25_100, 'refused'),
      sample('mcp', 26_000, 'answered', 800),
    ]
    expect(recoveryOf(samples, 25_000, 100)).to.deep.equal({ sold: 1.8, quoted: 0 })
  })

  it('counts until a whole second of 402s is answered in normal time', () => {
    const samples = [...quotes(25_000, 27_000, 400), ...quotes(27_000, 35_000, 10), sample('paid', 25_000)]
    expect(recoveryOf(samples, 25_000, 100).quoted).to.equal(2)
  })

  it('takes a 402 that was not answered for a slow one', () => {
    const lost = quotes(25_000, 26_000, 1).map((one): Sample => ({ ...one, ending: 'lost' }))
    expect(recoveryOf([...lost, ...quotes(26_000, 35_000, 10)], 25_000, 100).quoted).to.equal(1)
  })

  it('is infinite if nothing was delivered and no quote was fast', () => {
    const samples = [...quotes(25_000, 35_000, 400), sample('paid', 26_000, 'refused')]
    const never = Number.POSITIVE_INFINITY
    expect(recoveryOf(samples, 25_000, 100)).to.deep.equal({ sold: never, quoted: never })
  })
})

describe('the heap of a soak run', () => {
  const point = (pid: number, minute: number, heap: number) => ({ pid, minute, heap, resident: 0 })

  it('grows by the slope within each process, whatever a restart does', () => {
    const first = [80, 99, 100, 101, 102].map((heap, minute) => point(1, minute, heap))
    const second = [70, 79, 80, 81, 82].map((heap, minute) => point(2, 5 + minute, heap))
    expect(heapSlope([...first, ...second], 2)).to.be.closeTo(1, 1e-9)
  })

  it('is unknown if no process has lived long enough', () => {
    expect(heapSlope([point(1, 1, 80), point(1, 2, 90), point(1, 3, 90)], 2)).to.be.NaN
  })
})
