import { expect } from 'chai'
import { createWalletClient, http } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import type { Hex, Network } from '../../../../../gateway/config/networks.ts'
import type { PaymentRecord } from '../../../../../gateway/payments/journal/journal.ts'
import type { DecodedPayment, Intent, Settler } from '../../../../../gateway/methods/payment-method.ts'
import type { ChainIntent } from '../../../../../gateway/methods/exact-evm/settlement-intent.ts'
import { settleData, transferOf } from '../../../../../gateway/methods/exact-evm/eip3009.ts'
import { intentBeforeCrash, useSettlerFixture } from '../../../../support/settler-fixture.ts'
import { until } from '../../../../support/until.ts'
import {
  newBuyer,
  newPayload,
  newRequirements,
  newSettleKey,
  PRICE,
  submittedRecord,
} from '../../../../support/payments.ts'
import { newNonce } from '../../../../support/wallet.ts'

describe('the chain settler after a restart', () => {
  const fixture = useSettlerFixture()

  it('sends a transaction that was recorded and not sent, unchanged', async () => {
    const payload = await fixture.newPayload()
    const intent = await intentBeforeCrash(fixture, await fixture.open(), payload)
    const settler = await fixture.open()
    const row = submittedRecord(payload, fixture.requirements, intent)
    expect(await settler.status(row)).to.include({ state: 'pending' })
    await until(async () => (await settler.status(row)).state === 'settled')
    expect(await fixture.received()).to.equal(PRICE)
  })

  it('fills the nonce gap below a recorded transaction if the one before it was not recorded', async () => {
    const first = await fixture.open()
    const payload = await fixture.newPayload()
    let isRecording = false
    void first.settle(await fixture.newPayload(), fixture.requirements, {
      wait: 'confirmed',
      record: () => {
        isRecording = true
        return new Promise(() => {})
      },
    })
    await until(() => isRecording)
    const intent = await intentBeforeCrash(fixture, first, payload)
    const settler = await fixture.open()
    const row = submittedRecord(payload, fixture.requirements, intent)
    await settler.status(row)
    await until(async () => (await settler.status(row)).state === 'settled')
    expect(await fixture.received()).to.equal(PRICE)
  })

  describe('with batches in flight', () => {
    /** Sends two batches that wait for a block, and closes the settler. Returns the journal's records of the payments. */
    async function leaveInFlight(given?: readonly DecodedPayment[]): Promise<readonly PaymentRecord[]> {
      const payloads = given ?? (await Promise.all(Array.from({ length: 6 }, () => fixture.newPayload())))
      const settler = await fixture.open({ batch: 3, pollMs: 20 })
      await fixture.chain.rpc.call('evm_setAutomine', false)
      const intents = new Map<DecodedPayment, Intent>()
      const settling = payloads.map((payload) =>
        settler.settle(payload, fixture.requirements, {
          wait: 'confirmed',
          record: async (intent) => intents.set(payload, intent).size > 0,
        }),
      )
      await until(async () => Number((await txpool()).pending) === 2)
      await settler.close()
      expect((await Promise.all(settling)).map(({ state }) => state)).to.deep.equal(payloads.map(() => 'pending'))
      for (const intent of intents.values()) expect(intent).to.include({ batch: 3 })
      return payloads.map((payload) => submittedRecord(payload, fixture.requirements, intents.get(payload) as Intent))
    }
    const txpool = (): Promise<{ pending: Hex }> => fixture.chain.rpc.call('txpool_status')
    const statesOf = async (settler: Settler, records: readonly PaymentRecord[]): Promise<readonly string[]> =>
      (await Promise.all(records.map((record) => settler.status(record)))).map(({ state }) => state)

    it('waits for their block and sends nothing again', async () => {
      const records = await leaveInFlight()
      const settler = await fixture.open()
      const before = fixture.proxy.requests.length
      expect(await statesOf(settler, records)).to.deep.equal(records.map(() => 'pending'))
      await fixture.chain.rpc.call('evm_mine')
      expect(await statesOf(settler, records)).to.deep.equal(records.map(() => 'settled'))
      expect(fixture.proxy.requests.slice(before).join()).to.not.contain('eth_sendRawTransaction')
      expect(await fixture.received()).to.equal(6n * PRICE)
    })

    it('sends each payment once if the node has lost them', async () => {
      const records = await leaveInFlight()
      await fixture.chain.rpc.call('anvil_dropAllTransactions')
      const settler = await fixture.open({ pollMs: 20 })
      for (let recovery = 0; recovery < 2; recovery++)
        expect(await statesOf(settler, records)).to.deep.equal(records.map(() => 'pending'))
      await until(async () => Number((await txpool()).pending) === 6)
      await fixture.chain.rpc.call('evm_mine')
      expect(await statesOf(settler, records)).to.deep.equal(records.map(() => 'settled'))
      expect(await fixture.received()).to.equal(6n * PRICE)
    })

    it('sends the payments of several payers who chose the same nonce', async () => {
      const nonce = newNonce()
      const payloads: DecodedPayment[] = []
      while (payloads.length < 6) {
        const buyer = await newBuyer(fixture.chain)
        payloads.push(await newPayload(fixture.chain, buyer, fixture.requirements, { signed: { nonce } }))
      }
      const records = await leaveInFlight(payloads)
      await fixture.chain.rpc.call('anvil_dropAllTransactions')
      const settler = await fixture.open({ pollMs: 20 })
      await statesOf(settler, records)
      expect(Number((await txpool()).pending)).to.equal(6)
    })

    it('sends each payment once if the node loses them after the restart, and what waits behind them', async () => {
      const records = await leaveInFlight()
      const settler = await fixture.open({ pollMs: 20, stuckMs: 3_000, batch: 1 })
      const next = fixture.settle(settler, await fixture.newPayload())
      await until(async () => Number((await txpool()).pending) === 3)
      await fixture.chain.rpc.call('anvil_dropAllTransactions')
      await fixture.chain.rpc.call('evm_setAutomine', true)
      await until(async () => (await statesOf(settler, records)).every((state) => state === 'settled'), 200)
      expect(await next).to.include({ state: 'settled' })
      expect(await fixture.received()).to.equal(7n * PRICE)
    })

    it('sends a payment again that the node has lost and refused once', async () => {
      const records = (await leaveInFlight()).slice(0, 1)
      await fixture.chain.rpc.call('anvil_dropAllTransactions')
      const settler = await fixture.open({ pollMs: 20 })
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32_000, message: 'insufficient funds' } })
      let refusals = 0
      fixture.proxy.script((_, sent) => {
        if (!sent.includes('eth_sendRawTransaction')) return 'pass'
        refusals += 1
        return { status: 200, body }
      })
      expect(await statesOf(settler, records)).to.deep.equal(['pending'])
      expect(refusals).to.equal(1)
      fixture.proxy.script(() => 'pass')
      await statesOf(settler, records)
      expect(Number((await txpool()).pending)).to.equal(1)
      await fixture.chain.rpc.call('evm_mine')
      expect(await statesOf(settler, records)).to.deep.equal(['settled'])
    })
  })

  it('reports a payment as settled if somebody else sent its authorization', async () => {
    const payload = await fixture.newPayload()
    const intent = await intentBeforeCrash(fixture, await fixture.open(), payload)
    const account = privateKeyToAccount(await newSettleKey(fixture.chain))
    const other = createWalletClient({ account, chain: baseSepolia, transport: http(fixture.chain.rpcUrl) })
    const transaction = await other.sendTransaction({
      to: fixture.chain.network.asset,
      data: settleData(transferOf(payload)),
    })
    const settler = await fixture.open({ key: await newSettleKey(fixture.chain) })
    await until(async () => (await fixture.chain.rpc.call('eth_getTransactionReceipt', transaction)) !== null)
    const row = submittedRecord(payload, fixture.requirements, intent)
    const foreignSender = account.address.toLowerCase()
    expect(await settler.status(row)).to.deep.equal({ state: 'settled', transaction, foreignSender })
    const strict = await fixture.open({ key: await newSettleKey(fixture.chain), isStrict: true })
    expect(await strict.status(row)).to.deep.equal({ state: 'settled', transaction, foreignSender, isOwed: true })
  })

  it('takes a transaction of its own account for its own, but not in strict mode if it cannot know', async () => {
    const payload = await fixture.newPayload()
    const intent = (await intentBeforeCrash(fixture, await fixture.open(), payload)) as ChainIntent
    const outcome = await fixture.settle(await fixture.open(), payload)
    if (outcome.state !== 'settled') throw new Error(outcome.state)
    const { transaction } = outcome
    expect(transaction).to.not.equal(intent.transaction)
    const row = submittedRecord(payload, fixture.requirements, intent)
    const plain = await (await fixture.open()).status(row)
    expect(plain).to.include({ state: 'settled', transaction })
    expect(plain).to.not.have.any.keys('isOwed', 'foreignSender')
    const strict = await fixture.open({ isStrict: true })
    expect(await strict.status(row)).to.include({ state: 'settled', transaction, isOwed: true })
    const recorded = submittedRecord(payload, fixture.requirements, { ...intent, transaction })
    const own = await strict.status(recorded)
    expect(own).to.include({ state: 'settled', transaction })
    expect(own).to.not.have.any.keys('isOwed', 'foreignSender')
  })

  it('reports a payment as refused if the payer used the authorization elsewhere or cancelled it', async () => {
    const account = privateKeyToAccount(await newSettleKey(fixture.chain))
    const other = createWalletClient({ account, chain: baseSepolia, transport: http(fixture.chain.rpcUrl) })
    const send = async (data: Hex): Promise<void> => {
      const hash = await other.sendTransaction({ to: fixture.chain.network.asset, data })
      await until(async () => (await fixture.chain.rpc.call('eth_getTransactionReceipt', hash)) !== null)
    }
    const settler = await fixture.open()
    const nonce = newNonce()
    const payload = await newPayload(fixture.chain, fixture.buyer, fixture.requirements, { signed: { nonce } })
    const intent = await intentBeforeCrash(fixture, await fixture.open(), payload)
    await send(
      settleData(
        transferOf(
          await newPayload(fixture.chain, fixture.buyer, newRequirements(fixture.chain), { signed: { nonce } }),
        ),
      ),
    )
    expect(await settler.status(submittedRecord(payload, fixture.requirements, intent))).to.include({
      state: 'refused',
      reason: 'invalid_transaction_state',
    })
    const cancelled = await fixture.newPayload()
    const cancelledIntent = await intentBeforeCrash(fixture, await fixture.open(), cancelled)
    await send(await cancelData(fixture.chain.network, fixture.buyer, transferOf(cancelled).nonce))
    const outcome = await settler.status(submittedRecord(cancelled, fixture.requirements, cancelledIntent))
    expect(outcome).to.include({ state: 'refused', message: 'The payer cancelled the authorization.' })
    expect(await fixture.received()).to.equal(0n)
  })

  it('reports a payment as pending until the time of the chain is past validBefore, then as refused', async () => {
    const payload = await fixture.newPayload()
    const intent = await intentBeforeCrash(fixture, await fixture.open(), payload)
    const settler = await fixture.open({ key: await newSettleKey(fixture.chain) })
    const row = submittedRecord(payload, fixture.requirements, intent)
    expect(await settler.status(row)).to.include({ state: 'pending' })
    await fixture.chain.advance(320)
    expect(await settler.status(row)).to.include({
      state: 'refused',
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
    })
    expect(await fixture.received()).to.equal(0n)
  })

  it('reports a payment as pending while the chain cannot be read', async () => {
    const payload = await fixture.newPayload()
    const settler = await fixture.open()
    const intent = await intentBeforeCrash(fixture, settler, payload)
    fixture.proxy.script(() => ({ status: 502, body: 'bad gateway' }))
    expect(await settler.status(submittedRecord(payload, fixture.requirements, intent))).to.include({
      state: 'pending',
    })
  })
})

/** Call data of EIP-3009 cancelAuthorization, signed by the payer. */
async function cancelData(network: Network, account: PrivateKeyAccount, nonce: Hex): Promise<Hex> {
  const signature = await account.signTypedData({
    domain: { ...network.domain, chainId: network.chainId, verifyingContract: network.asset },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  })
  const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)]
  const authorizer = account.address.slice(2).toLowerCase().padStart(64, '0')
  return `0x5a049a70${authorizer}${nonce.slice(2)}${v.padStart(64, '0')}${r}${s}`
}
