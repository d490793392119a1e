/** Tests of what becomes of a payment if the stream that it was to buy is not sent. */
import { expect } from 'chai'
import type { CallRequest } from '../../../gateway/calls/request-and-answer.ts'
import { createQuotes } from '../../../gateway/calls/quotes.ts'
import { createServe } from '../../../gateway/calls/serve.ts'
import type { BoundOperation, Edition } from '../../../gateway/products/edition.ts'
import type { Swap } from '../../../gateway/products/swap.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { RateLimited } from '../../../gateway/errors.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import { createPayments } from '../../../gateway/payments/payments.ts'
import { WorkQueues } from '../../../gateway/workers/queues.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { Reply, type ServerEvent } from '../../../gateway/plugin/plugin.ts'
import { newWallet, PAY_TO } from '../../support/gateway.ts'
import { catalogOf, OPERATION } from '../../support/operation.ts'
import { createScriptedSettler } from '../../support/settler.ts'
import { createPayment, type Requirement } from '../../support/wallet.ts'

const network = NETWORKS['base-sepolia']
const method = createExactEvm(network)
const operation = { ...OPERATION, id: 'followGold', path: '/v1/gold', params: null, query: null, example: null }
const requirement = method.acceptsV2({
  scheme: method.scheme,
  network,
  amount: OPERATION.price ?? 0n,
  payTo: PAY_TO,
  maxTimeoutSeconds: 300,
}) as unknown as Requirement
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
  const now = (): Date => new Date()
  const log = createLog('silent')
  const journal = await openJournal({ file: ':memory:' })
  const settler = createScriptedSettler({ network })
  const recipients = [{ network, payTo: PAY_TO }] as const
  const payments = createPayments({
    recipients,
    baseUrl: 'https://gate.test',
    journal,
    log,
    methods: [method],
    settler,
    now,
  })
  const tokens = { recall: noToken, verify: noToken, remainingMs: noToken }
  const queues = new WorkQueues(2)
  const editions: Pick<Swap, 'during'> = { during: (_, work) => work() }
  const hooks = { wantsRefusals: false, refused: () => {} }
  const counts = { count: () => Promise.reject(new Error('no operation has a limit')) }
  const serve = createServe({
    payments,
    quotes: createQuotes(payments),
    tokens,
    editions,
    hooks,
    queues,
    counts,
    paused: { assertOpen() {}, confirmOpen: async () => {} },
    now,
    log,
  })
  const bound = {
    operation,
    validate: () => input,
    assertAvailable: () => {},
    handle: () => Reply.events(events),
  } as unknown as BoundOperation
  const sent = await createPayment({ account: newWallet(), requirement, version: 2 })
  const request = {
    id: '1',
    credential: { payments: [sent], token: null },
    client: null,
    bodyBytes: 0,
    caller: { hasLeft: false },
    read: () => input,
    ...call,
  } as unknown as CallRequest
  try {
    const { status } = await serve({ catalog: catalogOf(operation), hooks: [] } as unknown as Edition, bound, request)
    const { released } = await journal.counts()
    return { status, released, settled: settler.transfers.length }
  } finally {
    await journal.close()
  }
}

const noToken = (): never => {
  throw new Error('This call has no access token.')
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
