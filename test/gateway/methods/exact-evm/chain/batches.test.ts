import { expect } from 'chai'
import type { DecodedPayment, Intent, Outcome, Settler } from '../../../../../gateway/methods/payment-method.ts'
import type { Hex } from '../../../../../gateway/config/networks.ts'
import { createBatches } from '../../../../../gateway/methods/exact-evm/chain/batches.ts'
import { MULTICALL3 } from '../../../../../gateway/methods/exact-evm/multicall.ts'
import { recorder, useSettlerFixture } from '../../../../support/settler-fixture.ts'
import { until } from '../../../../support/until.ts'
import { newBuyer, newSettleKey, PRICE, submittedRecord } from '../../../../support/payments.ts'

describe('batches', () => {
  const nextTurn = (): Promise<void> => new Promise((wake) => setImmediate(wake))

  interface Batch {
    readonly items: readonly number[]
    /** Ends the sending. Without it, the batch is being sent for ever. */
    readonly send: () => void
    /** Puts the batch into a block. */
    readonly mine: () => void
  }

  function openBatches(size: number) {
    const batches: Batch[] = []
    const add = createBatches<number, number>(
      () => size,
      async (items) => {
        let [send, mine] = [(): void => {}, (): void => {}]
        const sent = new Promise<void>((resolve) => (send = resolve))
        const done = new Promise<void>((resolve) => (mine = resolve))
        batches.push({ items, send, mine })
        await sent
        if (items.includes(13)) throw new Error('the batch failed')
        return { results: items.map((item) => ({ status: 'fulfilled', value: item * 10 })), done }
      },
    )
    const groups = (): readonly (readonly number[])[] => batches.map(({ items }) => items)
    /** Adds items in one tick, and waits until they are in batches or wait for one. */
    const addTogether = async (...items: readonly number[]): Promise<{ results: Promise<readonly number[]> }> => {
      const results = Promise.all(items.map(add))
      await nextTurn()
      return { results }
    }
    return { add, addTogether, batches, groups }
  }
  const EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]

  it('send each item at once and alone while it is quiet, also while another one is being sent', async () => {
    const { addTogether, batches, groups } = openBatches(50)
    const { results } = await addTogether(1)
    await addTogether(2)
    expect(groups()).to.deep.equal([[1], [2]])
    batches[0]?.send()
    expect(await results).to.deep.equal([10])
  })

  it('collect items under load until the batch before is sent, and do not wait for its block', async () => {
    const { addTogether, batches, groups } = openBatches(50)
    await addTogether(...EIGHT)
    const first = await addTogether(9)
    const second = await addTogether(10, 11)
    expect(groups()).to.deep.equal([EIGHT])
    batches[0]?.send()
    await nextTurn()
    expect(groups()).to.deep.equal([EIGHT, [9, 10, 11]])
    batches[1]?.send()
    expect([...(await first.results), ...(await second.results)]).to.deep.equal([90, 100, 110])
  })

  it('are sent as soon as they are full, however many are being sent', async () => {
    const { addTogether, groups } = openBatches(8)
    await addTogether(...EIGHT)
    await addTogether(9, 10, 11, 12, 14, 15, 16)
    expect(groups()).to.have.length(1)
    await addTogether(17, 18)
    expect(groups()).to.deep.equal([EIGHT, [9, 10, 11, 12, 14, 15, 16, 17]])
  })

  it('are sent after a moment even if the sending before them never ends', async () => {
    const { addTogether, groups } = openBatches(50)
    await addTogether(...EIGHT)
    await addTogether(9)
    await until(() => groups().length === 2)
    expect(groups()[1]).to.deep.equal([9])
  })

  it('send items alone again once the load is in blocks', async () => {
    const { addTogether, batches, groups } = openBatches(50)
    await addTogether(...EIGHT)
    batches[0]?.send()
    batches[0]?.mine()
    await nextTurn()
    await addTogether(9)
    await addTogether(10)
    expect(groups()).to.deep.equal([EIGHT, [9], [10]])
  })

  it('never have more than one item if their size is one', async () => {
    const { addTogether, groups } = openBatches(1)
    await addTogether(...EIGHT)
    await addTogether(9)
    expect(groups()).to.deep.equal([...EIGHT, 9].map((item) => [item]))
  })

  it('fail all their items if sending fails, and the next batch works again', async () => {
    const { add, batches } = openBatches(2)
    const failing = Promise.allSettled([12, 13].map(add))
    await nextTurn()
    batches[0]?.send()
    expect((await failing).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected'])
    const next = add(14)
    await nextTurn()
    batches[1]?.send()
    expect(await next).to.equal(140)
  })
})

describe('the chain settler with batches', () => {
  const fixture = useSettlerFixture()
  const open = (): Promise<Settler> => fixture.open({ batch: 10, pollMs: 20 })

  /** Settles payments that arrive at the same moment. */
  async function settleTogether(
    settler: Settler,
    payloads: readonly DecodedPayment[],
    records: readonly ((intent: Intent) => Promise<boolean>)[] = [],
  ): Promise<{ readonly outcomes: readonly Outcome[]; readonly intents: readonly Intent[] }> {
    const { intents, record } = recorder()
    const outcomes = await Promise.all(
      payloads.map((payload, at) =>
        settler.settle(payload, fixture.requirements, { record: records[at] ?? record, wait: 'confirmed' }),
      ),
    )
    return { outcomes, intents }
  }
  const newPayloads = (count: number): Promise<DecodedPayment[]> =>
    Promise.all(Array.from({ length: count }, () => fixture.newPayload()))
  const hashOf = (outcome: Outcome | undefined): Hex | null | undefined =>
    outcome && 'transaction' in outcome ? outcome.transaction : null
  const hashesOf = (outcomes: readonly Outcome[]): ReadonlySet<unknown> => new Set(outcomes.map(hashOf))
  const receiptOf = (hash: unknown): Promise<{ gasUsed: Hex; blockNumber: Hex }> =>
    fixture.chain.rpc.call('eth_getTransactionReceipt', hash)

  describe('on a network without Multicall3', () => {
    let code: Hex

    before(async () => {
      code = await fixture.chain.rpc.call<Hex>('eth_getCode', MULTICALL3, 'latest')
      await fixture.chain.rpc.call('anvil_setCode', MULTICALL3, '0x')
    })
    after(() => fixture.chain.rpc.call('anvil_setCode', MULTICALL3, code))

    it('does not start if batches are configured', async () => {
      const failure = await open().catch((error: Error) => error.message)
      expect(failure).to.match(/SETTLE_BATCH needs Multicall3/)
    })

    it('settles each payment in its own transaction if nothing is configured', async () => {
      const { outcomes } = await settleTogether(await fixture.open({ pollMs: 20 }), await newPayloads(3))
      expect(outcomes.map(({ state }) => state)).to.deep.equal(['settled', 'settled', 'settled'])
      expect(hashesOf(outcomes).size).to.equal(3)
    })
  })

  it('settles a lone payment in its own transaction, which can be sent again unchanged', async () => {
    const { outcomes, intents } = await settleTogether(await open(), await newPayloads(1))
    expect(outcomes[0]).to.include({ state: 'settled' })
    expect(intents[0]).to.not.have.property('batch')
    expect(intents[0]).to.have.property('raw').that.matches(/^0x02/)
  })

  it('sends the next batch while the one before waits for its block', async () => {
    const settler = await open()
    await fixture.chain.rpc.call('evm_setAutomine', false)
    const settling = settleTogether(settler, await newPayloads(10))
    const pending = async () => Number((await fixture.chain.rpc.call<{ pending: Hex }>('txpool_status')).pending)
    await until(async () => (await pending()) === 1)
    const settlingNext = settleTogether(settler, await newPayloads(10))
    await until(async () => (await pending()) === 2)
    await fixture.chain.rpc.call('evm_mine')
    const outcomes = [...(await settling).outcomes, ...(await settlingNext).outcomes]
    expect(new Set(outcomes.map(({ state }) => state))).to.deep.equal(new Set(['settled']))
    expect(hashesOf(outcomes).size).to.equal(2)
    expect(await fixture.received()).to.equal(20n * PRICE)
  })

  it('settles 50 payments in one transaction, and saves at least 20,000 gas for each', async () => {
    const settler = await fixture.open({ pollMs: 20 })
    const payloads: DecodedPayment[] = []
    while (payloads.length < 51) payloads.push(await fixture.newPayload(await newBuyer(fixture.chain)))
    await fixture.settle(settler, await fixture.newPayload())
    const alone = await fixture.settle(settler, payloads[0] as DecodedPayment)
    const { outcomes } = await settleTogether(settler, payloads.slice(1))
    expect(new Set(outcomes.map(({ state }) => state))).to.deep.equal(new Set(['settled']))
    expect(hashesOf(outcomes).size).to.equal(1)
    const [single, batch] = [await receiptOf(hashOf(alone)), await receiptOf(hashOf(outcomes[0]))]
    expect(Number(single.gasUsed) - Number(batch.gasUsed) / 50).to.be.at.least(20_000)
    expect(await fixture.received()).to.equal(52n * PRICE)
  })

  it('settles payments one by one while the gas account holds too little for batches', async () => {
    const { rpc } = fixture.chain
    for (let block = 0; block < 6; block++) await rpc.call('evm_mine')
    const { baseFeePerGas } = await rpc.call<{ baseFeePerGas: Hex[] }>('eth_feeHistory', '0x1', 'latest', [])
    const price = BigInt(baseFeePerGas.at(-1) as Hex) + 1_000_000n
    // Five times the gas of a single payment, and not of two in a batch.
    const key = await newSettleKey(fixture.chain, 5n * 240_000n * price)
    const settler = await fixture.open({ key, batch: 10, pollMs: 20 })
    const { outcomes } = await settleTogether(settler, await newPayloads(2))
    expect(outcomes.map(({ state }) => state)).to.deep.equal(['settled', 'settled'])
    expect(hashesOf(outcomes).size).to.equal(2)
  })

  it('settles all payments of a moment in one transaction', async () => {
    const { outcomes, intents } = await settleTogether(await open(), await newPayloads(5))
    expect(outcomes.map(({ state }) => state)).to.deep.equal(Array.from({ length: 5 }, () => 'settled'))
    expect(new Set(outcomes.map(hashOf)).size).to.equal(1)
    expect(intents).to.have.length(5)
    for (const intent of intents) expect(intent).to.include({ batch: 5, raw: '0x', transaction: hashOf(outcomes[0]) })
    expect(await fixture.received()).to.equal(5n * PRICE)
  })

  it('refuses the one payment of a batch that its payer cannot cover, and settles the others', async () => {
    const poor = await fixture.newPayload(await newBuyer(fixture.chain, 0n))
    const [first, second, third] = await newPayloads(3)
    const payloads = [first, poor, second, third] as DecodedPayment[]
    const { outcomes } = await settleTogether(await open(), payloads)
    expect(outcomes.map(({ state }) => state)).to.deep.equal(['settled', 'refused', 'settled', 'settled'])
    expect(outcomes[1]).to.include({ reason: 'insufficient_funds' })
    expect(hashesOf(outcomes).size).to.equal(1)
    expect(await fixture.received()).to.equal(3n * PRICE)
  })

  it('settles a payment once if it is in a batch three times', async () => {
    const [payload] = (await newPayloads(1)) as [DecodedPayment]
    const { outcomes } = await settleTogether(await open(), [payload, payload, payload])
    expect(outcomes.map(({ state }) => state)).to.deep.equal(['settled', 'settled', 'settled'])
    expect(hashesOf(outcomes).size).to.equal(1)
    expect(await fixture.received()).to.equal(PRICE)
  })

  it('settles the other payments alone if one payment of the batch uses up all gas', async () => {
    const burner = await newBuyer(fixture.chain)
    const payloads = [await fixture.newPayload(burner), ...(await newPayloads(2))]
    const settler = await open()
    for (const payload of payloads) await settler.check(payload, fixture.requirements)
    // The payer gets its code after the check.
    await fixture.chain.rpc.call('anvil_setCode', burner.address, '0xfe')
    const { outcomes } = await settleTogether(settler, payloads)
    expect(outcomes.map(({ state }) => state)).to.deep.equal(['refused', 'settled', 'settled'])
    expect(hashOf(outcomes[1])).to.not.equal(hashOf(outcomes[2]))
    expect(await fixture.received()).to.equal(2n * PRICE)
  })

  it('sends a payer with code alone, so that the code cannot use up the gas of a batch', async () => {
    const settler = await open()
    const burner = await newBuyer(fixture.chain)
    const payloads = [await fixture.newPayload(burner), ...(await newPayloads(2))]
    await fixture.chain.rpc.call('anvil_setCode', burner.address, '0xfe')
    for (const payload of payloads) await settler.check(payload, fixture.requirements)
    const { outcomes, intents } = await settleTogether(settler, payloads)
    expect(outcomes.map(({ state }) => state)).to.deep.equal(['refused', 'settled', 'settled'])
    expect(hashOf(outcomes[1])).to.equal(hashOf(outcomes[2])).and.not.equal(hashOf(outcomes[0]))
    expect(intents.filter((intent) => 'batch' in intent)).to.have.length(2)
    expect(await fixture.received()).to.equal(2n * PRICE)
  })

  it('does not send a payment whose intent could not be recorded, but sends the others of the batch', async () => {
    const failing = (): Promise<boolean> => Promise.reject(new Error('disk full'))
    const settler = await open()
    const payloads = await newPayloads(4)
    const records = [undefined, async () => false, undefined, failing] as ((intent: Intent) => Promise<boolean>)[]
    const settling = settleTogether(settler, payloads, records)
    expect(await settling.catch((error: Error) => error.message)).to.equal('disk full')
    await until(async () => (await fixture.received()) === 2n * PRICE)
    for (const payload of [payloads[1], payloads[3]])
      expect(await settler.check(payload as DecodedPayment, fixture.requirements)).to.equal(null)
  })

  it('sends each payment of a batch once after a crash between recording and sending', async () => {
    const payloads = await newPayloads(3)
    const refusing = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"insufficient funds for gas"}}'
    const { intents, record } = recorder()
    const crashing = await open()
    fixture.proxy.script((_, body) =>
      body.includes('eth_sendRawTransaction') ? { status: 200, body: refusing } : 'pass',
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
    expect(await fixture.received()).to.equal(3n * PRICE)
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
