import { once } from 'node:events'
import { expect } from 'chai'
import secp256k1 from 'secp256k1'
import { serializeErc6492Signature } from 'viem/utils'
import { generatePrivateKey, type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import { createLog } from '../../gateway/observe/log.ts'
import { createDigest } from '../../gateway/methods/exact-evm/authorization-check.ts'
import { decodePayment } from '../../gateway/methods/payment-method.ts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import { transferOf } from '../../gateway/methods/exact-evm/eip3009.ts'
import type { Outcome, Settler } from '../../gateway/methods/payment-method.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { json, offer, payment, receipt, send } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { newWallet, nextRequest, openGateway, PAY_TO, type TestGateway, until } from '../support/gateway.ts'
import { type Proxy, startProxy } from '../support/proxy.ts'
import { newSettleKey } from '../support/payments.ts'
import { base64, createPayment } from '../support/wallet.ts'
import { createContractWallets, type ContractWallets } from '../support/contract-wallets.ts'

describe('a contract wallet', () => {
  let chain: TestChain
  let proxy: Proxy
  let contractWallets: ContractWallets
  let shop: TestGateway
  let url: string
  let onAnswered: () => Promise<void> = async () => {}
  let onSettled: (outcome: Outcome) => void = () => {}
  const balance = (): Promise<bigint> => chain.balanceOf(PAY_TO)
  const codeOf = (account: Hex): Promise<Hex> => chain.rpc.call<Hex>('eth_getCode', account, 'latest')
  const requestCount = (method: string): number => proxy.requests.filter((body) => body.includes(method)).length
  before(async function () {
    chain = await startChain(this)
    proxy = await startProxy(chain.rpcUrl)
    contractWallets = await createContractWallets(chain)
    const settler = await createChainSettler({
      rpcUrl: proxy.url,
      key: await newSettleKey(chain),
      network: chain.network,
      log: createLog('silent'),
      confirmSeconds: 10,
      factories: [contractWallets.factory],
    })
    const { network } = chain
    const watched: Settler = {
      ...settler,
      async settle(...settlement) {
        await onAnswered()
        const outcome = await settler.settle(...settlement)
        onSettled(outcome)
        return outcome
      },
    }
    const settlement = { network, payTo: PAY_TO, settler: watched, sandbox: null, close: () => settler.close() }
    shop = await openGateway({}, { settlement })
    url = `${shop.url}/v1/echo/wallet`
  })
  after(async () => {
    await shop?.close()
    await proxy?.close()
    await chain?.stop()
  })

  const wallets: Readonly<Record<string, () => Promise<LocalAccount>>> = {
    'that is deployed (ERC-1271)': () => contractWallets.newWallet({ deployed: true }),
    'that is not deployed yet (ERC-6492)': () => contractWallets.newWallet({ deployed: false }),
    'at the address of a key (EIP-7702)': () => contractWallets.newDelegatedAccount(),
  }
  for (const [name, newAccount] of Object.entries(wallets))
    for (const version of [1, 2] as const)
      it(`${name} pays once in x402 v${version} and can fetch its answer again`, async () => {
        const account = await newAccount()
        const before = await balance()
        const header = await payment(url, account, version)
        const response = await send(url, header, version)
        expect(response.status).to.equal(200)
        expect(receipt(response)).to.include({ success: true, payer: account.address.toLowerCase() })
        const text = await response.text()
        expect((await balance()) - before).to.equal(5000n)
        expect(await codeOf(account.address)).to.not.equal('0x')
        const repeated = await send(url, header, version)
        expect([repeated.status, await repeated.text()]).to.deep.equal([200, text])
        expect((await balance()) - before).to.equal(5000n)
      })

  it('that is none, because a key signs in the form of ERC-6492, has no factory called at our expense', async () => {
    const key = newWallet()
    await chain.mint(key.address, 1_000_000n)
    const deployment = { address: contractWallets.factory, data: `0x${'5a'.repeat(64)}` } as const
    const wrapped: LocalAccount = {
      ...key,
      signTypedData: async (data) =>
        serializeErc6492Signature({ ...deployment, signature: await key.signTypedData(data) }),
    }
    const response = await send(url, await payment(url, wrapped))
    expect(response.status).to.equal(200)
    const sent = await chain.rpc.call<{ to: Hex }>('eth_getTransactionByHash', receipt(response)['transaction'])
    expect(sent.to).to.equal(chain.network.asset.toLowerCase())
  })

  it('that was deployed by its first payment pays again', async () => {
    const account = await contractWallets.newWallet({ deployed: false })
    for (let payments = 0; payments < 2; payments++)
      expect((await send(url, await payment(url, account))).status).to.equal(200)
  })

  it('is charged only once its buyer comes back for an answer that was stored when the buyer left', async () => {
    const header = await payment(url, await contractWallets.newWallet({ deployed: true }))
    const leaving = new AbortController()
    const arrived = nextRequest(shop)
    onAnswered = async () => {
      const closed = once((await arrived).response, 'close')
      leaving.abort()
      await closed
    }
    const settled = new Promise<Outcome>((resolve) => (onSettled = resolve))
    const before = await balance()
    const lost = await send(url, header, 2, { signal: leaving.signal }).catch(() => 'disconnected')
    expect(lost).to.equal('disconnected')
    onAnswered = async () => {}
    expect(await settled).to.deep.equal({ state: 'pending', transaction: null })
    expect(await balance()).to.equal(before)
    expect((await send(url, header)).status).to.equal(200)
    expect((await balance()) - before).to.equal(5000n)
  })

  it('is refused with the reason if its signature, its factory or its balance is not accepted', async () => {
    const refusalOf = async (account: LocalAccount): Promise<string> => {
      const { response, v1 } = await offer(url, { headers: { 'payment-signature': await payment(url, account) } })
      expect(response.status).to.equal(402)
      return v1.error
    }
    const wallet = await contractWallets.newWallet({ deployed: true })
    const other = await contractWallets.newWallet({ deployed: true })
    const forged = { ...wallet, signTypedData: other.signTypedData } as LocalAccount
    expect(await refusalOf(forged)).to.equal('invalid_exact_evm_payload_signature')
    expect(await refusalOf(await contractWallets.newWallet({ deployed: true, balance: 0n }))).to.equal(
      'insufficient_funds',
    )
    expect(await refusalOf(await contractWallets.newWallet({ deployed: false, balance: 0n }))).to.equal(
      'insufficient_funds',
    )
    const walletOfOtherFactory = await (await createContractWallets(chain)).newWallet({ deployed: false })
    expect(await refusalOf(walletOfOtherFactory)).to.equal('eip6492_factory_not_allowed')
    expect(await codeOf(walletOfOtherFactory.address)).to.equal('0x')
  })

  it('cannot be impersonated at our expense: repeated forgeries cost one lookup and are then refused with 429', async () => {
    const claimed = newWallet()
    const forger = { ...newWallet(), address: claimed.address } as LocalAccount
    const [lookupsBefore, simulationsBefore] = [requestCount('eth_getCode'), requestCount('eth_call')]
    for (let tries = 0; tries < 10; tries++) {
      const { v1 } = await offer(url, { headers: { 'payment-signature': await payment(url, forger) } })
      expect(v1).to.include({ error: 'invalid_exact_evm_payload_signature' })
      expect(JSON.stringify(v1)).to.contain('The domain is')
    }
    expect(requestCount('eth_getCode') - lookupsBefore).to.equal(1)
    expect(requestCount('eth_call') - simulationsBefore).to.equal(0)
    let refusedByLimit = 0
    for (let tries = 0; tries < 60; tries++)
      if ((await send(url, await payment(url, forger))).status === 429) refusedByLimit += 1
    expect(refusedByLimit).to.be.greaterThan(5)
  })
})

describe('one authorization with two valid signatures', () => {
  it('is one payment if both are sent at once, and blocks no other request', async () => {
    const shop = await openGateway()
    try {
      const url = `${shop.url}/v1/echo/twice`
      const key = generatePrivateKey()
      const { v2 } = await offer(url)
      const { network } = shop.gateway.settlement
      const firstPayment = await createPayment({
        account: privateKeyToAccount(key),
        requirement: v2.accepts[0] as never,
        version: 2,
      })
      const digest = createDigest(network)(transferOf(decodePayment(firstPayment, [createExactEvm(network)])))
      const options = { data: Buffer.alloc(32, 7) }
      const { signature, recid } = secp256k1.ecdsaSign(digest, Buffer.from(key.slice(2), 'hex'), options)
      const other = `0x${Buffer.from(signature).toString('hex')}${(27 + recid).toString(16)}`
      const secondPayment = { ...firstPayment, payload: { ...(firstPayment['payload'] as object), signature: other } }
      const release = shop.settler.hold()
      const first = send(url, base64(firstPayment))
      await until(() => shop.settler.calls.includes('settle'))
      const secondArrived = nextRequest(shop)
      const second = send(url, base64(secondPayment))
      await secondArrived
      expect((await send(url, await payment(url, shop.wallet).then(() => 'x'))).status).to.equal(402)
      release()
      const [a, b] = await Promise.all([first, second])
      expect([a.status, b.status]).to.deep.equal([200, 200])
      expect(await json(a)).to.deep.equal(await json(b))
      expect(shop.settler.transfers).to.have.length(1)
    } finally {
      await shop.close()
    }
  })
})
