import { expect } from 'chai'
import fc from 'fast-check'
import { type Place, WorkQueues } from '../../../gateway/editions/work-queues.ts'
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
  const entered = (queues: WorkQueues, operation: QueuedOperation, bytes = MEGABYTE): Place | null | 'refused' => {
    try {
      return queues.enter(operation, bytes)
    } catch (error) {
      expect(error).to.be.instanceOf(Unavailable)
      expect(Number((error as Unavailable).headers['retry-after'])).to.be.within(1, 30)
      return 'refused'
    }
  }

  it('admit calls without a cost, always', () => {
    const queues = new WorkQueues(2)
    entered(queues, operationOf('free', 600))
    expect(entered(queues, operationOf('free', 0))).to.equal(null)
  })

  it('admit a call whatever it costs if nothing else is in its queue, and others for as long as its threads take 8 or 15 s', () => {
    for (const [queue, most] of [
      ['free', 4],
      ['paid', 15],
    ] as const) {
      const queues = new WorkQueues(2)
      const operation = operationOf(queue, 2)
      const places = Array.from({ length: 20 }, () => entered(queues, operation))
      expect(places.filter((place) => place !== 'refused')).to.have.length(most)
      const dear = new WorkQueues(2)
      expect(entered(dear, operationOf(queue, 600))).not.to.equal('refused')
      expect(entered(dear, operationOf(queue, 600))).to.equal('refused')
    }
  })

  it('are apart: what is in one takes no room in the other', () => {
    const queues = new WorkQueues(2)
    entered(queues, operationOf('free', 600))
    entered(queues, operationOf('paid', 600))
    expect(entered(queues, operationOf('free', 1))).to.equal('refused')
    expect(entered(queues, operationOf('paid', 1))).to.equal('refused')
  })

  it('count a body by its size, and one whose size is not announced as the largest', () => {
    const queues = new WorkQueues(2)
    const operation = operationOf('free', 1)
    entered(queues, operation, 7 * MEGABYTE)
    expect(entered(queues, operation, 2 * MEGABYTE)).to.equal('refused')
    expect(entered(queues, operation, Number.POSITIVE_INFINITY)).to.equal('refused')
    expect(entered(queues, operation, 100)).not.to.equal('refused')
  })

  it('have as much room as at first once all calls have left, in any order and however often', () => {
    const calls = fc.array(fc.record({ cost: fc.double({ min: 0.001, max: 3, noNaN: true }), times: fc.nat(3) }))
    fc.assert(
      fc.property(calls, (all) => {
        const queues = new WorkQueues(2)
        for (const { cost, times } of all) {
          const place = entered(queues, operationOf('free', cost))
          if (place === 'refused') continue
          for (let leaves = 0; leaves <= times; leaves++) place?.leave()
        }
        expect(entered(queues, operationOf('free', 600))).not.to.equal('refused')
      }),
    )
  })

  it('give away the place of a request that is sent slowly, and refuse it at its end if there is none', async () => {
    const queues = new WorkQueues(2, { readSeconds: 0.01 })
    const operation = operationOf('free', 600)
    const slow = queues.enter(operation, MEGABYTE) as Place
    let finish = (): void => {}
    const reading = slow.read(() => new Promise<void>((resolve) => (finish = resolve)))
    const taken = await untilEntered(() => entered(queues, operation))
    finish()
    const error = await reading.then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).to.be.instanceOf(Unavailable)
    slow.leave()
    expect(entered(queues, operation)).to.equal('refused')
    taken.leave()
    const other = queues.enter(operation, MEGABYTE) as Place
    expect(await other.read(() => 'read')).to.equal('read')
    expect(entered(queues, operation)).to.equal('refused')
  })

  async function untilEntered(enter: () => Place | null | 'refused'): Promise<Place> {
    for (;;) {
      const place = enter()
      if (place instanceof Object) return place
      await new Promise((wake) => setImmediate(wake))
    }
  }
})
