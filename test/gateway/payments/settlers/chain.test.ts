import { expect } from 'chai'
import { createWalletClient, http } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { createLog } from '../../../../gateway/log.ts'
import type { Hex, Intent, PaymentPayload, PaymentRequirements, Settler } from '../../../../gateway/payments/payment.ts'
import { createChainSettler } from '../../../../gateway/payments/settlers/chain.ts'
import { settleData, TOPICS } from '../../../../gateway/payments/settlers/token.ts'
import { startChain, type TestChain } from '../../../support/chain.ts'
import { type Proxy, startProxy } from '../../../support/proxy.ts'
import { newBuyer, newPayload, newRequirements, newSettleKey, PRICE, submitted } from '../../../support/settling.ts'
import { newNonce } from '../../../support/wallet.ts'

const log = createLog('silent')

/** The recorder of a settlement that wants to be sent. */
function recorder(): { readonly intents: Intent[]; readonly record: (intent: Intent) => Promise<boolean> } {
  const intents: Intent[] = []
  return { intents, record: async (intent) => intents.push(intent) > 0 }
}

/** A payment whose process died right after the record. */
async function crashed(requirements: PaymentRequirements, settler: Settler, payload: PaymentPayload): Promise<Intent> {
  const { intents, record } = recorder()
  const dying = settler.settle(payload, requirements, {
    wait: 'confirmed',
    record: async (intent) => {
      await record(intent)
      throw new Error('killed')
    },
  })
  await dying.catch(() => {})
  return intents[0] as Intent
}

describe('the chain settler', function () {
  this.timeout(30_000)
  let chain: TestChain
  let proxy: Proxy
  let buyer: PrivateKeyAccount
  let key: Hex
  let requirements: PaymentRequirements
  const settlers: Settler[] = []

  const open = async (change: { key?: Hex; confirmSeconds?: number } = {}): Promise<Settler> => {
    const options = { rpcUrl: proxy.url, key, network: chain.network, log, confirmSeconds: 10, ...change }
    const settler = await createChainSettler(options)
    settlers.push(settler)
    return settler
  }
  const pay = (account = buyer): Promise<PaymentPayload> => newPayload(chain, account, requirements)
  const settle = (settler: Settler, payload: PaymentPayload, wait: 'confirmed' | 'submitted' = 'confirmed') =>
    settler.settle(payload, requirements, { ...recorder(), wait })
  const received = (): Promise<bigint> => chain.balanceOf(requirements.payTo)

  before(async function () {
    chain = await startChain(this)
    proxy = await startProxy(chain.rpcUrl)
  })
  beforeEach(async () => {
    requirements = newRequirements(chain)
    buyer = await newBuyer(chain)
    key = await newSettleKey(chain)
  })
  afterEach(async () => {
    proxy.script(() => 'pass')
    await chain.rpc.call('evm_setAutomine', true)
    await chain.rpc.call('evm_mine')
    await Promise.all(settlers.splice(0).map((settler) => settler.close()))
  })
  after(async () => {
    await proxy?.close()
    await chain?.stop()
  })

  describe('settle', () => {
    it('moves the money, and records the signed transaction before anything is sent', async () => {
      const settler = await open()
      const payload = await pay()
      let recorded: Intent | undefined
      const outcome = await settler.settle(payload, requirements, {
        wait: 'confirmed',
        async record(intent) {
          recorded = intent
          expect(proxy.requests.filter((body) => body.includes('eth_sendRawTransaction'))).to.have.length(0)
          return true
        },
      })
      expect(outcome).to.include({ state: 'settled' })
      expect(recorded).to.include({ kind: 'chain', transaction: 'transaction' in outcome ? outcome.transaction : null })
      expect(await received()).to.equal(PRICE)
    })

    it('sends nothing where the record is refused or fails, and leaves no gap behind', async () => {
      const settler = await open()
      const sent = proxy.requests.length
      const refused = await settler.settle(await pay(), requirements, { wait: 'confirmed', record: async () => false })
      expect(refused).to.deep.equal({ state: 'pending', transaction: null })
      const failing = settler.settle(await pay(), requirements, {
        wait: 'confirmed',
        record: () => Promise.reject(new Error('disk full')),
      })
      expect(await failing.catch((error: Error) => error.message)).to.equal('disk full')
      expect(proxy.requests.slice(sent).join()).to.not.contain('eth_sendRawTransaction')
      expect(await settle(settler, await pay())).to.include({ state: 'settled' })
    })

    it('fills the gap of a payment that was not sent, so that later ones do not wait for ever', async () => {
      const settler = await open()
      const refusals: ((sent: boolean) => void)[] = []
      const held = settler.settle(await pay(), requirements, {
        wait: 'confirmed',
        record: () => new Promise((resolve) => refusals.push(resolve)),
      })
      while (refusals.length === 0) await new Promise((wake) => setTimeout(wake, 5))
      const later = [settle(settler, await pay()), settle(settler, await pay())]
      await new Promise((wake) => setTimeout(wake, 50))
      refusals.forEach((refuse) => refuse(false))
      expect(await held).to.include({ state: 'pending' })
      for (const outcome of await Promise.all(later)) expect(outcome).to.include({ state: 'settled' })
    })

    it('refuses what the token refuses, with the x402 reason and the transaction', async () => {
      const settler = await open()
      const poor = await newBuyer(chain, 0n)
      const payload = await pay(poor)
      expect(await settler.check(payload, requirements)).to.include({ reason: 'insufficient_funds' })
      const outcome = await settle(settler, payload)
      expect(outcome).to.include({ state: 'refused', reason: 'insufficient_funds' })
      expect('transaction' in outcome && outcome.transaction).to.match(/^0x/)
      expect(await received()).to.equal(0n)
    })

    it('settles one payment once, however often it is sent at the same time', async () => {
      await chain.rpc.call('evm_setAutomine', false)
      const settler = await open()
      const payload = await pay()
      const racing = [settle(settler, payload), settle(settler, payload), settle(settler, payload)]
      await new Promise((wake) => setTimeout(wake, 300))
      await chain.rpc.call('evm_mine')
      const outcomes = await Promise.all(racing)
      const hashes = new Set(outcomes.map((outcome) => (outcome.state === 'settled' ? outcome.transaction : 'none')))
      expect([...hashes]).to.have.length(1)
      expect([...hashes][0]).to.match(/^0x/)
      expect(await received()).to.equal(PRICE)
    })

    it('does not take a payment that somebody spent before for one of ours', async () => {
      const payload = await pay()
      expect(await settle(await open(), payload)).to.include({ state: 'settled' })
      const settler = await open({ key: await newSettleKey(chain) })
      expect(await settler.check(payload, requirements)).to.include({ reason: 'invalid_transaction_state' })
      await new Promise((wake) => setTimeout(wake, 10))
      await chain.advance(1)
      expect(await settle(settler, payload)).to.include({ state: 'refused', reason: 'invalid_transaction_state' })
    })

    it('settles for a contract wallet, whose signature only the chain can judge', async () => {
      const settler = await open()
      const wallet = await newBuyer(chain)
      const accepting = '0x7f1626ba7e0000000000000000000000000000000000000000000000000000000060005260206000f3'
      await chain.rpc.call('anvil_setCode', wallet.address, accepting)
      const payload: PaymentPayload = { ...(await pay(wallet)), signature: `0x${'ab'.repeat(97)}` }
      expect(await settler.check(payload, requirements)).to.equal(null)
      expect(await settle(settler, payload)).to.include({ state: 'settled' })
      const keyOwner: PaymentPayload = { ...(await pay()), signature: payload.signature }
      expect(await settler.check(keyOwner, requirements)).to.include({ reason: 'invalid_exact_evm_payload_signature' })
    })

    it('answers on submission where that is enough', async () => {
      await chain.rpc.call('evm_setAutomine', false)
      const settler = await open()
      expect(await settle(settler, await pay(), 'submitted')).to.include({ state: 'settled' })
      expect(await received()).to.equal(0n)
      await chain.rpc.call('evm_mine')
      expect(await received()).to.equal(PRICE)
    })

    it('signs again where another process has used the nonce of the key', async () => {
      const settler = await open()
      expect(await settle(settler, await pay())).to.include({ state: 'settled' })
      const other = createWalletClient({
        account: privateKeyToAccount(key),
        chain: baseSepolia,
        transport: http(chain.rpcUrl),
      })
      await other.sendTransaction({ to: buyer.address, value: 1n })
      await other.sendTransaction({ to: buyer.address, value: 1n })
      for (let payments = 0; payments < 3; payments++)
        expect(await settle(settler, await pay())).to.include({ state: 'settled' })
      expect(await received()).to.equal(4n * PRICE)
    })
  })

  describe('with a node that fails', () => {
    it('settles though the answer to the sending is lost', async () => {
      const settler = await open()
      proxy.script((_, body) => (body.includes('eth_sendRawTransaction') ? 'cut' : 'pass'))
      expect(await settle(settler, await pay())).to.include({ state: 'settled' })
      expect(await received()).to.equal(PRICE)
    })

    it('calls it pending, with the transaction, where no block comes in time; later it is settled', async () => {
      await chain.rpc.call('evm_setAutomine', false)
      const settler = await open({ confirmSeconds: 0.2 })
      const payload = await pay()
      const { intents, record } = recorder()
      const outcome = await settler.settle(payload, requirements, { record, wait: 'confirmed' })
      const row = submitted(payload, requirements, intents[0] as Intent)
      expect(outcome).to.deep.equal({ state: 'pending', transaction: (row.intent as { transaction: Hex }).transaction })
      expect(await settler.status(row)).to.deep.equal(outcome)
      await chain.rpc.call('evm_mine')
      expect(await settler.status(row)).to.deep.equal({ ...outcome, state: 'settled' })
    })

    it('refuses where nothing could be sent, and is not ready until the node is back', async () => {
      const settler = await open()
      expect(settler.health()).to.deep.equal({ ready: true })
      const payload = await pay()
      const outcome = await settler.settle(payload, requirements, {
        wait: 'confirmed',
        async record() {
          await proxy.down()
          await new Promise((wake) => setTimeout(wake, 50))
          return true
        },
      })
      expect(outcome).to.include({ state: 'refused', reason: 'unexpected_settle_error' })
      await until(() => !settler.health().ready)
      expect(settler.health().reason).to.equal('the node cannot be reached')
      expect(await settler.check(payload, requirements).catch((error: { code: string }) => error.code)).to.equal(
        'settler_unavailable',
      )
      await proxy.up()
      await until(() => settler.health().ready)
      expect(await settle(settler, payload)).to.include({ state: 'settled' })
      expect(await received()).to.equal(PRICE)
    })

    it('starts without a node, and refuses one of another chain', async () => {
      await proxy.down()
      const settler = await open()
      expect(settler.health()).to.include({ ready: false })
      await proxy.up()
      await until(() => settler.health().ready)
      proxy.script((_, body) =>
        body.includes('eth_chainId') ? { status: 200, body: '{"jsonrpc":"2.0","id":1,"result":"0x1"}' } : 'pass',
      )
      expect(await open().catch((error: Error) => error.message)).to.contain('chain 84532')
    })

    it('is not ready without money for gas', async () => {
      const settler = await open({ key: generatePrivateKey() })
      expect(settler.health().reason).to.contain('too little to pay gas')
    })
  })

  describe('status, after a restart', () => {
    it('sends a recorded transaction that was never sent, unchanged', async () => {
      const payload = await pay()
      const intent = await crashed(requirements, await open(), payload)
      const settler = await open()
      const row = submitted(payload, requirements, intent)
      expect(await settler.status(row)).to.include({ state: 'pending' })
      await until(async () => (await settler.status(row)).state === 'settled')
      expect(await received()).to.equal(PRICE)
    })

    it('closes the gap below a recorded transaction whose neighbour was never recorded', async () => {
      const first = await open()
      const payload = await pay()
      const held = first.settle(await pay(), requirements, { wait: 'confirmed', record: () => new Promise(() => {}) })
      void held
      await new Promise((wake) => setTimeout(wake, 100))
      const intent = await crashed(requirements, first, payload)
      const settler = await open()
      const row = submitted(payload, requirements, intent)
      await settler.status(row)
      await until(async () => (await settler.status(row)).state === 'settled')
      expect(await received()).to.equal(PRICE)
    })

    it('is settled by whoever moved the money', async () => {
      const payload = await pay()
      const intent = await crashed(requirements, await open(), payload)
      const account = privateKeyToAccount(await newSettleKey(chain))
      const other = createWalletClient({ account, chain: baseSepolia, transport: http(chain.rpcUrl) })
      const transaction = await other.sendTransaction({ to: chain.network.asset, data: settleData(payload) })
      const settler = await open({ key: await newSettleKey(chain) })
      await until(async () => (await chain.rpc.call('eth_getTransactionReceipt', transaction)) !== null)
      const row = submitted(payload, requirements, intent)
      expect(await settler.status(row)).to.deep.equal({ state: 'settled', transaction })
    })

    it('is refused where the payer moved the money elsewhere or cancelled', async () => {
      const account = privateKeyToAccount(await newSettleKey(chain))
      const other = createWalletClient({ account, chain: baseSepolia, transport: http(chain.rpcUrl) })
      const send = async (data: Hex): Promise<void> => {
        const hash = await other.sendTransaction({ to: chain.network.asset, data })
        await until(async () => (await chain.rpc.call('eth_getTransactionReceipt', hash)) !== null)
      }
      const settler = await open()
      const nonce = newNonce()
      const payload = await newPayload(chain, buyer, requirements, { signed: { nonce } })
      const intent = await crashed(requirements, await open(), payload)
      await send(settleData(await newPayload(chain, buyer, newRequirements(chain), { signed: { nonce } })))
      expect(await settler.status(submitted(payload, requirements, intent))).to.include({
        state: 'refused',
        reason: 'invalid_transaction_state',
      })
      const doomed = await pay()
      const lost = await crashed(requirements, await open(), doomed)
      await send(await cancelData(chain, buyer, doomed.nonce))
      const outcome = await settler.status(submitted(doomed, requirements, lost))
      expect(outcome).to.include({ state: 'refused', message: 'The payer cancelled the authorization.' })
      expect(await received()).to.equal(0n)
    })

    it('is pending until the chain itself is past validBefore, then refused', async () => {
      const payload = await pay()
      const intent = await crashed(requirements, await open(), payload)
      const settler = await open({ key: await newSettleKey(chain) })
      const row = submitted(payload, requirements, intent)
      expect(await settler.status(row)).to.include({ state: 'pending' })
      await chain.advance(320)
      expect(await settler.status(row)).to.include({
        state: 'refused',
        reason: 'invalid_exact_evm_payload_authorization_valid_before',
      })
      expect(await received()).to.equal(0n)
    })

    it('is pending where the chain cannot be asked', async () => {
      const payload = await pay()
      const settler = await open()
      const intent = await crashed(requirements, settler, payload)
      proxy.script(() => ({ status: 502, body: 'bad gateway' }))
      expect(await settler.status(submitted(payload, requirements, intent))).to.include({ state: 'pending' })
    })
  })
})

describe('the chain settler under load', function () {
  this.timeout(60_000)
  let chain: TestChain

  before(async function () {
    chain = await startChain(this, { blockSeconds: 1 })
  })
  after(() => chain?.stop())

  it('settles 200 payments at once on one-second blocks, none lost to a nonce', async () => {
    const requirements = newRequirements(chain)
    const buyer = await newBuyer(chain, 200n * PRICE)
    const key = await newSettleKey(chain)
    const settler = await createChainSettler({
      rpcUrl: chain.rpcUrl,
      key,
      network: chain.network,
      log,
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

async function until(ready: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await ready())) await new Promise((wake) => setTimeout(wake, 50))
}

/** Call data of cancelAuthorization, signed by its authorizer. */
async function cancelData({ network }: TestChain, account: PrivateKeyAccount, nonce: Hex): Promise<Hex> {
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
