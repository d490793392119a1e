/** Tests of what becomes of a payment if the stream that it was to buy is not sent. */
import { expect } from 'chai'
import type { CallRequest } from '../../../gateway/calls/request-and-answer.ts'
import { createServe, type ServeParts } from '../../../gateway/calls/serve.ts'
import type { BoundOperation, Edition } from '../../../gateway/editions/edition.ts'
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

/** Serves a paid tool call that is answered with a stream, which a tool cannot send. Returns how the payment ended. */
async function payFor(events: AsyncIterable<ServerEvent>): Promise<{ status: number; released: number }> {
  let released = 0
  const purchase = {
    payer: '0xb2',
    amount: 1n,
    reservedAt: new Date(),
    settle: () => Promise.reject(new Error('nothing is settled')),
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
    transport: 'mcp',
    credential: { payments: ['x'], token: null },
    bodyBytes: 0,
    caller: { hasLeft: false },
    read: () => input,
  } as unknown as CallRequest
  const { status } = await serve({ catalog: { version: '1' } } as unknown as Edition, bound, request)
  return { status, released }
}

describe('the payment of a stream that is not sent', () => {
  const endings: Readonly<Record<string, () => Promise<never>>> = {
    fails: () => Promise.reject(new Error('the source cannot be closed')),
    hangs: () => new Promise(() => {}),
  }
  for (const [how, end] of Object.entries(endings))
    it(`is released even if the end of the stream ${how}`, async () => {
      const events = { [Symbol.asyncIterator]: () => ({ next: end, return: end }) }
      expect(await payFor(events)).to.deep.equal({ status: 422, released: 1 })
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
})
