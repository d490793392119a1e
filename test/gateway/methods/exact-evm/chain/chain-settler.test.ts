import { expect } from 'chai'
import { createWalletClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { createLog } from '../../../../../gateway/observe/log.ts'
import type { DecodedPayment, Intent } from '../../../../../gateway/methods/payment-method.ts'
import type { Hex } from '../../../../../gateway/config/networks.ts'
import { createChainSettler } from '../../../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { TOPICS } from '../../../../../gateway/methods/exact-evm/eip3009.ts'
import { startChain, type TestChain } from '../../../../support/chain.ts'
import { recorder, useSettlerFixture } from '../../../../support/settler-fixture.ts'
import { until } from '../../../../support/until.ts'
import {
  newBuyer,
  newPayload,
  newRequirements,
  newSettleKey,
  PRICE,
  submittedRecord,
} from '../../../../support/payments.ts'

describe('the chain settler', () => {
  const fixture = useSettlerFixture()

  describe('when it settles a payment', () => {
    it('moves the money, and records the signed transaction before it sends it', async () => {
      const settler = await fixture.open()
      const payload = await fixture.newPayload()
      let recorded: Intent | undefined
      const outcome = await settler.settle(payload, fixture.requirements, {
        wait: 'confirmed',
        async record(intent) {
          recorded = intent
          expect(fixture.proxy.requests.filter((body) => body.includes('eth_sendRawTransaction'))).to.have.length(0)
          return true
        },
      })
      expect(outcome).to.include({ state: 'settled' })
      expect(recorded).to.include({ kind: 'chain', transaction: 'transaction' in outcome ? outcome.transaction : null })
      expect(await fixture.received()).to.equal(PRICE)
    })

    it('sends nothing if the intent cannot be recorded, and settles the next payment', async () => {
      const settler = await fixture.open()
      const sent = fixture.proxy.requests.length
      const refused = await settler.settle(await fixture.newPayload(), fixture.requirements, {
        wait: 'confirmed',
        record: async () => false,
      })
      expect(refused).to.deep.equal({ state: 'pending', transaction: null })
      const failing = settler.settle(await fixture.newPayload(), fixture.requirements, {
        wait: 'confirmed',
        record: () => Promise.reject(new Error('disk full')),
      })
      expect(await failing.catch((error: Error) => error.message)).to.equal('disk full')
      expect(fixture.proxy.requests.slice(sent).join()).to.not.contain('eth_sendRawTransaction')
      expect(await fixture.settle(settler, await fixture.newPayload())).to.include({ state: 'settled' })
    })

    it('fills the nonce gap of a payment that was not sent, so that later payments settle', async () => {
      const settler = await fixture.open()
      const sent = fixture.proxy.requests.length
      const refusals: ((isRecorded: boolean) => void)[] = []
      const blocked = settler.settle(await fixture.newPayload(), fixture.requirements, {
        wait: 'confirmed',
        record: () => new Promise((resolve) => refusals.push(resolve)),
      })
      await until(() => refusals.length > 0)
      const later = [
        fixture.settle(settler, await fixture.newPayload()),
        fixture.settle(settler, await fixture.newPayload()),
      ]
      await until(
        () => fixture.proxy.requests.slice(sent).filter((body) => body.includes('eth_sendRawTransaction')).length === 2,
      )
      refusals.forEach((refuse) => refuse(false))
      expect(await blocked).to.include({ state: 'pending' })
      for (const outcome of await Promise.all(later)) expect(outcome).to.include({ state: 'settled' })
    })

    it('refuses a payment that the token refuses, with the x402 reason and the transaction', async () => {
      const settler = await fixture.open()
      const poor = await newBuyer(fixture.chain, 0n)
      const payload = await fixture.newPayload(poor)
      expect(await settler.check(payload, fixture.requirements)).to.include({ reason: 'insufficient_funds' })
      const outcome = await fixture.settle(settler, payload)
      expect(outcome).to.include({ state: 'refused', reason: 'insufficient_funds' })
      expect('transaction' in outcome && outcome.transaction).to.match(/^0x/)
      expect(await fixture.received()).to.equal(0n)
    })

    it('knows before a request is read which payer has too little', async () => {
      const settler = await fixture.open()
      const look = async (account?: Awaited<ReturnType<typeof newBuyer>>) =>
        settler.mayPay?.(await fixture.newPayload(account), fixture.requirements, { proven: true })
      expect(await look()).to.equal(null)
      expect(await look(await newBuyer(fixture.chain, 0n))).to.include({ reason: 'insufficient_funds' })
    })

    it('settles a payment once if it is sent three times at once', async () => {
      await fixture.chain.rpc.call('evm_setAutomine', false)
      const settler = await fixture.open({ batch: 1 })
      const payload = await fixture.newPayload()
      const settling = [
        fixture.settle(settler, payload),
        fixture.settle(settler, payload),
        fixture.settle(settler, payload),
      ]
      const pending = async () => Number((await fixture.chain.rpc.call<{ pending: Hex }>('txpool_status')).pending)
      await until(async () => (await pending()) === 3)
      await fixture.chain.rpc.call('evm_mine')
      const outcomes = await Promise.all(settling)
      const hashes = new Set(outcomes.map((outcome) => (outcome.state === 'settled' ? outcome.transaction : 'none')))
      expect([...hashes]).to.have.length(1)
      expect([...hashes][0]).to.match(/^0x/)
      expect(await fixture.received()).to.equal(PRICE)
    })

    it('refuses a payment that was settled before it came to this gateway', async () => {
      const payload = await fixture.newPayload()
      expect(await fixture.settle(await fixture.open(), payload)).to.include({ state: 'settled' })
      const settler = await fixture.open({ key: await newSettleKey(fixture.chain) })
      expect(await settler.check(payload, fixture.requirements)).to.include({ reason: 'invalid_transaction_state' })
      await fixture.chain.advance(1)
      expect(await fixture.settle(settler, payload)).to.include({
        state: 'refused',
        reason: 'invalid_transaction_state',
      })
    })

    it('settles for a contract wallet, whose signature only a call to the chain can verify', async () => {
      const settler = await fixture.open()
      const wallet = await newBuyer(fixture.chain)
      const accepting = '0x7f1626ba7e0000000000000000000000000000000000000000000000000000000060005260206000f3'
      await fixture.chain.rpc.call('anvil_setCode', wallet.address, accepting)
      const payload: DecodedPayment = { ...(await fixture.newPayload(wallet)), proof: `0x${'ab'.repeat(97)}` }
      expect(await settler.check(payload, fixture.requirements)).to.equal(null)
      expect(await fixture.settle(settler, payload)).to.include({ state: 'settled' })
      const keyOwner: DecodedPayment = { ...(await fixture.newPayload()), proof: payload.proof }
      expect(await settler.check(keyOwner, fixture.requirements)).to.include({
        reason: 'invalid_exact_evm_payload_signature',
      })
    })

    it('reports the settlement before the block if the route only waits for submission', async () => {
      await fixture.chain.rpc.call('evm_setAutomine', false)
      const settler = await fixture.open()
      expect(await fixture.settle(settler, await fixture.newPayload(), 'submitted')).to.include({ state: 'settled' })
      expect(await fixture.received()).to.equal(0n)
      await fixture.chain.rpc.call('evm_mine')
      expect(await fixture.received()).to.equal(PRICE)
    })

    it('signs again if another process has used the nonces of the same key', async () => {
      const settler = await fixture.open()
      expect(await fixture.settle(settler, await fixture.newPayload())).to.include({ state: 'settled' })
      const other = createWalletClient({
        account: privateKeyToAccount(fixture.key),
        chain: baseSepolia,
        transport: http(fixture.chain.rpcUrl),
      })
      await other.sendTransaction({ to: fixture.buyer.address, value: 1n })
      await other.sendTransaction({ to: fixture.buyer.address, value: 1n })
      for (let payments = 0; payments < 3; payments++)
        expect(await fixture.settle(settler, await fixture.newPayload())).to.include({ state: 'settled' })
      expect(await fixture.received()).to.equal(4n * PRICE)
    })
  })

  describe('when the node fails', () => {
    it('settles although the answer to the sent transaction is lost', async () => {
      const settler = await fixture.open()
      fixture.proxy.script((_, body) => (body.includes('eth_sendRawTransaction') ? 'cut' : 'pass'))
      expect(await fixture.settle(settler, await fixture.newPayload())).to.include({ state: 'settled' })
      expect(await fixture.received()).to.equal(PRICE)
    })

    it('reports a payment as pending if no block comes in time, and as settled later', async () => {
      await fixture.chain.rpc.call('evm_setAutomine', false)
      const settler = await fixture.open({ confirmSeconds: 0.2 })
      const payload = await fixture.newPayload()
      const { intents, record } = recorder()
      const outcome = await settler.settle(payload, fixture.requirements, { record, wait: 'confirmed' })
      const row = submittedRecord(payload, fixture.requirements, intents[0] as Intent)
      expect(outcome).to.deep.equal({ state: 'pending', transaction: (row.intent as { transaction: Hex }).transaction })
      expect(await settler.status(row)).to.deep.equal(outcome)
      await fixture.chain.rpc.call('evm_mine')
      expect(await settler.status(row)).to.include({ ...outcome, state: 'settled' })
    })

    it('refuses a payment that could not be sent, and is not ready until the node is back', async () => {
      const settler = await fixture.open()
      expect(settler.health()).to.deep.equal({ ready: true })
      const payload = await fixture.newPayload()
      const outcome = await settler.settle(payload, fixture.requirements, {
        wait: 'confirmed',
        async record() {
          await fixture.proxy.down()
          return true
        },
      })
      expect(outcome).to.include({ state: 'refused', reason: 'unexpected_settle_error' })
      await until(() => !settler.health().ready)
      expect(settler.health().reason).to.equal('the node cannot be reached')
      expect(
        await settler.check(payload, fixture.requirements).catch((error: { code: string }) => error.code),
      ).to.equal('settler_unavailable')
      await fixture.proxy.up()
      await until(() => settler.health().ready)
      expect(await fixture.settle(settler, payload)).to.include({ state: 'settled' })
      expect(await fixture.received()).to.equal(PRICE)
    })

    it('starts while the node is down, but not with a node of another chain', async () => {
      await fixture.proxy.down()
      const settler = await fixture.open()
      expect(settler.health()).to.include({ ready: false })
      await fixture.proxy.up()
      await until(() => settler.health().ready)
      fixture.proxy.script((_, body) =>
        body.includes('eth_chainId') ? { status: 200, body: '{"jsonrpc":"2.0","id":1,"result":"0x1"}' } : 'pass',
      )
      expect(await fixture.open().catch((error: Error) => error.message)).to.contain('chain 84532')
    })

    it('is not ready if the account cannot pay gas', async () => {
      const settler = await fixture.open({ key: generatePrivateKey() })
      expect(settler.health().reason).to.contain('too little to pay gas')
    })
  })
})

describe('the chain settler under load', () => {
  let chain: TestChain

  before(async function () {
    chain = await startChain(this, { blockSeconds: 1 })
  })
  after(() => chain?.stop())

  it('settles 200 payments at once on one-second blocks without losing one', async () => {
    const requirements = newRequirements(chain)
    const buyer = await newBuyer(chain, 200n * PRICE)
    const key = await newSettleKey(chain)
    const settler = await createChainSettler({
      rpcUrl: chain.rpcUrl,
      key,
      network: chain.network,
      log: createLog('silent'),
      confirmSeconds: 40,
    })
    const payloads = await Promise.all(Array.from({ length: 200 }, () => newPayload(chain, buyer, requirements)))
    const outcomes = await Promise.all(
      payloads.map((payload) => settler.settle(payload, requirements, { ...recorder(), wait: 'confirmed' })),
    )
    await settler.close()
    expect(outcomes.map(({ state }) => state)).to.deep.equal(Array.from({ length: 200 }, () => 'settled'))
    expect(await chain.balanceOf(requirements.payTo)).to.equal(200n * PRICE)
    const logs = await chain.rpc.call<unknown[]>('eth_getLogs', { fromBlock: '0x0', topics: [TOPICS.used] })
    expect(logs).to.have.length(200)
  })
})
