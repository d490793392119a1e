import { expect } from 'chai'
import secp256k1 from 'secp256k1'
import { generatePrivateKey, type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import { createLog } from '../../gateway/observe/log.ts'
import { createDigest } from '../../gateway/methods/exact-evm/authorization-check.ts'
import { decodePayment } from '../../gateway/methods/payment-method.ts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import { transferOf } from '../../gateway/methods/exact-evm/eip3009.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { json, offer, payment, receipt, send } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { newWallet, openGateway, PAY_TO, type TestGateway } from '../support/gateway.ts'
import { type Proxy, startProxy } from '../support/proxy.ts'
import { newSettleKey } from '../support/payments.ts'
import { base64, createPayment } from '../support/wallet.ts'
import { createWalletMaker, type WalletMaker } from '../support/contract-wallets.ts'

describe('a contract wallet', () => {
  let chain: TestChain
  let proxy: Proxy
  let maker: WalletMaker
  let shop: TestGateway
  let url: string
  let onAnswered: () => Promise<void> = async () => {}
  const balance = (): Promise<bigint> => chain.balanceOf(PAY_TO)
  const codeOf = (account: Hex): Promise<Hex> => chain.rpc.call<Hex>('eth_getCode', account, 'latest')
  const asked = (method: string): number => proxy.requests.filter((body) => body.includes(method)).length
  before(async function () {
    chain = await startChain(this)
    proxy = await startProxy(chain.rpcUrl)
    maker = await createWalletMaker(chain)
    const settler = await createChainSettler({
      rpcUrl: proxy.url,
      key: await newSettleKey(chain),
      network: chain.network,
      log: createLog('silent'),
      confirmSeconds: 10,
      factories: [maker.factory],
    })
    const { network } = chain
    const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: () => settler.close() }
    const journal = (real: Journal): Journal => ({
      ...real,
      async answered(...change) {
        const moved = await real.answered(...change)
        await onAnswered()
        return moved
      },
    })
    shop = await openGateway({}, { settlement, journal })
    url = `${shop.url}/v1/echo/wallet`
  })
  after(async () => {
    await shop?.close()
    await proxy?.close()
    await chain?.stop()
  })

  const paying: Readonly<Record<string, () => Promise<LocalAccount>>> = {
    'that is deployed (ERC-1271)': () => maker.newWallet({ exists: true }),
    'that is not deployed yet (ERC-6492)': () => maker.newWallet({ exists: false }),
    'at the address of a key (EIP-7702)': () => maker.newDelegated(),
  }
  for (const [name, newAccount] of Object.entries(paying))
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
        const again = await send(url, header, version)
        expect([again.status, await again.text()]).to.deep.equal([200, text])
        expect((await balance()) - before).to.equal(5000n)
      })

  it('that was deployed by its first payment pays again', async () => {
    const account = await maker.newWallet({ exists: false })
    for (let payments = 0; payments < 2; payments++)
      expect((await send(url, await payment(url, account))).status).to.equal(200)
  })

  it('is charged only once its buyer comes back for an answer that was stored when the buyer left', async () => {
    const header = await payment(url, await maker.newWallet({ exists: true }))
    const leaving = new AbortController()
    onAnswered = async () => {
      leaving.abort()
      await new Promise((wake) => setTimeout(wake, 100))
    }
    const before = await balance()
    const lost = await send(url, header, 2, { signal: leaving.signal }).catch(() => 'disconnected')
    expect(lost).to.equal('disconnected')
    onAnswered = async () => {}
    await new Promise((wake) => setTimeout(wake, 150))
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
    const wallet = await maker.newWallet({ exists: true })
    const other = await maker.newWallet({ exists: true })
    const forged = { ...wallet, signTypedData: other.signTypedData } as LocalAccount
    expect(await refusalOf(forged)).to.equal('invalid_exact_evm_payload_signature')
    expect(await refusalOf(await maker.newWallet({ exists: true, balance: 0n }))).to.equal('insufficient_funds')
    expect(await refusalOf(await maker.newWallet({ exists: false, balance: 0n }))).to.equal('insufficient_funds')
    const ofOtherFactory = await (await createWalletMaker(chain)).newWallet({ exists: false })
    expect(await refusalOf(ofOtherFactory)).to.equal('eip6492_factory_not_allowed')
    expect(await codeOf(ofOtherFactory.address)).to.equal('0x')
  })

  it('cannot be impersonated at our expense: repeated forgeries cost one lookup, then 429', async () => {
    const claimed = newWallet()
    const forger = { ...newWallet(), address: claimed.address } as LocalAccount
    const [before, simulated] = [asked('eth_getCode'), asked('eth_call')]
    for (let tries = 0; tries < 10; tries++) {
      const { v1 } = await offer(url, { headers: { 'payment-signature': await payment(url, forger) } })
      expect(v1).to.include({ error: 'invalid_exact_evm_payload_signature' })
      expect(JSON.stringify(v1)).to.contain('The domain is')
    }
    expect(asked('eth_getCode') - before).to.equal(1)
    expect(asked('eth_call') - simulated).to.equal(0)
    let limited = 0
    for (let tries = 0; tries < 60; tries++)
      if ((await send(url, await payment(url, forger))).status === 429) limited += 1
    expect(limited).to.be.greaterThan(5)
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
      const one = await createPayment({
        account: privateKeyToAccount(key),
        requirement: v2.accepts[0] as never,
        version: 2,
      })
      const digest = createDigest(network)(transferOf(decodePayment(one, [createExactEvm(network)])))
      const options = { data: Buffer.alloc(32, 7) }
      const { signature, recid } = secp256k1.ecdsaSign(digest, Buffer.from(key.slice(2), 'hex'), options)
      const other = `0x${Buffer.from(signature).toString('hex')}${(27 + recid).toString(16)}`
      const two = { ...one, payload: { ...(one['payload'] as object), signature: other } }
      const release = shop.settler.hold()
      const first = send(url, base64(one))
      await new Promise((wake) => setTimeout(wake, 50))
      const second = send(url, base64(two))
      await new Promise((wake) => setTimeout(wake, 50))
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
