import { once } from 'node:events'
import { expect } from 'chai'
import { encodeFunctionData, parseAbi } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { createLog } from '../../gateway/observe/log.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import type { Settler } from '../../gateway/methods/payment-method.ts'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { json, payment, receipt, send } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { type ContractWallets, createContractWallets } from '../support/contract-wallets.ts'
import { nextRequest, openGateway, PAY_TO, type TestGateway, until } from '../support/gateway.ts'
import { newBuyer, newSettleKey } from '../support/payments.ts'

/** The answer of txpool_content: transactions by sender and nonce. */
interface Txpool {
  readonly pending: Readonly<Record<Hex, Readonly<Record<string, { readonly maxFeePerGas: Hex }>>>>
}

/** A shop on a real chain, and what its gas account sent. */
interface Shop {
  readonly chain: TestChain
  readonly wallets: ContractWallets
  readonly gateway: TestGateway
  readonly settler: Settler
  readonly url: string
  /** How many transactions the gas account has sent. */
  sent(): Promise<number>
  close(): Promise<void>
}

async function openShop(context: Mocha.Context, blockSeconds?: number): Promise<Shop> {
  const chain = await startChain(context, blockSeconds === undefined ? {} : { blockSeconds })
  const wallets = await createContractWallets(chain)
  const key: Hex = await newSettleKey(chain)
  const { network, rpcUrl } = chain
  const log = createLog('silent')
  const settler = await createChainSettler({ rpcUrl, key, network, log, confirmSeconds: 20, pollMs: 50 })
  const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: () => settler.close() }
  const gateway = await openGateway({}, { settlement, now: () => new Date() })
  const { address } = privateKeyToAccount(key)
  return {
    chain,
    wallets,
    gateway,
    settler,
    url: `${gateway.url}/v1/echo/hostile`,
    sent: async () => Number(await chain.rpc.call('eth_getTransactionCount', address, 'latest')),
    async close() {
      await gateway.close()
      await chain.stop()
    },
  }
}

describe('a payer who is honest only while gas has no price', () => {
  let shop: Shop
  before(async function () {
    shop = await openShop(this)
  })
  after(() => shop?.close())

  it('is refused before anything is sent if it is a contract wallet (ERC-1271)', async () => {
    const account = await shop.wallets.newEvilWallet()
    const response = await send(shop.url, await payment(shop.url, account))
    expect(response.status).to.equal(402)
    expect(await json(response)).to.include({ code: 'payment_invalid' })
    expect(await shop.sent()).to.equal(0)
  })

  it('is refused before anything is sent if a key signs for an account with code (EIP-7702)', async () => {
    const account = await shop.wallets.newEvilDelegatedAccount()
    const response = await send(shop.url, await payment(shop.url, account))
    expect(response.status).to.equal(402)
    expect(await json(response)).to.include({ code: 'payment_invalid' })
    expect(await shop.sent()).to.equal(0)
  })

  it('is slowed down like a payer whose signature only the chain can verify', async () => {
    const account = await shop.wallets.newEvilDelegatedAccount()
    const statuses = new Set<number>()
    for (let tries = 0; tries < 70; tries++)
      statuses.add((await send(shop.url, await payment(shop.url, account))).status)
    expect(statuses).to.deep.equal(new Set([402, 429]))
    expect(await shop.sent()).to.equal(0)
  })
})

describe('honest payers beside an evil one', () => {
  let shop: Shop
  before(async function () {
    shop = await openShop(this, 1)
  })
  after(() => shop?.close())

  it('are served, and the evil one never gets into a transaction', async () => {
    const honest: PrivateKeyAccount[] = []
    while (honest.length < 11) honest.push(await newBuyer(shop.chain))
    const evil = await shop.wallets.newEvilDelegatedAccount()
    const headers = await Promise.all([...honest, evil].map((account) => payment(shop.url, account)))
    const responses = await Promise.all(headers.map((header) => send(shop.url, header)))
    expect(responses.map(({ status }) => status)).to.deep.equal([...honest.map(() => 200), 402])
    const settled = responses.filter(({ status }) => status === 200)
    for (const transaction of new Set(settled.map((response) => String(receipt(response)['transaction'])))) {
      const found = await shop.chain.rpc.call<{ gasUsed: Hex; logs: readonly unknown[] }>(
        'eth_getTransactionReceipt',
        transaction,
      )
      // The token writes two logs for each payment.
      expect(Number(found.gasUsed) / (found.logs.length / 2), 'gas of each payment').to.be.lessThan(100_000)
    }
  })
})

describe('a purse that is emptied between the check and the settlement', () => {
  let shop: Shop
  before(async function () {
    shop = await openShop(this)
  })
  after(() => shop?.close())

  /** Sends payments, and empties the purse in the block in which the first of them would settle. */
  async function payAndSweep(buyer: PrivateKeyAccount, headers: readonly string[]): Promise<readonly Response[]> {
    const { rpc, network } = shop.chain
    /** What the waiting transactions offer for a unit of gas. */
    const offered = async (): Promise<readonly bigint[]> => {
      const { pending } = await rpc.call<Txpool>('txpool_content')
      return Object.values(pending).flatMap((byNonce) => Object.values(byNonce).map((tx) => BigInt(tx.maxFeePerGas)))
    }
    await shop.chain.fund(buyer.address)
    await rpc.call('anvil_impersonateAccount', buyer.address)
    await rpc.call('evm_setAutomine', false)
    let isOver = false
    const paying = Promise.all(headers.map((header) => send(shop.url, header))).finally(() => {
      isOver = true
    })
    await until(async () => isOver || (await offered()).length > 0)
    const data = await sweepData(buyer)
    // A payer outbids whatever waits. Earlier sweeps raised what transactions offer.
    const highest = (await offered()).reduce((one, other) => (one > other ? one : other), 10n ** 10n)
    const fee = `0x${(2n * highest).toString(16)}`
    const fees = { maxFeePerGas: fee, maxPriorityFeePerGas: fee }
    await rpc.call('eth_sendTransaction', { from: buyer.address, to: network.asset, data, ...fees })
    await rpc.call('evm_mine')
    await rpc.call('evm_setAutomine', true)
    return paying
  }

  /** Call data that moves all that a buyer has elsewhere. */
  async function sweepData({ address }: PrivateKeyAccount): Promise<Hex> {
    const abi = parseAbi(['function transfer(address to, uint256 value)'])
    const value = await shop.chain.balanceOf(address)
    return encodeFunctionData({ abi, args: ['0x00000000000000000000000000000000000000b2', value] })
  }

  /** The payments that were sent and failed. */
  const failed = async (buyer: PrivateKeyAccount): Promise<number> =>
    (await shop.gateway.gateway.journal.list({ payer: buyer.address, limit: 100 })).filter(
      ({ intent }) => intent !== null,
    ).length

  it('costs us the gas of two payments of a stranger, not of all sixty', async () => {
    const buyer = await newBuyer(shop.chain)
    const headers: string[] = []
    while (headers.length < 60) headers.push(await payment(shop.url, buyer))
    const responses = await payAndSweep(buyer, headers)
    expect(new Set(responses.map(({ status }) => status))).to.deep.equal(new Set([402, 429]))
    expect(await failed(buyer)).to.be.within(1, 2)
  })

  it('costs us the gas of a signature once, however often the purse is filled and the signature sent again', async () => {
    const buyer = await newBuyer(shop.chain)
    const header = await payment(shop.url, buyer)
    const before = await shop.sent()
    const [first] = await payAndSweep(buyer, [header])
    expect(first?.status).to.equal(402)
    for (let again = 0; again < 7; again++) {
      await shop.chain.mint(buyer.address, 1_000_000n)
      const [response] = (await payAndSweep(buyer, [header])) as [Response]
      expect(response.status).to.equal(402)
      const { message } = await json(response)
      expect(message).to.contain('failed on the chain')
    }
    expect((await shop.sent()) - before).to.equal(1)
  })

  describe('whose owner left before five payments were sent, and comes back for the answers', () => {
    let buyer: PrivateKeyAccount
    let headers: string[]

    beforeEach(async () => {
      buyer = await newBuyer(shop.chain)
      headers = []
      while (headers.length < 5) headers.push(await leave())
    })

    /** Hangs up between the answer and the settlement, so that the answer is kept. Returns the payment. */
    async function leave(): Promise<string> {
      const { settler } = shop
      const settle = settler.settle.bind(settler)
      const header = await payment(shop.url, buyer)
      const leaving = new AbortController()
      const arrived = nextRequest(shop.gateway)
      settler.settle = async (_payment, _requirements, { record }) => {
        leaving.abort()
        await closed
        await record({ kind: 'chain' })
        return { state: 'pending', transaction: null }
      }
      const left = send(shop.url, header, 2, { signal: leaving.signal }).catch(() => null)
      const closed = arrived.then(({ response }) => once(response, 'close'))
      await left
      const count = headers.length + 1
      await until(async () => (await kept()).length === count)
      settler.settle = settle
      return header
    }
    const kept = () => shop.gateway.gateway.journal.list({ payer: buyer.address, states: ['answered'], limit: 100 })

    it('costs us the gas of two payments', async () => {
      const responses = await payAndSweep(buyer, headers)
      expect(new Set(responses.map(({ status }) => status))).to.deep.equal(new Set([402, 429]))
      expect(await failed(buyer)).to.be.within(1, 2)
    })

    it('costs us nothing if it was emptied before that', async () => {
      const before = await shop.sent()
      const { rpc, network } = shop.chain
      await shop.chain.fund(buyer.address)
      await rpc.call('anvil_impersonateAccount', buyer.address)
      const data = await sweepData(buyer)
      await rpc.call('eth_sendTransaction', { from: buyer.address, to: network.asset, data })
      await until(async () => (await shop.chain.balanceOf(buyer.address)) === 0n)
      const responses = await Promise.all(headers.map((header) => send(shop.url, header)))
      expect(responses.map(({ status }) => status)).to.deep.equal(headers.map(() => 402))
      expect(await shop.sent()).to.equal(before)
    })

    it('is charged for each if the purse is full, and the answers are those that were kept', async () => {
      const bodies = (await kept()).map(({ answer }) => String(answer?.body))
      const responses = await Promise.all(headers.map((header) => send(shop.url, header)))
      expect(responses.map(({ status }) => status)).to.deep.equal(headers.map(() => 200))
      expect(await Promise.all(responses.map((response) => response.text()))).to.have.members(bodies)
    })
  })

  it('makes its owner wait before the next purchase', async () => {
    const buyer = await newBuyer(shop.chain)
    const [emptied] = await payAndSweep(buyer, [await payment(shop.url, buyer)])
    expect(emptied?.status).to.equal(402)
    await shop.chain.mint(buyer.address, 1_000_000n)
    const response = await send(shop.url, await payment(shop.url, buyer))
    expect([response.status, (await json(response))['code']]).to.deep.equal([429, 'rate_limited'])
    expect(Number(response.headers.get('retry-after'))).to.be.within(1, 30)
    expect(await shop.chain.balanceOf(buyer.address)).to.equal(1_000_000n)
  })

  it('does not keep an honest stranger from buying twenty answers at once', async () => {
    const buyer = await newBuyer(shop.chain)
    const headers: string[] = []
    while (headers.length < 20) headers.push(await payment(shop.url, buyer))
    const responses = await Promise.all(headers.map((header) => send(shop.url, header)))
    expect(new Set(responses.map(({ status }) => status))).to.deep.equal(new Set([200]))
  })
})

describe('a payer whose account uses ten times the gas of a plain one', () => {
  let shop: Shop
  before(async function () {
    shop = await openShop(this)
  })
  after(() => shop?.close())

  it('is served, and waits once its settlements have used a million gas more than plain ones may', async () => {
    const account = await shop.wallets.newCostlyWallet()
    const statuses: number[] = []
    let last: Response | undefined
    for (let times = 0; times < 5; times++) {
      last = await send(shop.url, await payment(shop.url, account))
      statuses.push(last.status)
    }
    expect(statuses).to.deep.equal([200, 200, 200, 200, 429])
    expect(Number(last?.headers.get('retry-after'))).to.be.within(1, 30)
    expect(await shop.sent()).to.equal(4)
    const plain = await newBuyer(shop.chain)
    for (let times = 0; times < 6; times++)
      expect((await send(shop.url, await payment(shop.url, plain))).status).to.equal(200)
  })
})
