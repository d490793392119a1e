import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { privateKeyToAccount } from 'viem/accounts'
import { createLog } from '../../../../gateway/observe/log.ts'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../../../gateway/payments/journal/journal.ts'
import type { DecodedPayment, Settler } from '../../../../gateway/methods/payment-method.ts'
import type { Hex } from '../../../../gateway/config/networks.ts'
import type { ChainIntent } from '../../../../gateway/methods/exact-evm/settlement-intent.ts'
import { createRpc } from '../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { createAlertSender } from '../../../../gateway/accounting/alert-webhook.ts'
import { type Bucket, BUCKETS } from '../../../../gateway/accounting/reconciliation/buckets.ts'
import { createComparison } from '../../../../gateway/accounting/reconciliation/comparison.ts'
import { type Findings, openFindings } from '../../../../gateway/accounting/reconciliation/findings.ts'
import { openDatabase } from '../../../../gateway/stores/database.ts'
import { answerOf, INTENT, reservationOf, TRANSACTION } from '../../../contracts/journal-payments.ts'
import { recorder, useSettlerFixture } from '../../../support/settler-fixture.ts'
import { newBuyer } from '../../../support/payments.ts'

interface SentAlert {
  readonly event: string
  readonly details: { readonly count?: number; readonly rows?: readonly { readonly id: string }[] }
}

describe('reconciliation with the chain', () => {
  const fixture = useSettlerFixture()
  const log = createLog('silent')
  let journal: Journal
  let db: ReturnType<typeof openDatabase>
  let findings: Findings
  let settler: Settler
  let webhook: Server
  let alerts: SentAlert[]
  let offset: number
  let compare: ReturnType<typeof createComparison>
  /** The same, with few payments per run. */
  let compareFew: ReturnType<typeof createComparison>
  const own = '0x00000000000000000000000000000000000000c1'
  const now = (): Date => new Date(Date.now() + offset)

  beforeEach(async () => {
    offset = 0
    alerts = []
    webhook = createServer((request, response) => {
      let text = ''
      request.on('data', (chunk: Buffer) => (text += chunk.toString()))
      request.on('end', () => {
        alerts.push(JSON.parse(text) as SentAlert)
        response.end('{}')
      })
    })
    await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve))
    journal = await openJournal({ file: ':memory:', now })
    db = openDatabase({ file: ':memory:' })
    findings = await openFindings(db)
    settler = await fixture.open()
    const { network } = fixture.chain
    const { payTo } = fixture.requirements
    const url = `http://127.0.0.1:${(webhook.address() as AddressInfo).port}/`
    const rpc = createRpc(fixture.proxy.url)
    const alert = createAlertSender({ url, service: 'test', secrets: [], log, now })
    const parts = { rpc, network, payTo, journal, findings, alert, log, now, own: new Set([own]) }
    compare = createComparison({ ...parts, depth: 0, lookBack: null, graceSeconds: 60 })
    compareFew = createComparison({ ...parts, depth: 0, lookBack: null, graceSeconds: 60, maxJudged: 3 })
  })
  afterEach(async () => {
    await journal.close()
    await db.destroy()
    await new Promise((resolve) => webhook.close(resolve))
  })

  /** Settles a payment on the chain and returns the transaction. */
  async function transfer(payload: DecodedPayment): Promise<Hex> {
    const outcome = await settler.settle(payload, fixture.requirements, { ...recorder(), wait: 'confirmed' })
    if (outcome.state !== 'settled') throw new Error(outcome.state)
    return outcome.transaction
  }

  /** Records a payment in the journal, up to a state. */
  async function recordPayment(
    payload: DecodedPayment,
    to: 'submitted' | 'settled' | 'released',
    amount = payload.amount,
    hash?: Hex,
  ) {
    const { network } = fixture.chain
    const { key, payer, identity, proof } = payload
    const { payTo } = fixture.requirements
    const fields = { network: network.caip2, asset: network.asset, payTo }
    await journal.reserve(reservationOf({ key, payer, identity, proof, amount, ...fields }))
    if (to === 'released') return void (await journal.released(key, 1, 'gone'))
    await journal.answered(key, 1, answerOf('{}'))
    await journal.submitted(key, 1, INTENT)
    if (to === 'settled') await journal.settled(key, 1, hash ?? TRANSACTION)
  }

  const newest = async (bucket: Bucket) => findings.list([bucket], 100)
  const events = (): string[] => alerts.map(({ event }) => event).sort()

  it('puts every payment and transfer in one bucket, alerts each finding once, and continues where the last run ended', async () => {
    const matched = await fixture.newPayload()
    await recordPayment(matched, 'settled', matched.amount, await transfer(matched))
    const differs = await fixture.newPayload()
    await recordPayment(differs, 'settled', differs.amount + 1n, await transfer(differs))
    const unrecorded = await transfer(await fixture.newPayload())
    const released = await fixture.newPayload()
    await recordPayment(released, 'released')
    const reclaimed = await transfer(released)
    const sent = await fixture.newPayload()
    await recordPayment(sent, 'submitted')
    await transfer(sent)
    const lost = await fixture.newPayload()
    await recordPayment(lost, 'settled')
    await fixture.chain.mint(fixture.requirements.payTo, 123n)

    const first = await compare()
    expect(first.unreadable).to.equal(null)
    // The lost payment is still within the grace period.
    expect(first.buckets).to.deep.equal({
      matched: 1,
      pending: 2,
      missing: 0,
      amount_differs: 1,
      unknown: 3,
      unreadable: 0,
    })

    offset = 120_000
    await fixture.chain.advance(120)
    const second = await compare()
    expect(second.buckets).to.deep.equal({
      matched: 1,
      pending: 1,
      missing: 1,
      amount_differs: 1,
      unknown: 3,
      unreadable: 0,
    })
    expect((await newest('missing')).map(({ id }) => id)).to.deep.equal([lost.key])
    expect((await newest('amount_differs')).map(({ amount }) => amount)).to.deep.equal([differs.amount])
    const unknown = await newest('unknown')
    expect(unknown.map(({ amount }) => amount)).to.include(123n)
    expect(unknown.map(({ transaction }) => transaction)).to.include.members([unrecorded, reclaimed])
    expect(events()).to.deep.equal([
      'reconciliation.amount_differs',
      'reconciliation.missing',
      'reconciliation.unknown',
    ])
    expect(alerts.find(({ event }) => event === 'reconciliation.unknown')?.details.rows).to.have.length(3)

    await journal.settled(sent.key, 1, TRANSACTION)
    await transfer(lost)
    const third = await compare()
    expect(third.buckets).to.deep.equal({
      matched: 3,
      pending: 0,
      missing: 0,
      amount_differs: 1,
      unknown: 3,
      unreadable: 0,
    })
    expect(alerts, 'nothing is alerted twice').to.have.length(3)
    expect(BUCKETS.reduce((sum, bucket) => sum + third.buckets[bucket], 0)).to.equal(7)
  })

  it('judges every settled payment, however many settle between two runs', async () => {
    const lost: string[] = []
    for (let nth = 0; nth < 5; nth++) {
      const payload = await fixture.newPayload()
      await recordPayment(payload, 'settled')
      lost.push(payload.key)
    }
    await fixture.chain.advance(120)
    // Longer apart than payments are judged again.
    for (let times = 0; times < 5; times++) {
      offset += 3_600_000
      await fixture.chain.advance(3_600)
      await compareFew()
    }
    expect((await newest('missing')).map(({ id }) => id)).to.have.members(lost)
  })

  it('reads only payments that have settled since the last run, or shortly before', async () => {
    const read: number[] = []
    const { settlements } = journal
    journal.settlements = async (page) => {
      const found = await settlements(page)
      read.push(found.length)
      return found
    }
    for (let nth = 0; nth < 3; nth++) {
      const payload = await fixture.newPayload()
      await recordPayment(payload, 'settled', payload.amount, await transfer(payload))
    }
    await compare()
    offset = 300_000
    await compare()
    const later = await fixture.newPayload()
    await recordPayment(later, 'settled', later.amount, await transfer(later))
    await compare()
    expect(read).to.deep.equal([3, 3, 1])
  })

  it('records a debt if a payment arrives on the chain after it was released', async () => {
    const payload = await fixture.newPayload()
    const key = payload.key
    await recordPayment(payload, 'submitted')
    await journal.refused(key, 1, { state: 'refused', reason: 'insufficient_funds', message: 'It failed.' })
    expect((await compare()).buckets).to.include({ matched: 0, unknown: 0 })
    const transaction = await transfer(payload)
    expect((await compare()).buckets).to.include({ matched: 1, unknown: 0 })
    expect(await journal.find(key)).to.include({ state: 'owed', transaction, answer: null })
    expect((await journal.debts()).map((debt) => debt.key)).to.deep.equal([key])
    expect((await journal.events(key)).map(({ state }) => state).slice(-3)).to.deep.equal([
      'released',
      'settled',
      'owed',
    ])
    await compare()
    expect(events(), 'alerted once').to.deep.equal(['reconciliation.late'])
  })

  it('reports a transfer as unreadable while the node withholds its receipt, and reads it later', async () => {
    const payload = await fixture.newPayload()
    await recordPayment(payload, 'settled', payload.amount, await transfer(payload))
    const refusal = JSON.stringify([{ jsonrpc: '2.0', id: 0, error: { code: -32000, message: 'no' } }])
    fixture.proxy.script((_path, body) =>
      body.includes('eth_getTransactionReceipt') ? { status: 200, body: refusal } : 'pass',
    )
    expect((await compare()).buckets).to.include({ matched: 0, unreadable: 1 })
    expect(events()).to.deep.equal(['reconciliation.unreadable'])
    fixture.proxy.script(() => 'pass')
    expect((await compare()).buckets).to.include({ matched: 1, unreadable: 0 })
  })

  it('alerts what an unreadable transfer turns out to be', async () => {
    await transfer(await fixture.newPayload())
    const refusal = JSON.stringify([{ jsonrpc: '2.0', id: 0, error: { code: -32000, message: 'no' } }])
    fixture.proxy.script((_path, body) =>
      body.includes('eth_getTransactionReceipt') ? { status: 200, body: refusal } : 'pass',
    )
    await compare()
    fixture.proxy.script(() => 'pass')
    for (let times = 0; times < 2; times++) expect((await compare()).buckets).to.include({ unknown: 1, unreadable: 0 })
    expect(events()).to.deep.equal(['reconciliation.unknown', 'reconciliation.unreadable'])
  })

  it('reports an unreadable chain once, and skips no block afterwards', async () => {
    const payload = await fixture.newPayload()
    await recordPayment(payload, 'settled', payload.amount, await transfer(payload))
    const refusal = JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32005, message: 'range too wide' } })
    fixture.proxy.script((_path, body) => (body.includes('eth_getLogs') ? { status: 200, body: refusal } : 'pass'))
    const unreadable = await compare()
    expect(unreadable).to.include({ readTo: null, unreadable: 'range too wide' })
    expect(unreadable.buckets).to.include({ matched: 0, unreadable: 1 })
    await compare()
    expect(events(), 'alerted once per outage').to.deep.equal(['reconciliation.unreadable'])
    fixture.proxy.script(() => 'pass')
    expect((await compare()).buckets).to.include({ matched: 1, unreadable: 0 })
  })

  it("marks transfers of the operator's own wallets and sends no alert for them", async () => {
    const buyer = await newBuyer(fixture.chain)
    const { network } = fixture.chain
    const parts = {
      rpc: createRpc(fixture.proxy.url),
      network,
      payTo: fixture.requirements.payTo,
      journal,
      findings,
      log,
      now,
    }
    const alert = async (sent: SentAlert): Promise<boolean> => alerts.push(sent) > 0
    const wallets = new Set([buyer.address.toLowerCase()])
    await transfer(await fixture.newPayload(buyer))
    const compareWithWallets = createComparison({
      ...parts,
      alert,
      own: wallets,
      depth: 0,
      lookBack: null,
      graceSeconds: 60,
    })
    expect((await compareWithWallets()).buckets.unknown).to.equal(1)
    expect((await newest('unknown')).map(({ isOwn }) => isOwn)).to.deep.equal([true])
    expect(alerts).to.deep.equal([])
  })

  describe('when it only looks at the newest blocks', () => {
    /** A comparison of blocks that are twelve deep. */
    const deep = () => {
      const { network } = fixture.chain
      const { payTo } = fixture.requirements
      const alert = async (sent: SentAlert): Promise<boolean> => alerts.push(sent) > 0
      const rpc = createRpc(fixture.proxy.url)
      const parts = { rpc, network, payTo, journal, findings, alert, log, now, own: new Set([own]) }
      return createComparison({ ...parts, depth: 12, lookBack: null, graceSeconds: 60 })
    }
    const mine = (blocks: number) => fixture.chain.rpc.call('anvil_mine', `0x${blocks.toString(16)}`)

    it('finds a payment that others sent before its block is final, and names who sent it', async () => {
      await mine(20)
      const look = deep()
      await look.look()
      const mineOnly = await fixture.newPayload()
      await recordPayment(mineOnly, 'released')
      await transfer(mineOnly)
      await transfer(await fixture.newPayload())
      await look.look()
      const sender = privateKeyToAccount(fixture.key).address.toLowerCase()
      const found = await findings.foreignSince(0, 10)
      expect(found.map((row) => row.sender)).to.deep.equal([sender, sender])
      expect(events()).to.deep.equal(['reconciliation.unknown'])
      expect(JSON.stringify(alerts)).to.contain(`an authorization that is not in the journal, sent by ${sender}`)
      await mine(20)
      await look.look()
      expect(await findings.foreignSince(0, 10)).to.have.length(2)
      expect((await look()).buckets).to.include({ unknown: 2, matched: 0 })
      expect(events(), 'alerted once').to.deep.equal(['reconciliation.unknown'])
    })

    it('records a debt for a late payment only once its block is final', async () => {
      await mine(20)
      const look = deep()
      await look.look()
      const payload = await fixture.newPayload()
      await recordPayment(payload, 'submitted')
      await journal.refused(payload.key, 1, { state: 'refused', reason: 'insufficient_funds', message: 'It failed.' })
      await transfer(payload)
      await look.look()
      expect(await journal.find(payload.key)).to.include({ state: 'released' })
      await mine(12)
      await look.look()
      expect(await journal.find(payload.key)).to.include({ state: 'owed' })
    })

    it('forgets a payment that a reorganisation removed', async () => {
      await mine(20)
      const look = deep()
      await look.look()
      const snapshot = await fixture.chain.rpc.call('evm_snapshot')
      await transfer(await fixture.newPayload())
      await look.look()
      expect(await findings.foreignSince(0, 10)).to.have.length(1)
      await fixture.chain.rpc.call('evm_revert', snapshot)
      await mine(30)
      await look.look()
      expect(await findings.foreignSince(0, 10)).to.deep.equal([])
    })

    it('takes a transaction of our accounts for ours though it was signed again, and others only for the one recorded', async () => {
      const look = deep()
      await look.look()
      const sender = privateKeyToAccount(fixture.key).address
      const submit = async (payload: DecodedPayment, intent: Partial<ChainIntent>): Promise<void> => {
        const { key, payer, identity, proof, amount } = payload
        const { network } = fixture.chain
        const fields = { network: network.caip2, asset: network.asset, payTo: fixture.requirements.payTo }
        await journal.reserve(reservationOf({ key, payer, identity, proof, amount, ...fields }))
        await journal.submitted(key, 1, { ...INTENT, ...intent }, { answer: answerOf('{}') })
      }
      const recorded = await fixture.newPayload()
      const transaction = await transfer(recorded)
      await submit(recorded, { transaction })
      await look.look()
      expect(await findings.foreignSince(0, 10)).to.deep.equal([])
      const ofOthers = await fixture.newPayload()
      await submit(ofOthers, {})
      const found = await transfer(ofOthers)
      await look.look()
      expect((await findings.foreignSince(0, 10)).map((row) => row.transaction)).to.deep.equal([found])
      const signedAgain = await fixture.newPayload()
      await submit(signedAgain, { sender })
      await transfer(signedAgain)
      await look.look()
      expect((await findings.foreignSince(0, 10)).map((row) => row.payment)).to.not.include(signedAgain.key)
    })
  })
})
