import { expect } from 'chai'
import type { DecodedPayment, Intent, Outcome, Settler } from '../../../../../gateway/methods/payment-method.ts'
import type { Hex } from '../../../../../gateway/config/networks.ts'
import { createBatches } from '../../../../../gateway/methods/exact-evm/chain/batches.ts'
import { MULTICALL3 } from '../../../../../gateway/methods/exact-evm/multicall.ts'
import { recorder, useSettlerFixture } from '../../../../support/settler-fixture.ts'
import { until } from '../../../../support/until.ts'
import { newBuyer, PRICE, submittedRecord } from '../../../../support/payments.ts'

describe('batches', () => {
  /** Batches that finish when `finish` of each is called. */
  function openBatches(size: number) {
    const sent: { readonly items: readonly number[]; readonly finish: () => void }[] = []
    const add = createBatches<number, number>(size, async (items) => {
      let finish = (): void => {}
      const finished = new Promise<void>((resolve) => {
        finish = resolve
      })
      sent.push({ items, finish })
      if (items.includes(13)) throw new Error('the batch failed')
      return { results: items.map((item) => ({ status: 'fulfilled', value: item * 10 })), finished }
    })
    return { add, sent, groups: () => sent.map(({ items }) => items) }
  }
  const nextTurn = (): Promise<void> => new Promise((wake) => setImmediate(wake))

  it('send the first item at once and collect the following ones until its batch has finished', async () => {
    const { add, sent, groups } = openBatches(5)
    const first = add(1)
    expect(await first).to.equal(10)
    const others = [2, 3, 4].map(add)
    await nextTurn()
    expect(groups()).to.deep.equal([[1]])
    sent[0]?.finish()
    expect(await Promise.all(others)).to.deep.equal([20, 30, 40])
    expect(groups()).to.deep.equal([[1], [2, 3, 4]])
  })

  it('are sent as soon as they are full', async () => {
    const { add, groups } = openBatches(2)
    await Promise.all([1, 2, 3, 4].map(add))
    expect(groups()).to.deep.equal([
      [1, 2],
      [3, 4],
    ])
  })

  it('fail all their items if sending fails, and the next batch works again', async () => {
    const { add } = openBatches(2)
    const failed = await Promise.allSettled([12, 13].map(add))
    expect(failed.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected'])
    expect(await add(14)).to.equal(140)
  })
})

describe('the chain settler with batches', () => {
  const fixture = useSettlerFixture()
  const open = (): Promise<Settler> => fixture.open({ batch: 10, pollMs: 20 })

  /** Settles one payment alone and, while that is pending, collects the others in the next batch. */
  async function settleTogether(
    settler: Settler,
    payloads: readonly DecodedPayment[],
    records: readonly ((intent: Intent) => Promise<boolean>)[] = [],
  ): Promise<{ readonly outcomes: readonly Outcome[]; readonly intents: readonly Intent[] }> {
    const { intents, record } = recorder()
    await fixture.chain.rpc.call('evm_setAutomine', false)
    const first = settler.settle(await fixture.newPayload(), fixture.requirements, {
      record: async () => true,
      wait: 'confirmed',
    })
    await until(() => fixture.proxy.requests.at(-1)?.includes('eth_getTransactionCount') === true)
    const all = payloads.map((payload, at) =>
      settler.settle(payload, fixture.requirements, { record: records[at] ?? record, wait: 'confirmed' }),
    )
    await fixture.chain.rpc.call('evm_setAutomine', true)
    await fixture.chain.rpc.call('evm_mine')
    expect(await first).to.include({ state: 'settled' })
    return { outcomes: await Promise.all(all), intents }
  }
  const newPayloads = (count: number): Promise<DecodedPayment[]> =>
    Promise.all(Array.from({ length: count }, () => fixture.newPayload()))
  const hashOf = (outcome: Outcome | undefined): Hex | null | undefined =>
    outcome && 'transaction' in outcome ? outcome.transaction : null

  it('does not start on a network without Multicall3', async () => {
    const code = await fixture.chain.rpc.call('eth_getCode', MULTICALL3, 'latest')
    await fixture.chain.rpc.call('anvil_setCode', MULTICALL3, '0x')
    const failure = await open().catch((error: Error) => error.message)
    await fixture.chain.rpc.call('anvil_setCode', MULTICALL3, code)
    expect(failure).to.match(/SETTLE_BATCH needs Multicall3/)
  })

  it('settles all waiting payments in one transaction', async () => {
    const { outcomes, intents } = await settleTogether(await open(), await newPayloads(5))
    expect(outcomes.map(({ state }) => state)).to.deep.equal(Array.from({ length: 5 }, () => 'settled'))
    expect(new Set(outcomes.map(hashOf)).size).to.equal(1)
    expect(intents).to.have.length(5)
    for (const intent of intents) expect(intent).to.include({ batch: 5, raw: '0x', transaction: hashOf(outcomes[0]) })
    expect(await fixture.received()).to.equal(6n * PRICE)
  })

  it('refuses the one payment of a batch that its payer cannot cover, and settles the others', async () => {
    const poor = await fixture.newPayload(await newBuyer(fixture.chain, 0n))
    const [first, second, third] = await newPayloads(3)
    const payloads = [first, poor, second, third] as DecodedPayment[]
    const { outcomes } = await settleTogether(await open(), payloads)
    expect(outcomes.map(({ state }) => state)).to.deep.equal(['settled', 'refused', 'settled', 'settled'])
    expect(outcomes[1]).to.include({ reason: 'insufficient_funds' })
    expect(await fixture.received()).to.equal(4n * PRICE)
  })

  it('settles the other payments alone if one payment of the batch uses up all gas', async () => {
    const burner = await newBuyer(fixture.chain)
    const burning = await fixture.newPayload(burner)
    await fixture.chain.rpc.call('anvil_setCode', burner.address, '0xfe')
    const { outcomes } = await settleTogether(await open(), [burning, ...(await newPayloads(2))])
    expect(outcomes.map(({ state }) => state)).to.deep.equal(['refused', 'settled', 'settled'])
    expect(hashOf(outcomes[1])).to.not.equal(hashOf(outcomes[2]))
    expect(await fixture.received()).to.equal(3n * PRICE)
  })

  it('does not send a payment whose intent could not be recorded, but sends the others of the batch', async () => {
    const failing = (): Promise<boolean> => Promise.reject(new Error('disk full'))
    const settler = await open()
    const payloads = await newPayloads(4)
    const records = [undefined, async () => false, undefined, failing] as ((intent: Intent) => Promise<boolean>)[]
    const settling = settleTogether(settler, payloads, records)
    expect(await settling.catch((error: Error) => error.message)).to.equal('disk full')
    await until(async () => (await fixture.received()) === 3n * PRICE)
    for (const payload of [payloads[1], payloads[3]])
      expect(await settler.check(payload as DecodedPayment, fixture.requirements)).to.equal(null)
  })

  it('sends each payment of a batch once after a crash between recording and sending', async () => {
    const payloads = await newPayloads(3)
    const refusing = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"insufficient funds for gas"}}'
    const { intents, record } = recorder()
    const crashing = await open()
    let sent = 0
    fixture.proxy.script((_, body) =>
      body.includes('eth_sendRawTransaction') && sent++ > 0 ? { status: 200, body: refusing } : 'pass',
    )
    await settleTogether(crashing, payloads, [record, record, record])
    await crashing.close()
    fixture.proxy.script(() => 'pass')
    expect(intents).to.have.length(3)
    const settler = await open()
    const rows = payloads.map((payload, at) => submittedRecord(payload, fixture.requirements, intents[at] as Intent))
    const outcomes = () => Promise.all(rows.map((row) => settler.status(row)))
    expect((await outcomes()).map(({ state }) => state)).to.deep.equal(['pending', 'pending', 'pending'])
    await until(async () => (await outcomes()).every(({ state }) => state === 'settled'))
    expect(await fixture.received()).to.equal(4n * PRICE)
  })

  it('finds a batch that was sent before a crash, and does not send it again', async () => {
    const payloads = await newPayloads(3)
    const { intents } = await settleTogether(await open(), payloads)
    const settler = await fixture.open({ batch: 10 })
    const before = fixture.proxy.requests.length
    for (const [at, payload] of payloads.entries())
      expect(await settler.status(submittedRecord(payload, fixture.requirements, intents[at] as Intent))).to.include({
        state: 'settled',
      })
    expect(fixture.proxy.requests.slice(before).join()).to.not.contain('eth_sendRawTransaction')
  })
})
