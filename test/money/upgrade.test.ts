/**
 * Runs the current gateway on the data of release 0.1. Release 0.1 itself wrote the fixture, with a payment in every
 * state, once in SQLite files and once in PostgreSQL. All its times are fixed, so this test uses a fixed clock.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Gateway } from '../../gateway/compose.ts'
import { type Hex, NETWORKS } from '../../gateway/config/networks.ts'
import type { ChainIntent } from '../../gateway/methods/exact-evm/settlement-intent.ts'
import type { Outcome, Settler } from '../../gateway/methods/payment-method.ts'
import type { PaymentRecord } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import { openSchema, type Schema } from '../contracts/postgres.ts'
import { ask, json, offer, receipt, send } from '../support/agent.ts'
import { openGateway, PAY_TO, type TestGateway } from '../support/gateway.ts'
import { base64 } from '../support/wallet.ts'

const FIXTURE = resolve(import.meta.dirname, '../fixtures/data-0.1')

interface Payment {
  readonly key: string
  /** The state in which 0.1 left it. */
  readonly state: PaymentState
  readonly attempt: number
  /** The transaction that transferred the money, if there is one. */
  readonly transferred: Hex | null
  readonly version: 1 | 2
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly payload: { readonly authorization: { readonly value: string } }
  /** The body that 0.1 answered with, or stored; absent for tokens, which differ between the two databases. */
  readonly answer?: string
}

const { payments, tokens } = JSON.parse(readFileSync(join(FIXTURE, 'payments.json'), 'utf8')) as {
  readonly payments: Readonly<Record<string, Payment>>
  readonly tokens: Readonly<Record<'sqlite' | 'postgres', { readonly valid: string; readonly revoked: string }>>
}

/** One minute after 0.1 stopped. */
const UPGRADED_AT = Date.parse('2026-11-01T12:01:00Z')

/** All payments of the fixture, with their state under 0.1 and their state after the current gateway has started. */
const STATES: Readonly<Record<string, readonly [before: PaymentState, after: PaymentState]>> = {
  reserved: ['reserved', 'released'],
  'answered, the buyer comes back': ['answered', 'answered'],
  'answered, expired since': ['answered', 'released'],
  'submitted: in a block': ['submitted', 'settled'],
  'submitted: never sent, expired since': ['submitted', 'released'],
  'submitted: not yet in a block': ['submitted', 'submitted'],
  'submitted: first of a batch': ['submitted', 'settled'],
  'submitted: second of a batch': ['submitted', 'settled'],
  'submitted to a facilitator': ['submitted', 'settled'],
  'settled and delivered': ['settled', 'settled'],
  'settled and never delivered': ['settled', 'settled'],
  'settled in x402 version 1': ['settled', 'settled'],
  'settled in the second attempt': ['settled', 'settled'],
  'settled under an idempotency key': ['settled', 'settled'],
  'settled for a plan': ['settled', 'settled'],
  'settled for a revoked token': ['settled', 'settled'],
  'settled, answer forgotten': ['settled', 'settled'],
  'settled without an answer': ['settled', 'owed'],
  'released: the product failed': ['released', 'released'],
  'released: the transaction reverted': ['released', 'released'],
  'released: it could not be sent': ['released', 'released'],
  owed: ['owed', 'owed'],
  'owed and repaid': ['owed', 'owed'],
}

const NEXT = { senderNonce: 8, fromBlock: 200 }

/** A token contract with the transfers of the fixture, on which an authorization counts once. */
function createChain() {
  const transfers = new Map<string, Hex>()
  for (const { key, transferred } of Object.values(payments)) if (transferred) transfers.set(key, transferred)
  const network = NETWORKS['base-sepolia']
  const sent: string[] = []
  const settler: Settler = {
    kind: 'scripted',
    check: async () => null,
    async settle({ key }, _requirements, { record }) {
      const transaction: Hex = `0x${'5e'.repeat(32)}`
      const intent: ChainIntent = { kind: 'chain', transaction, raw: '0x02f8', sender: PAY_TO, ...NEXT }
      await record(intent)
      sent.push(key)
      if (transfers.has(key)) throw new Error(`${key} was sent a second time`)
      transfers.set(key, transaction)
      return { state: 'settled', transaction }
    },
    async status({ key, expiresAt }): Promise<Outcome> {
      const transaction = transfers.get(key)
      if (transaction) return { state: 'settled', transaction }
      if (Number(expiresAt) > UPGRADED_AT / 1000) return { state: 'pending', transaction: null }
      const reason = 'invalid_exact_evm_payload_authorization_valid_before'
      return { state: 'refused', reason, message: 'The authorization expired before it was settled.' }
    },
    health: () => ({ ready: true }),
    close: async () => {},
  }
  return { network, transfers, sent, settler }
}

for (const engine of ['sqlite', 'postgres'] as const)
  describe(`a gateway started on the data of release 0.1 in ${engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, () => {
    let folder: string
    let schema: Schema | null = null
    let shop: TestGateway
    let gateway: Gateway
    let chain: ReturnType<typeof createChain>

    async function open(): Promise<void> {
      const { network, settler } = chain
      // The fixture was bought from this machine. A public service knows that of a caller from a named proxy only.
      const environment = { DATA_DIR: folder, BASE_URL: 'https://shop.example', TRUSTED_PROXIES: '127.0.0.1' }
      const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: async () => {} }
      shop = await openGateway(schema ? { ...environment, DATABASE_URL: schema.url } : environment, {
        inMemory: false,
        now: () => new Date(UPGRADED_AT),
        settlement,
      })
      gateway = shop.gateway
    }
    const paymentOf = (name: string): Payment => payments[name] as Payment
    const recordOf = async (name: string): Promise<PaymentRecord> =>
      (await gateway.journal.find(paymentOf(name).key)) as PaymentRecord
    const statesNow = async (): Promise<Record<string, PaymentState>> =>
      Object.fromEntries(
        await Promise.all(Object.keys(payments).map(async (name) => [name, (await recordOf(name)).state] as const)),
      )

    /** Repeats the request of a payment with the same payment. */
    async function repeat(name: string, headers: Record<string, string> = {}): Promise<Response> {
      const { version, method, path, body, payload, headers: own } = paymentOf(name)
      const url = `${shop.url}${path}`
      const { v1, v2 } = await offer(url, { method, ...(body === undefined ? {} : { body }) })
      const { scheme, network } = (v1.accepts[0] ?? {}) as { scheme?: string; network?: string }
      const envelope =
        version === 1
          ? { x402Version: 1, scheme, network, payload }
          : { x402Version: 2, accepted: v2.accepts[0], payload }
      const sent = {
        method,
        headers: { 'x-forwarded-for': '127.0.0.2', ...own, ...headers },
        ...(body === undefined ? {} : { body }),
      }
      return send(url, base64(envelope), version, sent)
    }

    before(async function () {
      folder = mkdtempSync(join(tmpdir(), 'upgrade-'))
      cpSync(join(FIXTURE, 'sandbox-sample'), join(folder, 'sandbox-sample'), { recursive: true })
      if (engine === 'postgres') {
        schema = await openSchema()
        if (!schema) this.skip()
        await schema.sql(readFileSync(join(FIXTURE, 'postgres.sql'), 'utf8'))
      }
      chain = createChain()
      await open()
    })
    after(async () => {
      await shop?.close()
      await schema?.drop()
      rmSync(folder, { recursive: true, force: true })
    })

    it('finds a payment in every state, each of them expected by this test', async () => {
      expect(Object.keys(payments)).to.have.members(Object.keys(STATES))
      for (const [name, [before]] of Object.entries(STATES)) expect(paymentOf(name).state, name).to.equal(before)
      expect(new Set(Object.values(STATES).map(([before]) => before)).size).to.equal(6)
    })

    it('finishes open payments at the start, so that every payment is in the state that the chain proves', async () => {
      const expected = Object.fromEntries(Object.entries(STATES).map(([name, [, after]]) => [name, after]))
      expect(await statesNow()).to.deep.equal(expected)
      for (const [name, { key, transferred, attempt }] of Object.entries(payments)) {
        const record = await recordOf(name)
        expect(record.attempt, name).to.equal(attempt)
        expect((await gateway.journal.events(key)).at(-1), name).to.include({ state: record.state, attempt })
        if (record.state === 'settled') expect(record.transaction, name).to.equal(transferred)
      }
      expect(chain.sent).to.deep.equal([])
    })

    it('keeps everything that 0.1 stored about a payment', async () => {
      expect(await recordOf('settled and never delivered')).to.include({ deliveredAt: null })
      expect((await recordOf('settled and delivered')).deliveredAt).to.be.a('number')
      expect((await recordOf('settled, answer forgotten')).answer).to.equal(null)
      expect((await recordOf('submitted: first of a batch')).intent).to.include({ kind: 'chain', batch: 2 })
      expect((await recordOf('submitted to a facilitator')).intent).to.include({ kind: 'facilitator' })
      expect((await recordOf('released: the transaction reverted')).intent).to.include({ kind: 'chain' })
      expect((await recordOf('released: the product failed')).reason).to.match(/^product_failed/)
      expect((await recordOf('settled under an idempotency key')).identifier).to.equal('order-2026-11-01-0001')
    })

    it('replays every stored answer to its buyer, byte for byte and with its receipt, and delivered ones only with a proof', async () => {
      const settled = Object.entries(payments).filter(([name]) => STATES[name]?.[1] === 'settled')
      const replayed: string[] = []
      for (const [name, { answer, transferred }] of settled) {
        if (name === 'settled, answer forgotten') continue
        const stored = (await recordOf(name)).answer?.body.toString()
        if (answer !== undefined) expect(stored, name).to.equal(answer)
        const { deliveredAt, identifier, operation } = await recordOf(name)
        const response = await repeat(name)
        const isPlan = gateway.current.catalog.operations.get(operation)?.plan != null
        if (isPlan || (deliveredAt !== null && identifier === null)) {
          expect([response.status, (await json(response))['code']], name).to.deep.equal([402, 'sign_in_required'])
          continue
        }
        replayed.push(name)
        expect(response.status, name).to.equal(200)
        expect(receipt(response), name).to.include({ success: true, transaction: transferred })
        expect(await response.text(), name).to.equal(stored)
      }
      expect(replayed).to.include.members(['settled and never delivered', 'settled under an idempotency key'])
      expect(chain.sent).to.deep.equal([])
    })

    it('refuses a payment whose answer was deleted or is owed, and a payment with another idempotency key', async () => {
      for (const name of ['settled, answer forgotten', 'owed', 'owed and repaid', 'settled without an answer']) {
        const response = await repeat(name)
        expect(response.status, name).to.equal(402)
        const refusal = await json(response)
        const code =
          name.startsWith('owed') || name === 'settled without an answer' ? 'payment_owed' : 'payment_already_used'
        expect(refusal, name).to.include({ code, transaction: paymentOf(name).transferred })
      }
      const other = { 'idempotency-key': 'order-2026-11-01-0002' }
      const conflict = await repeat('settled under an idempotency key', other)
      expect([conflict.status, (await json(conflict))['code']]).to.deep.equal([402, 'sign_in_required'])
    })

    it('settles an answer that 0.1 had stored once its buyer comes back, and only once', async () => {
      const name = 'answered, the buyer comes back'
      for (let time = 0; time < 2; time++) {
        const response = await repeat(name)
        expect([response.status, await response.text()]).to.deep.equal([200, paymentOf(name).answer])
      }
      expect(chain.sent).to.deep.equal([paymentOf(name).key])
      expect(await recordOf(name)).to.include({
        state: 'settled',
        transaction: chain.transfers.get(paymentOf(name).key),
      })
    })

    it('accepts the access tokens that 0.1 issued, and refuses the revoked one', async () => {
      const use = (token: string) => ask(`${shop.url}/v1/late`, { headers: { 'x-service-token': token } })
      const { valid, revoked } = tokens[engine]
      const accepted = await use(valid)
      expect(accepted.status).to.equal(200)
      expect(await json(accepted)).to.include({ access: 'token' })
      const refused = await use(revoked)
      expect([refused.status, (await json(refused))['code']]).to.deep.equal([402, 'token_invalid'])
    })

    it('settles the payments that reached the chain in the meantime after a restart, and changes nothing else', async () => {
      const before = await statesNow()
      chain.transfers.set(paymentOf('submitted: not yet in a block').key, `0x${'77'.repeat(32)}`)
      await shop.close()
      await open()
      expect(await statesNow()).to.deep.equal({ ...before, 'submitted: not yet in a block': 'settled' })
      expect(chain.sent).to.have.length(1)
    })

    it('has a ledger with a sale for every transfer on the chain, and every debt and repayment', async () => {
      const totals = await gateway.journal.ledgerTotals({ from: 0, before: UPGRADED_AT + 1 }, [])
      const amountOf = (names: readonly string[]): bigint =>
        names.reduce((sum, name) => sum + BigInt(paymentOf(name).payload.authorization.value), 0n)
      const sold = Object.keys(payments).filter((name) => chain.transfers.has(paymentOf(name).key))
      const debts = ['owed', 'owed and repaid', 'settled without an answer']
      const repaid = ['owed and repaid']
      const line = (kind: string, names: readonly string[]) => ({
        network: 'eip155:84532',
        kind,
        isOwn: false,
        count: names.length,
        amount: amountOf(names),
      })
      expect(totals).to.have.deep.members([line('sale', sold), line('debt', debts), line('repayment', repaid)])
      expect((await gateway.journal.debts()).map(({ key }) => key)).to.have.members([
        paymentOf('owed').key,
        paymentOf('settled without an answer').key,
      ])
    })

    it('can reverse a payment of 0.1 and settle it again, and watches no payment that 0.1 had settled', async () => {
      const { journal } = gateway
      const { key } = paymentOf('settled and delivered')
      const watched = (await journal.dueForLook(Number.MAX_SAFE_INTEGER, 100)).map((each) => each.key)
      expect(watched).not.to.include(key)
      expect(watched).to.include(paymentOf('submitted: not yet in a block').key)
      const before = await recordOf('settled and delivered')
      expect(await journal.reversed(key, before.attempt, 'a reorganisation removed it')).to.equal(true)
      expect((await journal.reversals(0, 10)).map((each) => each.key)).to.deep.equal([key])
      expect((await repeat('settled and delivered')).status).to.equal(402)
      expect(await journal.settledAgain(key, before.attempt, before.transaction as Hex)).to.equal(true)
      expect(await recordOf('settled and delivered')).to.include({ state: 'settled', transaction: before.transaction })
    })
  })
