import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { jwtVerify } from 'jose'
import type { PrivateKeyAccount } from 'viem/accounts'
import { RateLimited } from '../../../../../gateway/errors.ts'
import { createLog } from '../../../../../gateway/observe/log.ts'
import type { DecodedPayment, Intent, Outcome, Settler } from '../../../../../gateway/methods/payment-method.ts'
import type { PaymentRequirements } from '../../../../../gateway/x402/payment-requirements.ts'
import type { Hex } from '../../../../../gateway/config/networks.ts'
import { type HeadersFor, readFacilitatorAuth } from '../../../../../gateway/config/facilitator-auth.ts'
import { createFacilitatorSettler } from '../../../../../gateway/methods/exact-evm/facilitator/facilitator-settler.ts'
import { JOURNALS } from '../../../../contracts/journals.ts'
import { reservationOf, SHORT_ANSWER } from '../../../../contracts/journal-payments.ts'
import { startChain, type TestChain } from '../../../../support/chain.ts'
import { type Facilitator, startFacilitator } from '../../../../support/facilitator.ts'
import { until } from '../../../../support/until.ts'
import { type Fault, type Proxy, startProxy } from '../../../../support/proxy.ts'
import { newBuyer, newPayload, newRequirements, PRICE, submittedRecord } from '../../../../support/payments.ts'

const log = createLog('silent')
const HASH: Hex = `0x${'ab'.repeat(32)}`

const onSettle = (fault: Fault) => (path: string) => (path === '/settle' ? fault : 'pass')
const answering = (body: object, status = 200) => ({ status, body: JSON.stringify(body) })
const late = (body: object, status = 200) => ({ ...answering(body, status), after: true as const })

const settleRequests = (proxy: Proxy): number => proxy.requests.filter((body) => body.includes('paymentPayload')).length

describe('the facilitator settler', () => {
  let chain: TestChain
  let reference: Facilitator
  let first: Proxy
  let second: Proxy
  let buyer: PrivateKeyAccount
  let requirements: PaymentRequirements
  const settlers: Settler[] = []

  const open = (
    urls: readonly string[] = [first.url, second.url],
    change: { rpcUrl?: string; confirmSeconds?: number; authorize?: readonly HeadersFor[] } = {},
  ): Settler => {
    const settler = createFacilitatorSettler({
      urls,
      rpcUrl: chain.rpcUrl,
      network: chain.network,
      baseUrl: 'https://shop.example',
      log,
      timeoutSeconds: 2,
      confirmSeconds: 1,
      ...change,
    })
    settlers.push(settler)
    return settler
  }
  const settle = async (settler: Settler, payload: DecodedPayment): Promise<Outcome & { intent?: Intent }> => {
    const intents: Intent[] = []
    const outcome = await settler.settle(payload, requirements, {
      wait: 'confirmed',
      record: async (intent) => intents.push(intent) > 0,
    })
    return { ...outcome, ...(intents[0] ? { intent: intents[0] } : {}) }
  }
  const pay = (version: 1 | 2 = 2): Promise<DecodedPayment> => newPayload(chain, buyer, requirements, { version })
  const received = (): Promise<bigint> => chain.balanceOf(requirements.payTo)
  before(async function () {
    chain = await startChain(this)
    reference = await startFacilitator(chain)
  })
  beforeEach(async () => {
    ;[first, second] = [await startProxy(reference.url), await startProxy(reference.url)]
    requirements = newRequirements(chain)
    buyer = await newBuyer(chain)
  })
  afterEach(async () => {
    await Promise.all(settlers.splice(0).map((settler) => settler.close()))
    await Promise.all([first.close(), second.close()])
  })
  after(async () => {
    await reference?.close()
    await chain?.stop()
  })

  describe('with the reference facilitator', () => {
    for (const version of [1, 2] as const)
      it(`settles a v${version} payment unchanged through the first facilitator of the list`, async () => {
        const outcome = await settle(open(), await pay(version))
        expect(outcome).to.include({ state: 'settled' })
        expect(outcome.intent).to.include({ kind: 'facilitator', url: first.url })
        expect(await received()).to.equal(PRICE)
        const sent = JSON.parse(first.requests.find((body) => body.includes('paymentPayload')) ?? '') as object
        expect(sent).to.include({ x402Version: version })
        expect(settleRequests(second)).to.equal(0)
      })

    it('converts a payment to the x402 version that the facilitator supports', async () => {
      const v2Only = await startFacilitator(chain, [2])
      const v1Only = await startFacilitator(chain, [1])
      try {
        for (const [url, version] of [
          [v2Only.url, 1],
          [v1Only.url, 2],
        ] as const) {
          const settler = open([url])
          await until(() => settler.health().ready)
          expect(await settle(settler, await pay(version))).to.include({ state: 'settled' })
        }
        expect(await received()).to.equal(2n * PRICE)
      } finally {
        await v2Only.close()
        await v1Only.close()
      }
    })

    it('shows a facilitator that wants a key a JWT of its own for each request', async () => {
      const { publicKey, privateKey } = generateKeyPairSync('ed25519')
      const secret = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
      const seen = new Set<unknown>()
      const wary = await startFacilitator(chain, [2], async ({ headers, method, url }) => {
        const token = headers.authorization?.replace(/^Bearer /, '') ?? ''
        const verified = await jwtVerify(token, publicKey, { issuer: 'cdp', subject: 'our-key' }).catch(() => null)
        const uris = [`${method} ${headers.host}${url}`]
        const isNew = !seen.has(verified?.payload.jti)
        seen.add(verified?.payload.jti)
        return isNew && verified?.payload['uris']?.toString() === uris.toString()
      })
      try {
        const refused = open([wary.url])
        expect(await settle(refused, await pay()).catch((error: Error) => error.message)).to.not.include({
          state: 'settled',
        })
        const authorize = [readFacilitatorAuth(`jwt:cdp:our-key:${secret}`)]
        const settler = open([wary.url], { authorize })
        await until(() => settler.health().ready)
        for (let paid = 1n; paid <= 2n; paid += 1n) {
          expect(await settle(settler, await pay())).to.include({ state: 'settled' })
          expect(await received()).to.equal(paid * PRICE)
        }
      } finally {
        await wary.close()
      }
    })

    it('refuses a payment before any work if the token would refuse it', async () => {
      const poor = await newPayload(chain, await newBuyer(chain, 0n), requirements)
      expect(await open().check(poor, requirements)).to.include({ reason: 'insufficient_funds' })
      expect(await open().check(await pay(), requirements)).to.equal(null)
    })

    it('knows before a request is read which payer has too little, also one whose signature needs the chain', async () => {
      const settler = open()
      const look = async (account: PrivateKeyAccount, proven: boolean) =>
        settler.mayPay?.(await newPayload(chain, account, requirements), requirements, { proven })
      expect(await look(buyer, true)).to.equal(null)
      expect(await look(await newBuyer(chain, 0n), true)).to.include({ reason: 'insufficient_funds' })
      expect(await look(buyer, false)).to.include({ reason: 'invalid_exact_evm_payload_signature' })
    })

    it('asks no facilitator if the intent cannot be recorded', async () => {
      const outcome = await open().settle(await pay(), requirements, { wait: 'confirmed', record: async () => false })
      expect(outcome).to.deep.equal({ state: 'pending', transaction: null })
      expect(settleRequests(first) + settleRequests(second)).to.equal(0)
    })

    it('passes on the refusal of a facilitator with its reason', async () => {
      const poor = await newPayload(chain, await newBuyer(chain, 0n), requirements)
      const outcome = await settle(open(), poor)
      expect(outcome).to.include({ state: 'refused' })
      expect('reason' in outcome && outcome.reason).to.match(/insufficient|simulation|balance/)
      expect(settleRequests(second)).to.equal(0)
    })
  })

  describe('when a facilitator misbehaves', () => {
    const lostAnswers: Readonly<Record<string, Fault>> = {
      'breaks the connection': 'cut',
      'answers 502': late({ error: 'bad gateway' }, 502),
      'reports a failure': late({ success: false, errorReason: 'unexpected_settle_error', transaction: '' }),
      'reports a refusal': late({
        success: false,
        errorReason: 'invalid_exact_evm_nonce_already_used',
        transaction: '',
      }),
      'reports a pending settlement': late({ success: false, errorReason: 'settlement_pending', transaction: HASH }),
    }
    for (const [name, fault] of Object.entries(lostAnswers))
      it(`reports a payment as settled if the facilitator settles it and then ${name}`, async () => {
        first.script(onSettle(fault))
        expect(await settle(open(), await pay())).to.include({ state: 'settled' })
        expect(await received()).to.equal(PRICE)
        expect(settleRequests(second)).to.equal(0)
      })

    const unanswered: Readonly<Record<string, Fault>> = {
      hangs: 'hang',
      'answers 500': answering({ error: 'boom' }, 500),
      'answers 200 without an outcome': answering({ ok: true }),
    }
    for (const [name, fault] of Object.entries(unanswered))
      it(`asks a facilitator that ${name} again, then the next one, and reports the payment as settled`, async () => {
        const settler = open()
        first.script(onSettle(fault))
        expect(await settle(settler, await pay())).to.include({ state: 'settled' })
        expect([settleRequests(first), settleRequests(second)]).to.deep.equal([2, 1])
        expect(await received()).to.equal(PRICE)
      })

    it('only looks at the chain if the buyer was told that nothing is charged', async () => {
      const payload = await pay()
      const settler = open()
      for (const proxy of [first, second]) proxy.script(onSettle(answering({ error: 'boom' }, 500)))
      const { intent } = await settle(settler, payload)
      for (const proxy of [first, second]) proxy.script(() => 'pass')
      const row = submittedRecord(payload, requirements, intent as Intent)
      expect(await open().status(row, { maySend: false })).to.include({ state: 'pending' })
      expect(await received()).to.equal(0n)
    })

    for (const version of [1, 2] as const)
      it(`settles a payment of version ${version} that another process left with an unknown outcome`, async () => {
        const payload = await pay(version)
        for (const proxy of [first, second]) proxy.script(onSettle(answering({ error: 'boom' }, 500)))
        const { intent } = await settle(open(), payload)
        for (const proxy of [first, second]) proxy.script(() => 'pass')
        const row = submittedRecord(payload, requirements, intent as Intent)
        expect(await open().status(row)).to.include({ state: 'settled' })
        expect(await received()).to.equal(PRICE)
      })

    const unclear: Readonly<Record<string, Fault>> = {
      'reports a success that the chain does not show': answering({ success: true, transaction: HASH }),
      'names a transaction that is not mined': answering({
        success: false,
        errorReason: 'invalid_transaction_state',
        transaction: HASH,
      }),
      'fails for a reason that proves nothing': answering({
        success: false,
        errorReason: 'fetch failed',
        transaction: '',
      }),
      'reports settlement_pending': answering({ success: false, errorReason: 'settlement_pending', transaction: HASH }),
    }
    for (const [name, fault] of Object.entries(unclear))
      it(`reports a payment as pending if the facilitator ${name}, and asks no other one`, async () => {
        const payload = await pay()
        const settler = open()
        first.script(onSettle(fault))
        const outcome = await settle(settler, payload)
        expect(outcome).to.include({ state: 'pending' })
        expect(settleRequests(second)).to.equal(0)
        const row = submittedRecord(payload, requirements, outcome.intent as Intent)
        expect(await settler.status(row)).to.include({ state: 'pending' })
      })

    const declined: Readonly<Record<string, Fault>> = {
      'is over its limit': answering({ error: 'slow down' }, 429),
      'asks for an API key': answering({ error: 'unauthorized' }, 401),
      'answers 404': answering({ error: 'nothing here' }, 404),
    }
    for (const [name, fault] of Object.entries(declined))
      it(`asks the next facilitator if the first ${name}`, async () => {
        const settler = open()
        first.script(onSettle(fault))
        expect(await settle(settler, await pay())).to.include({ state: 'settled' })
        expect(settleRequests(second)).to.equal(1)
      })

    it('asks the next facilitator if the first is down, and refuses the payment if all are down', async () => {
      await first.close()
      const settler = open()
      expect(await settle(settler, await pay())).to.include({ state: 'settled' })
      await second.close()
      expect(await settle(settler, await pay())).to.include({ state: 'refused', reason: 'unexpected_settle_error' })
      await until(() => !settler.health().ready)
      expect(settler.health().reason).to.equal('no facilitator can be reached')
      expect(await received()).to.equal(PRICE)
    })

    it('does not pass on the internal error messages of a facilitator', async () => {
      first.script(
        onSettle(answering({ success: false, errorReason: "Cannot read properties of undefined (reading 'x')" })),
      )
      expect(JSON.stringify(await settle(open(), await pay()))).to.not.contain('undefined')
    })

    it('refuses a payment that the facilitator refused and the chain does not show', async () => {
      first.script(onSettle(answering({ success: false, errorReason: 'insufficient_funds', transaction: '' })))
      const outcome = await settle(open(), await pay())
      expect(outcome).to.include({ state: 'refused', reason: 'insufficient_funds' })
    })

    describe('and says that the nonce is used, which our node does not show', () => {
      const NONCE_USED = { success: false, errorReason: 'invalid_exact_evm_nonce_already_used', transaction: '' }
      beforeEach(() => {
        for (const proxy of [first, second]) proxy.script(onSettle(answering(NONCE_USED)))
      })

      it('keeps the payment pending until the node shows the transfer', async () => {
        const payload = await pay()
        const settler = open()
        const outcome = await settle(settler, payload)
        expect(outcome).to.include({ state: 'pending' })
        const row = submittedRecord(payload, requirements, outcome.intent as Intent)
        expect(await settler.status(row)).to.include({ state: 'pending' })
        first.script(() => 'pass')
        await settle(open([first.url]), payload)
        expect(await settler.status(row)).to.include({ state: 'settled' })
        expect(await received()).to.equal(PRICE)
      })

      it('refuses the payment once it has expired unused', async () => {
        const payload = await pay()
        const settler = open()
        const { intent } = await settle(settler, payload)
        const snapshot = await chain.rpc.call('evm_snapshot')
        try {
          await chain.rpc.call('evm_setNextBlockTimestamp', Number(payload.expiresAt) + 60)
          await chain.rpc.call('evm_mine')
          const row = submittedRecord(payload, requirements, intent as Intent)
          expect(await settler.status(row, { maySend: false })).to.include({ state: 'refused' })
        } finally {
          await chain.rpc.call('evm_revert', snapshot)
        }
      })

      it('reports the payment as settled if the node shows the transfer a moment later', async () => {
        const payload = await pay()
        await chain.rpc.call('evm_setAutomine', false)
        try {
          // The settler waits for the transfer until it shows, however long the other facilitator takes to send it.
          const settling = settle(open([first.url], { confirmSeconds: 30 }), payload)
          await until(() => settleRequests(first) === 1)
          second.script(() => 'pass')
          const other = settle(open([second.url]), payload)
          await until(async () => (await chain.rpc.call<{ pending: Hex }>('txpool_status')).pending !== '0x0')
          await chain.rpc.call('evm_mine')
          expect(await settling).to.include({ state: 'settled' })
          await other
        } finally {
          await chain.rpc.call('evm_setAutomine', true)
        }
      })
    })

    for (const [name, openJournals] of Object.entries(JOURNALS).filter(([each]) => each !== 'memory'))
      it(`releases no payment that another process has taken over meanwhile (${name})`, async function () {
        const opened = await openJournals()
        if (!opened?.open) return this.skip()
        try {
          const { journal } = opened
          const other = await opened.open()
          const refusals: Readonly<Record<string, readonly Fault[]>> = {
            'reports a refusal': [answering({ success: false, errorReason: 'insufficient_funds', transaction: '' })],
            'takes nothing': [answering({}, 429), answering({}, 429)],
          }
          for (const [says, [fault = 'pass', next = fault]] of Object.entries(refusals)) {
            const { key } = reservationOf()
            await journal.reserve(reservationOf({ key }))
            first.script(onSettle(fault))
            second.script(onSettle(next))
            const outcome = await open().settle(await pay(), requirements, {
              wait: 'confirmed',
              async record(intent) {
                await journal.submitted(key, 1, intent, { answer: SHORT_ANSWER })
                return other.claim(key, 1)
              },
            })
            if (outcome.state !== 'refused') throw new Error(outcome.state)
            expect(await journal.refused(key, 1, outcome), says).to.equal(false)
            expect((await journal.find(key))?.state, says).to.equal('submitted')
            expect(await other.refused(key, 1, outcome), 'by the process that has it now').to.equal(true)
          }
        } finally {
          await opened.drop()
        }
      })
  })

  describe('for a caller who may cause no more calls', () => {
    const spent = { spend: () => Promise.reject(new RateLimited('Too many calls of the chain.', 7)) }

    it('asks neither the node nor a facilitator, and says so instead of that the chain is down', async () => {
      const node = await startProxy(chain.rpcUrl)
      const settler = open(undefined, { rpcUrl: node.url })
      await until(() => settler.health().ready && node.requests.length > 0)
      const before = node.requests.length
      const payload = await pay()
      const work = [true, false].flatMap((proven): Promise<unknown>[] => [
        settler.check(payload, requirements, { proven, ahead: [], nodeCalls: spent }),
        (settler.mayPay as NonNullable<Settler['mayPay']>)(payload, requirements, { proven, nodeCalls: spent }),
      ])
      const errors = (await Promise.allSettled(work)).map((each) => each.status === 'rejected' && String(each.reason))
      expect(errors).to.deep.equal(Array(4).fill('RateLimited: Too many calls of the chain. Wait 7 s.'))
      expect(node.requests.slice(before).filter((body) => /eth_call|eth_getCode/.test(body))).to.deep.equal([])
      expect(settleRequests(first) + settleRequests(second)).to.equal(0)
      expect(settler.health().ready).to.equal(true)
      await node.close()
    })
  })

  describe('in its health report', () => {
    it('says that it is not ready if no facilitator supports the network, or the node is of another chain', async () => {
      const otherNetwork = { kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:1' }] }
      for (const proxy of [first, second]) proxy.script(() => answering(otherNetwork))
      const settler = open()
      await until(() => !settler.health().ready)
      expect(settler.health().reason).to.contain('base-sepolia')
      const wrong = await startProxy(chain.rpcUrl)
      wrong.script(() => answering({ jsonrpc: '2.0', id: 1, result: '0x1' }))
      const settlerOfWrongChain = open([reference.url], { rpcUrl: wrong.url })
      await until(() => !settlerOfWrongChain.health().ready)
      expect(settlerOfWrongChain.health().reason).to.contain('chain 84532')
      await wrong.close()
    })
  })
})
