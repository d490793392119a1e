/** Tests of what becomes of a payment if the stream that it was to buy is not sent. */
import { expect } from 'chai'
import type { CallRequest } from '../../../gateway/calls/request-and-answer.ts'
import { createServe, type ServeParts } from '../../../gateway/calls/serve.ts'
import type { BoundOperation, Edition } from '../../../gateway/editions/edition.ts'
import { RateLimited } from '../../../gateway/errors.ts'
import { WorkQueues } from '../../../gateway/editions/work-queues.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { Reply, type ServerEvent } from '../../../gateway/plugin/plugin.ts'

const operation = {
  id: 'followGold',
  price: 1n,
  plan: null,
  retired: false,
  identifier: 'optional',
  sellEmpty: true,
  view: null,
  response: {},
  maxFreshnessSeconds: 0,
  costPerMegabyte: 0,
  queue: 'paid',
}
const input = { params: {}, query: {}, body: undefined }

/** A tool call, which cannot send a stream. */
const TOOL_CALL: Partial<CallRequest> = { transport: 'mcp' }

interface Ending {
  readonly status: number
  readonly released: number
  readonly settled: number
}

/** Serves a paid call that is answered with a stream. Returns how the payment ended. */
async function payFor(events: AsyncIterable<ServerEvent>, call = TOOL_CALL): Promise<Ending> {
  let released = 0
  let settled = 0
  const purchase = {
    payer: '0xb2',
    amount: 1n,
    reservedAt: new Date(),
    settle: async (answer: object) => {
      settled += 1
      return answer
    },
    release: async () => void (released += 1),
  }
  const payments = {
    present: () => ({ payment: { key: 'k' } }),
    checkEarly: () => null,
    replay: async () => null,
    admit: async () => purchase,
  }
  const serve = createServe({
    payments,
    tokens: {},
    queues: new WorkQueues(2),
    now: () => new Date(),
    log: createLog('silent'),
  } as unknown as ServeParts)
  const bound = {
    operation,
    validate: () => input,
    assertAvailable: () => {},
    handle: () => Reply.events(events),
  } as unknown as BoundOperation
  const request = {
    id: '1',
    credential: { payments: ['x'], token: null },
    bodyBytes: 0,
    caller: { hasLeft: false },
    read: () => input,
    ...call,
  } as unknown as CallRequest
  const { status } = await serve({ catalog: { version: '1' } } as unknown as Edition, bound, request)
  return { status, released, settled }
}

describe('the payment of a stream that is not sent', () => {
  const endings: Readonly<Record<string, () => Promise<never>>> = {
    fails: () => Promise.reject(new Error('the source cannot be closed')),
    hangs: () => new Promise(() => {}),
  }
  for (const [how, end] of Object.entries(endings))
    it(`is released even if the end of the stream ${how}`, async () => {
      const events = { [Symbol.asyncIterator]: () => ({ next: end, return: end }) }
      expect(await payFor(events)).to.deep.equal({ status: 422, released: 1, settled: 0 })
    })

  it('is released after the stream was told to end', async () => {
    let ended = 0
    const end = async () => {
      ended += 1
      return { done: true, value: undefined } as const
    }
    expect(await payFor({ [Symbol.asyncIterator]: () => ({ next: end, return: end }) })).to.include({ released: 1 })
    expect(ended).to.equal(1)
  })

  it('is released if too many streams are open, and the stream is told to end', async () => {
    let ended = 0
    const end = async () => {
      ended += 1
      return { done: true, value: undefined } as const
    }
    const full: Partial<CallRequest> = {
      transport: 'http',
      takeStreamPlace() {
        throw new RateLimited('Too many open event streams.', 60)
      },
    }
    const ending = await payFor({ [Symbol.asyncIterator]: () => ({ next: end, return: end }) }, full)
    expect(ending).to.deep.equal({ status: 429, released: 1, settled: 0 })
    expect(ended).to.equal(1)
  })
})
