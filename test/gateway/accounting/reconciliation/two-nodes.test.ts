import { expect } from 'chai'
import { createLog } from '../../../../gateway/observe/log.ts'
import type { DecodedPayment } from '../../../../gateway/methods/payment-method.ts'
import { createNodes } from '../../../../gateway/methods/exact-evm/nodes/nodes.ts'
import { quantity } from '../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../../../gateway/payments/journal/journal.ts'
import { createComparison } from '../../../../gateway/accounting/reconciliation/comparison.ts'
import { type Findings, openFindings } from '../../../../gateway/accounting/reconciliation/findings.ts'
import { openDatabase } from '../../../../gateway/stores/database.ts'
import { answerOf, INTENT, reservationOf } from '../../../contracts/journal-payments.ts'
import { type LyingNode, startLyingNode } from '../../../support/lying-node.ts'
import { PRICE } from '../../../support/payments.ts'
import { useSettlerFixture } from '../../../support/settler-fixture.ts'

describe('reconciliation with two nodes, of which the first one lies', () => {
  const fixture = useSettlerFixture()
  const log = createLog('silent')
  let liar: LyingNode
  let journal: Journal
  let db: ReturnType<typeof openDatabase>
  let findings: Findings
  let alerts: string[]

  before(async () => {
    liar = await startLyingNode(fixture.chain.rpcUrl)
  })
  after(() => liar?.close())
  beforeEach(async () => {
    liar.lie({})
    alerts = []
    journal = await openJournal({ file: ':memory:' })
    db = openDatabase({ file: ':memory:' })
    findings = await openFindings(db)
  })
  afterEach(async () => {
    await journal.close()
    await db.destroy()
  })

  /**
   * @param from the amount from which two nodes have to agree
   * @param depth of the blocks that count as final
   */
  function compareFrom(from: bigint, depth = 0) {
    const { network } = fixture.chain
    const nodes = createNodes({ addresses: `${liar.url},${fixture.proxy.url}`, network, log })
    return createComparison({
      rpc: nodes,
      agreement: { from, nodes, log },
      network,
      payTo: fixture.requirements.payTo,
      journal,
      findings,
      alert: async ({ event }) => alerts.push(event) > 0,
      log,
      now: () => new Date(),
      own: new Set(),
      depth,
      lookBack: null,
      graceSeconds: 60,
    })
  }

  async function settleUnknown(): Promise<void> {
    expect(await fixture.settle(await fixture.open(), await fixture.newPayload())).to.include({ state: 'settled' })
  }

  const rows = async () => (await findings.list(['unknown'], 10)).length

  it('finds what others have sent in the newest blocks, also while the first node hides it', async () => {
    await settleUnknown()
    liar.lie({ eth_getLogs: () => [] })
    await compareFrom(PRICE, 1_000).look()
    expect(await findings.foreignSince(0, 10)).to.have.length(1)
  })

  it('passes over no payment that one node hides, and finds it once two show it', async () => {
    await settleUnknown()
    liar.lie({ eth_getLogs: () => [] })
    const compare = compareFrom(PRICE)
    const first = await compare()
    expect(first.unreadable).to.match(/^no two nodes show the same payments in the blocks 0 to \d+$/)
    expect(first.readTo).to.equal(null)
    expect(alerts).to.deep.equal(['reconciliation.unreadable'])
    liar.lie({})
    const second = await compare()
    expect(second.unreadable).to.equal(null)
    expect(second.buckets.unknown).to.equal(1)
    expect(await rows()).to.equal(1)
  })

  it('reads no further than two nodes have come, whatever one says', async () => {
    liar.lie({ eth_blockNumber: () => quantity(1_000_000) })
    const compare = compareFrom(PRICE)
    const { readTo } = await compare()
    expect(readTo).to.equal(Number(await fixture.chain.rpc.call('eth_blockNumber')))
    await settleUnknown()
    expect((await compare()).buckets.unknown).to.equal(1)
  })

  it('owes nothing for a payment that one node invents', async () => {
    const payload = await fixture.newPayload()
    await release(payload)
    await settleUnknown()
    const used = payload.identity.toLowerCase()
    // The transfer of somebody else is told as that of the released payment.
    const instead = (text: unknown): unknown => {
      const payer = `0x${payload.payer.slice(2).padStart(64, '0')}`.toLowerCase()
      const told = structuredClone(text) as { logs?: { topics: string[] }[]; topics?: string[] } | null
      const logs = Array.isArray(told) ? (told as { topics: string[] }[]) : (told?.logs ?? [])
      for (const entry of logs) {
        entry.topics[1] = payer
        if (entry.topics[0]?.startsWith('0x98de')) entry.topics[2] = used
      }
      return told
    }
    liar.lie({ eth_getLogs: instead, eth_getTransactionReceipt: instead })
    expect((await compareFrom(PRICE)()).unreadable).to.contain('no two nodes')
    expect(await journal.counts()).to.include({ owed: 0, released: 1 })
    // Below the limit, the word of one node counts.
    await compareFrom(PRICE + 1n)()
    expect(await journal.counts()).to.include({ owed: 1, released: 0 })
  })

  async function release({ key, payer, identity, proof, amount }: DecodedPayment): Promise<void> {
    const { network } = fixture.chain
    const { payTo } = fixture.requirements
    const fields = { network: network.caip2, asset: network.asset, payTo }
    await journal.reserve(reservationOf({ key, payer, identity, proof, amount, ...fields }))
    await journal.submitted(key, 1, INTENT, { answer: answerOf('{}') })
    await journal.refused(key, 1, { state: 'refused', reason: 'gone', message: 'gone' })
  }
})
