import { expect } from 'chai'
import { parseTransaction, recoverTransactionAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createLog } from '../../../../../gateway/observe/log.ts'
import type { Hex } from '../../../../../gateway/config/networks.ts'
import { createFeeReader, replacementFees } from '../../../../../gateway/methods/exact-evm/chain/gas-fees.ts'
import { createNodes } from '../../../../../gateway/methods/exact-evm/nodes/nodes.ts'
import { createRpc } from '../../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { createSender, type Sender } from '../../../../../gateway/methods/exact-evm/chain/sender.ts'
import { createSigner } from '../../../../../gateway/methods/exact-evm/chain/transaction-signer.ts'
import { startChain, type TestChain } from '../../../../support/chain.ts'
import { type Proxy, startProxy } from '../../../../support/proxy.ts'
import { newSettleKey } from '../../../../support/payments.ts'
import { until, untilFound } from '../../../../support/until.ts'

const log = createLog('silent')
const to: Hex = '0x00000000000000000000000000000000000000b2'

describe('the transaction signer', () => {
  it('signs transactions that viem parses, from the address of its key', async () => {
    const key = generatePrivateKey()
    const signer = createSigner(key, 84532)
    expect(signer.address).to.equal(privateKeyToAccount(key).address)
    const fields = { to, data: '0xabcdef', gas: 50_000n, nonce: 7, maxFeePerGas: 9n, maxPriorityFeePerGas: 2n } as const
    const { raw, hash } = signer.sign(fields)
    expect(parseTransaction(raw)).to.deep.include({ ...fields, chainId: 84532 })
    expect(await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` })).to.equal(signer.address)
    expect(hash).to.match(/^0x[0-9a-f]{64}$/)
  })
})

const fees = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) => ({ maxFeePerGas, maxPriorityFeePerGas })

describe('the fees of a replacement transaction', () => {
  it('rise by at least a quarter, and only if fees on the chain have risen', () => {
    expect(replacementFees(fees(100n, 8n), fees(100n, 8n))).to.equal(null)
    expect(replacementFees(fees(50n, 4n), fees(100n, 8n))).to.equal(null)
    expect(replacementFees(fees(101n, 8n), fees(100n, 8n))).to.deep.equal(fees(125n, 10n))
    expect(replacementFees(fees(400n, 9n), fees(100n, 8n))).to.deep.equal(fees(400n, 10n))
  })
})

describe('the fees of a replacement transaction under a limit', () => {
  it('rise up to the limit and no further', () => {
    expect(replacementFees(fees(400n, 9n), fees(100n, 8n), 1_000n)).to.deep.equal(fees(400n, 10n))
    expect(replacementFees(fees(400n, 9n), fees(100n, 8n), 200n)).to.deep.equal(fees(200n, 10n))
    expect(replacementFees(fees(101n, 8n), fees(100n, 8n), 110n)).to.deep.equal(fees(110n, 10n))
  })

  it('stay as they are if the limit allows less than nodes require for a replacement', () => {
    expect(replacementFees(fees(101n, 8n), fees(100n, 8n), 109n)).to.equal(null)
    expect(replacementFees(fees(400n, 9n), fees(100n, 8n), 100n)).to.equal(null)
  })
})

describe('the sender of transactions', () => {
  let chain: TestChain
  let proxy: Proxy
  let sender: Sender
  let address: Hex

  before(async function () {
    chain = await startChain(this)
    proxy = await startProxy(chain.rpcUrl)
  })
  beforeEach(async () => {
    const signer = createSigner(await newSettleKey(chain), chain.network.chainId)
    address = signer.address
    const rpc = createNodes({ addresses: proxy.url, network: chain.network, log })
    sender = createSender({ rpc, signer, log, pollMs: 20, stuckMs: 150, fillMs: 50 })
  })
  afterEach(async () => {
    sender.close()
    proxy.script(() => 'pass')
    await chain.rpc.call('evm_setAutomine', true)
    await chain.rpc.call('evm_mine')
  })
  after(async () => {
    await proxy?.close()
    await chain?.stop()
  })

  /** Resolves once the waiting transaction was sent three more times, each of which could have replaced it. */
  async function sentAgain(): Promise<void> {
    const sent = (): number => proxy.requests.filter((body) => body.includes('eth_sendRawTransaction')).length
    const before = sent()
    await until(() => sent() >= before + 3)
  }
  const prepare = () => sender.prepare(to, '0x', 30_000n)
  /** True if the pool of the node holds a transaction. */
  const isPooled = async (hash: Hex): Promise<boolean> =>
    (await chain.rpc.call('eth_getTransactionByHash', hash)) !== null

  it('sends a transaction again that the pool of the node dropped', async () => {
    await chain.rpc.call('evm_setAutomine', false)
    const transaction = await prepare()
    expect(await sender.send(transaction)).to.equal(true)
    await chain.rpc.call('anvil_dropTransaction', transaction.hash)
    await chain.rpc.call('evm_mine')
    expect(await chain.rpc.call('eth_getTransactionReceipt', transaction.hash)).to.equal(null)
    await until(async () => (await Promise.all(transaction.hashes.map(isPooled))).includes(true))
    await chain.rpc.call('evm_mine')
    expect(transaction.hashes).to.include((await transaction.mined)?.transactionHash)
  })

  it('raises the fee of a waiting transaction if fees have risen, and accepts whichever version is mined', async () => {
    await chain.rpc.call('evm_setAutomine', false)
    const transaction = await prepare()
    await sender.send(transaction)
    await chain.rpc.call('anvil_setNextBlockBaseFeePerGas', '0x174876e800')
    await chain.rpc.call('evm_mine')
    expect(await chain.rpc.call('eth_getTransactionReceipt', transaction.hash)).to.equal(null)
    await until(() => transaction.hashes.length > 1)
    await until(() => isPooled(transaction.hashes.at(-1) as Hex))
    await chain.rpc.call('evm_mine')
    const receipt = await transaction.mined
    expect(transaction.hashes).to.include(receipt?.transactionHash)
    expect(receipt?.transactionHash).to.not.equal(transaction.hashes[0])
    await chain.rpc.call('anvil_setNextBlockBaseFeePerGas', '0x1')
  })

  it('replaces a transaction once if it is not mined for no visible reason', async () => {
    await chain.rpc.call('evm_setAutomine', false)
    const transaction = await prepare()
    await sender.send(transaction)
    await until(() => transaction.hashes.length > 1)
    await sentAgain()
    expect(transaction.hashes).to.have.length(2)
    await chain.rpc.call('evm_mine')
    expect((await transaction.mined)?.transactionHash).to.equal(transaction.hashes[1])
  })

  it('gets transactions mined that the pool held back although their nonce was next', async () => {
    const [first, next, last] = [await prepare(), await prepare(), await prepare()]
    await Promise.all([sender.send(next), sender.send(last)])
    await chain.rpc.call('anvil_setNonce', address, `0x${next.nonce.toString(16)}`)
    const receipts = await Promise.all([next.mined, last.mined])
    expect(receipts.map((receipt) => receipt?.status)).to.deep.equal(['0x1', '0x1'])
    sender.abandon(first)
  })

  it('never offers more than the gas price limit, and continues when the price falls', async () => {
    const maxGasPrice = 20_000_000_000n
    await chain.rpc.call('anvil_setNextBlockBaseFeePerGas', '0x3b9aca00')
    await chain.rpc.call('evm_mine')
    const signer = createSigner(await newSettleKey(chain), chain.network.chainId)
    const limited = createSender({ rpc: createRpc(proxy.url), signer, log, pollMs: 20, stuckMs: 100, maxGasPrice })
    try {
      await chain.rpc.call('evm_setAutomine', false)
      const transaction = await limited.prepare(to, '0x', 30_000n)
      await limited.send(transaction)
      await chain.rpc.call('anvil_setNextBlockBaseFeePerGas', '0x174876e800')
      await chain.rpc.call('evm_mine')
      await until(() => parseTransaction(transaction.raw).maxFeePerGas === maxGasPrice)
      const offers = transaction.hashes.length
      await sentAgain()
      expect(transaction.hashes).to.have.length(offers)
      const refusal = await failureOf(() => limited.prepare(to, '0x', 30_000n))
      expect(refusal).to.match(/^gas costs 87\.5\d* gwei, above SETTLE_MAX_GWEI \(20\)$/)
      // The pool may have dropped it until the sender sends it again.
      await chain.rpc.call('anvil_setNextBlockBaseFeePerGas', '0x1')
      await chain.rpc.call('evm_setAutomine', true)
      await chain.rpc.call('evm_mine')
      expect(await transaction.mined).to.include({ status: '0x1' })
    } finally {
      limited.close()
    }
  })

  it('fills the nonce gap that an abandoned transaction leaves', async () => {
    const [abandoned, kept] = [await prepare(), await prepare()]
    await sender.send(kept)
    sender.abandon(abandoned)
    expect(await kept.mined).to.include({ status: '0x1' })
    expect(Number(await chain.rpc.call('eth_getTransactionCount', address, 'latest'))).to.equal(2)
  })

  it('sends a transaction again at once if the answer of the node was lost', async () => {
    let lostAnswers = 0
    proxy.script((_, body) => {
      if (!body.includes('eth_sendRawTransaction') || lostAnswers++ > 0) return 'pass'
      return { status: 504, body: 'gateway timeout' }
    })
    const transaction = await prepare()
    expect(await sender.send(transaction)).to.equal(false)
    expect(await transaction.mined).to.include({ status: '0x1' })
  })

  it('reuses the nonce of a transaction that the node refused for good', async () => {
    const refusing =
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"insufficient funds for gas * price + value"}}'
    proxy.script((_, body) => (body.includes('eth_sendRawTransaction') ? { status: 200, body: refusing } : 'pass'))
    const transaction = await prepare()
    const error = await sender.send(transaction).catch((thrown: { fault: string }) => thrown)
    expect(error).to.include({ fault: 'refused' })
    proxy.script(() => 'pass')
    const next = await prepare()
    expect(next.nonce).to.equal(transaction.nonce)
    await sender.send(next)
    expect(await next.mined).to.include({ status: '0x1' })
  })

  it('gives up a transaction that the node keeps refusing, so that it blocks no other', async () => {
    let refusing = true
    const answer = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not today"}}'
    proxy.script((_, body) =>
      refusing && body.includes('eth_sendRawTransaction') ? { status: 200, body: answer } : 'pass',
    )
    const refused = await prepare()
    expect(await sender.send(refused)).to.equal(false)
    expect(await refused.mined).to.equal(null)
    refusing = false
    const next = await prepare()
    expect(next.nonce).to.equal(refused.nonce)
    await sender.send(next)
    expect(await next.mined).to.include({ status: '0x1' })
  })

  it('tips as most of the last five blocks do, whatever a stranger tips in two of them', async () => {
    const stranger: Hex = '0x00000000000000000000000000000000000000c3'
    await chain.fund(stranger, 10n ** 20n)
    await chain.rpc.call('anvil_impersonateAccount', stranger)
    const tip = async (wei: bigint): Promise<void> => {
      const hash: Hex = await chain.rpc.call('eth_sendTransaction', {
        from: stranger,
        to,
        maxFeePerGas: `0x${(10n ** 13n).toString(16)}`,
        maxPriorityFeePerGas: `0x${wei.toString(16)}`,
      })
      // The chain answers before the block is mined.
      await until(async () => (await chain.rpc.call('eth_getTransactionReceipt', hash)) !== null, 5)
    }
    const [usual, huge] = [10n ** 7n, 10n ** 12n]
    const currentFees = createFeeReader({ rpc: createRpc(proxy.url), maxGasPrice: null })
    for (const wei of [usual, usual, huge, usual, huge]) await tip(wei)
    expect(await currentFees({ fresh: true })).to.include({ maxPriorityFeePerGas: usual })
    await tip(huge)
    await tip(huge)
    expect(await currentFees({ fresh: true })).to.include({ maxPriorityFeePerGas: huge })
  })

  it('reads the fees once for many callers, and again on request', async () => {
    const currentFees = createFeeReader({ rpc: createRpc(proxy.url), maxGasPrice: null })
    const requestsBefore = proxy.requests.length
    await Promise.all(Array.from({ length: 20 }, () => currentFees()))
    expect(proxy.requests.length - requestsBefore).to.equal(1)
    await currentFees({ fresh: true })
    expect(proxy.requests.length - requestsBefore).to.equal(2)
  })
})

/** Repeats `work` until it fails and returns the message of the error. */
function failureOf(work: () => Promise<unknown>): Promise<string> {
  const failure = (): Promise<string | undefined> =>
    work().then(
      () => undefined,
      (error: Error) => error.message,
    )
  return untilFound(failure, 100)
}
