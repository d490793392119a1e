import { expect } from 'chai'
import fc from 'fast-check'
import { type Place, WorkQueues } from '../../../gateway/workers/queues.ts'
import { Unavailable } from '../../../gateway/errors.ts'

type QueuedOperation = Parameters<WorkQueues['enter']>[0]

/** An operation whose calls of one megabyte take `cost` seconds. */
const operationOf = (queue: 'paid' | 'free', cost: number): QueuedOperation => ({
  queue,
  costPerMegabyte: cost,
  maxBytes: 10_000_000,
})
const MEGABYTE = 1_000_000

describe('the queues of heavy work', () => {
  /** What is returned, or that there is no room. */
  function admitted(work: () => Place | null): Place | null | 'refused' {
    try {
      return work()
    } catch (error) {
      expect(error).to.be.instanceOf(Unavailable)
      expect(Number((error as Unavailable).headers['retry-after'])).to.be.within(1, 30)
      return 'refused'
    }
  }
  const entered = (
    queues: WorkQueues,
    operation: QueuedOperation,
    { bytes = MEGABYTE, address = 'a' } = {},
  ): Place | null | 'refused' => admitted(() => queues.enter(operation, address, bytes))
  const opened = (queues: WorkQueues, operation: QueuedOperation, address = 'a'): Place | null | 'refused' =>
    admitted(() => queues.open(operation, address))

  it('admit calls without a cost, always', () => {
    const queues = new WorkQueues(2)
    entered(queues, operationOf('free', 600))
    expect(entered(queues, operationOf('free', 0))).to.equal(null)
    expect(opened(queues, operationOf('free', 0))).to.equal(null)
  })

  it('admit a call whatever it costs if nothing else is in its queue, and others for as long as its threads take 15 s or 16 s', () => {
    for (const [queue, most] of [
      ['free', 8],
      ['paid', 15],
    ] as const) {
      const queues = new WorkQueues(2)
      const operation = operationOf(queue, 2)
      const places = Array.from({ length: 20 }, (_, nth) => entered(queues, operation, { address: `from ${nth}` }))
      expect(places.filter((place) => place !== 'refused')).to.have.length(most)
      const dear = new WorkQueues(2)
      expect(entered(dear, operationOf(queue, 600))).not.to.equal('refused')
      expect(entered(dear, operationOf(queue, 600), { address: 'b' })).to.equal('refused')
    }
  })

  it('admit the free calls of one address for as long as each thread takes 8 s, and those of others beside them', () => {
    const queues = new WorkQueues(2)
    const places = Array.from({ length: 6 }, () => entered(queues, operationOf('free', 2)))
    expect(places.filter((place) => place !== 'refused')).to.have.length(4)
    expect(entered(queues, operationOf('free', 2), { address: 'b' })).not.to.equal('refused')
    expect(opened(queues, operationOf('free', 2)), 'before its body is read').to.equal('refused')
    expect(opened(queues, operationOf('free', 2), 'b')).not.to.equal('refused')
  })

  it('are apart: what is in one takes no room in the other', () => {
    const queues = new WorkQueues(2)
    entered(queues, operationOf('free', 600))
    entered(queues, operationOf('paid', 600))
    expect(entered(queues, operationOf('free', 1))).to.equal('refused')
    expect(entered(queues, operationOf('paid', 1))).to.equal('refused')
  })

  it('count a body by its size, and never as more than the largest', () => {
    const queues = new WorkQueues(2)
    const operation = operationOf('free', 1)
    const first = entered(queues, operation, { bytes: 7 * MEGABYTE }) as Place
    expect(entered(queues, operation, { bytes: 2 * MEGABYTE })).to.equal('refused')
    expect(entered(queues, operation, { bytes: 100 })).not.to.equal('refused')
    expect(queues.taken.free).to.be.closeTo(7.05, 1e-9)
    first.leave()
    entered(queues, operation, { bytes: Number.POSITIVE_INFINITY, address: 'b' })
    expect(queues.taken.free).to.be.closeTo(10.05, 1e-9)
  })

  it('give no room to bodies that have not arrived, and refuse one before it is read once three quarters are taken', () => {
    const queues = new WorkQueues(2)
    const operation = operationOf('free', 6)
    const slow = Array.from({ length: 100 }, () => opened(queues, operation) as Place)
    expect(queues.taken.free).to.equal(0)
    const others = ['b', 'c'].map((address) => entered(queues, operation, { address }) as Place)
    const late = opened(queues, operation, 'd') as Place
    others[0]?.leave()
    entered(queues, operationOf('free', 7), { address: 'e' })
    expect(opened(queues, operation, 'f')).to.equal('refused')
    // There is room for the rest of those that had begun.
    expect(admitted(() => (late.take(MEGABYTE / 2), late))).to.equal(late)
    expect(admitted(() => (slow[0]?.take(MEGABYTE), null))).to.equal('refused')
    expect(queues.taken.free).to.be.closeTo(16, 1e-9)
  })

  it('count what has arrived and not left, whatever arrives, is cut off or leaves, and are empty in the end', () => {
    const call = fc.record({
      address: fc.constantFrom('a', 'b', 'c'),
      queue: fc.constantFrom('free' as const, 'paid' as const),
      cost: fc.double({ min: 0.001, max: 3, noNaN: true }),
      bytes: fc.nat(12 * MEGABYTE),
    })
    /** Which call goes on: to its arrival, or to its end. */
    const steps = fc.array(fc.record({ call: fc.nat(29), isCutOff: fc.boolean() }), { maxLength: 120 })
    fc.assert(
      fc.property(fc.array(call, { minLength: 1, maxLength: 30 }), steps, (calls, steps) => {
        const queues = new WorkQueues(3)
        const places = calls.map(({ queue, cost, address }) => opened(queues, operationOf(queue, cost), address))
        expect(places, 'all begin: nothing has arrived').not.to.include('refused')
        const live = new Map<number, number>()
        const expectTaken = (): void => {
          for (const queue of ['free', 'paid'] as const) {
            const sum = [...live].reduce((sum, [at, cost]) => sum + (calls[at]?.queue === queue ? cost : 0), 0)
            expect(queues.taken[queue]).to.be.closeTo(sum, 1e-6)
          }
        }
        for (const { call, isCutOff } of steps) {
          const at = call % calls.length
          const { cost, bytes } = calls[at] as (typeof calls)[number]
          const place = places[at] as Place
          if (live.has(at) || isCutOff) {
            place.leave()
            live.delete(at)
          } else if (admitted(() => (place.take(bytes), place)) !== 'refused')
            live.set(at, (cost * Math.min(10 * MEGABYTE, Math.max(50_000, bytes))) / MEGABYTE)
          else expect(live, 'refused for want of what has arrived').not.to.be.empty
          expectTaken()
        }
        for (const place of places) (place as Place).leave()
        expect(queues.taken).to.deep.equal({ free: 0, paid: 0 })
        expect(entered(queues, operationOf('free', 600))).not.to.equal('refused')
      }),
    )
  })
})
