/**
 * What callers who pay nothing cost at our nodes. The node is a real chain behind a proxy that counts the calls. Callers come
 * through a proxy on this machine that the gateway trusts, so a test chooses their addresses.
 */
import { expect } from 'chai'
import { type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../../gateway/config/networks.ts'
import { GAS_PRICE_ORACLE } from '../../gateway/methods/exact-evm/chain/settlement-cost.ts'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { NodeCallBudget } from '../../gateway/payments/node-call-budget.ts'
import { PeersInMemory } from '../../gateway/stores/peers.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { json, offer, payment, send } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { type ContractWallets, createContractWallets } from '../support/contract-wallets.ts'
import { newWallet, openGateway, PAY_TO, type TestGateway, until } from '../support/gateway.ts'
import { newBuyer, newSettleKey } from '../support/payments.ts'
import { type Proxy, startProxy } from '../support/proxy.ts'
import { base64, createPayment, newNonce, type Requirement } from '../support/wallet.ts'

/** What the strangers at one address may cause in a minute. */
const OF_ADDRESS = 120
const HOME = '203.0.113.7'

interface RpcRequest {
  readonly method: string
  readonly params: readonly unknown[]
}

/** Whether a call is one of those that the check of a payment makes. The price of gas is read each minute for all. */
const isRead = ({ method, params: [target] }: RpcRequest): boolean =>
  method === 'eth_getCode' || (method === 'eth_call' && (target as { readonly to: Hex }).to !== GAS_PRICE_ORACLE)

describe('calls of our nodes', function () {
  this.timeout(120_000)
  let chain: TestChain
  let proxy: Proxy
  let wallets: ContractWallets
  let shop: TestGateway
  let url: string
  let requirement: Requirement
  /** Shares the limits with another process. The minute of its counts does not end once this is set. */
  let stoppedAt: number | null = null
  const peers = new PeersInMemory(() => stoppedAt ?? performance.now())
  let addresses = 0
  /** An address that nobody has called from yet. */
  const newAddress = (): string => `198.51.${(addresses >> 8) & 255}.${addresses++ & 255}`

  before(async function () {
    chain = await startChain(this)
    proxy = await startProxy(chain.rpcUrl)
    wallets = await createContractWallets(chain)
    const { network } = chain
    const key = await newSettleKey(chain)
    const parts = { rpcUrl: proxy.url, key, network, log: createLog('silent'), confirmSeconds: 10, pollMs: 50 }
    const settler = await createChainSettler({ ...parts, factories: [wallets.factory] })
    const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: () => settler.close() }
    const environment = { RPC_URL: proxy.url, TRUSTED_PROXIES: '127.0.0.1 ::1' }
    shop = await openGateway(environment, { settlement, peers, now: () => new Date() })
    url = `${shop.url}/v1/echo/hello`
    requirement = (await offer(url)).v2.accepts[0] as unknown as Requirement
  })
  after(async () => {
    await shop?.close()
    await proxy?.close()
    await chain?.stop()
  })

  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
  const pay = (header: string, address: string): Promise<Response> => send(url, header, 2, from(address))
  const buyFrom = async (account: LocalAccount, address: string): Promise<number> =>
    (await pay(await payment(url, account, 2, from(address)), address)).status

  /** Counts the calls that work causes. */
  async function callsDuring(work: () => Promise<unknown>): Promise<number> {
    const before = proxy.requests.length
    await work()
    return proxy.requests
      .slice(before)
      .flatMap((body) => JSON.parse(body) as RpcRequest | RpcRequest[])
      .filter(isRead).length
  }

  /** Signs payments of new wallets, which hold nothing. */
  async function ofEmptyWallets(count: number): Promise<string[]> {
    const signed = Array.from({ length: count }, () => createPayment({ account: newWallet(), requirement, version: 2 }))
    return (await Promise.all(signed)).map(base64)
  }

  /** Makes payments up: each names a payer that has never been named before. */
  async function madeUp(count: number, signature?: Hex): Promise<string[]> {
    const made = await createPayment({ account: newWallet(), requirement, version: 2 })
    const payload = made['payload'] as { readonly signature: Hex; readonly authorization: object }
    return Array.from({ length: count }, () => {
      const authorization = { ...payload.authorization, from: newNonce().slice(0, 42), nonce: newNonce() }
      return base64({ ...made, payload: { signature: signature ?? payload.signature, authorization } })
    })
  }

  /** Sends payments, a few at a time, and returns the answers. */
  async function flood(headers: readonly string[], address: string): Promise<Response[]> {
    const answers: Response[] = []
    for (let sent = 0; sent < headers.length; sent += 20)
      answers.push(...(await Promise.all(headers.slice(sent, sent + 20).map((header) => pay(header, address)))))
    return answers
  }

  const statuses = (answers: readonly Response[]): ReadonlySet<number> => new Set(answers.map(({ status }) => status))

  for (const [name, make] of [
    ['made-up signatures', madeUp],
    ['payments of empty wallets', ofEmptyWallets],
  ] as const)
    it(`for ${name} from one address end at its share, with 429 and when to come back`, async () => {
      const headers = await make(300)
      let answers: Response[] = []
      const address = newAddress()
      const calls = await callsDuring(async () => {
        answers = await flood(headers, address)
      })
      expect(calls).to.be.within(1, OF_ADDRESS)
      expect(statuses(answers)).to.deep.equal(new Set([402, 429]))
      const refused = answers.at(-1) as Response
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60)
      const { code, message } = await json(refused)
      expect(code).to.equal('rate_limited')
      expect(message).to.contain('from this address').and.contain('Nothing was charged.')
    })

  it('for made-up signatures from many addresses of one /64 end at one share', async () => {
    const headers = await madeUp(200)
    const calls = await callsDuring(() =>
      Promise.all(headers.map((header, at) => pay(header, `2001:db8:7:9::${(at + 1).toString(16)}`))),
    )
    expect(calls).to.be.within(1, OF_ADDRESS)
  })

  it('for made-up signatures over MCP count together with those over HTTP', async () => {
    const address = newAddress()
    const call = async (header: string): Promise<Response> =>
      fetch(`${shop.url}/mcp`, {
        method: 'POST',
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'get_echo', arguments: { word: 'hello', payment_signature: header } },
        }),
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          'x-forwarded-for': address,
        },
      })
    const [overHttp, overMcp] = [await madeUp(80), await madeUp(80)]
    let last = ''
    const calls = await callsDuring(async () => {
      await flood(overHttp, address)
      for (const header of overMcp) last = await (await call(header)).text()
    })
    expect(calls).to.be.within(100, OF_ADDRESS)
    expect(last).to.contain('rate_limited')
  })

  it('are not made for a signature that no key and no contract wallet can have made', async () => {
    const made = await createPayment({ account: newWallet(), requirement, version: 2 })
    const { signature } = made['payload'] as { readonly signature: Hex }
    const [r, s] = [signature.slice(2, 66), signature.slice(66, 130)]
    const order = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141'
    const highS = (BigInt(`0x${order}`) - BigInt(`0x${s}`)).toString(16).padStart(64, '0')
    const impossible: readonly Hex[] = [
      '0x00',
      `0x${r}${s}`,
      `0x${r}${s}02`,
      `0x${r}${s}1d`,
      `0x${r}${highS}1b`,
      `0x${'00'.repeat(64)}1b`,
      `0x${r}${'00'.repeat(32)}1b`,
      `0x${order}${s}1c`,
    ]
    const headers = (await Promise.all(impossible.map((each) => madeUp(3, each)))).flat()
    const address = newAddress()
    const calls = await callsDuring(async () => {
      for (const answer of await flood(headers, address)) {
        expect(answer.status).to.equal(402)
        expect(await json(answer)).to.include({ error: 'invalid_exact_evm_payload_signature' })
      }
    })
    expect(calls).to.equal(0)
  })

  it('are not made again for an empty wallet within seconds, whether it sends the same payment or another', async () => {
    const account = newWallet()
    const address = newAddress()
    const [first, other] = [
      await payment(url, account, 2, from(address)),
      await payment(url, account, 2, from(address)),
    ]
    expect(await callsDuring(() => pay(first, address))).to.equal(2)
    const calls = await callsDuring(async () => {
      for (const header of [first, other, first, other]) {
        const answer = await pay(header, address)
        expect(answer.status).to.equal(402)
        expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 3)
        expect(await json(answer)).to.include({ error: 'insufficient_funds' })
      }
    })
    expect(calls).to.equal(0)
    await chain.mint(account.address, 1_000_000n)
    await until(async () => (await pay(first, address)).status === 200, 100)
  })

  it('are not made again within seconds for a signature that a contract wallet has refused, which keeps its owner out of nothing', async () => {
    const wallet = await wallets.newWallet({ deployed: true })
    const other = await wallets.newWallet({ deployed: true })
    const forged = { ...wallet, signTypedData: other.signTypedData } as LocalAccount
    const address = newAddress()
    const header = await payment(url, forged, 2, from(address))
    expect(await callsDuring(() => pay(header, address))).to.equal(2)
    expect(await callsDuring(() => flood([header, header, header], address))).to.equal(0)
    expect(await buyFrom(wallet, HOME)).to.equal(200)
  })

  it('are made for a wallet that is deployed after its signature was refused, some seconds later', async () => {
    const wallet = await wallets.newWallet({ deployed: true })
    const code = await chain.rpc.call<Hex>('eth_getCode', wallet.address, 'latest')
    await chain.rpc.call('anvil_setCode', wallet.address, '0x')
    expect(await buyFrom(wallet, newAddress())).to.equal(402)
    await chain.rpc.call('anvil_setCode', wallet.address, code)
    await until(async () => (await buyFrom(wallet, newAddress())) === 200, 200)
  }).timeout(20_000)

  it('leave room for buyers elsewhere while a stranger at one address floods: those who have bought and those who have not', async () => {
    const [known, first] = [await newBuyer(chain), await newBuyer(chain)]
    expect(await buyFrom(known, HOME)).to.equal(200)
    const address = newAddress()
    const headers = [...(await madeUp(200)), ...(await ofEmptyWallets(200))]
    const flooding = flood(headers, address)
    expect(await buyFrom(known, HOME)).to.equal(200)
    expect(await buyFrom(first, newAddress())).to.equal(200)
    expect(statuses(await flooding)).to.deep.equal(new Set([402, 429]))
    await until(
      async () => (await shop.gateway.journal.list({ payer: known.address, states: ['settled'], limit: 1 })).length > 0,
    )
    // Its own address is that of the stranger now.
    expect(await buyFrom(known, address)).to.equal(200)
    expect(await buyFrom(await newBuyer(chain), address)).to.equal(429)
  })

  it('are taken back for payments that were sold, so that new wallets at one address may buy on and on', async () => {
    const address = newAddress()
    for (let bought = 0; bought < OF_ADDRESS / 2 + 10; bought++)
      expect(await buyFrom(await newBuyer(chain), address)).to.equal(200)
  })

  it('count for each signature of a contract wallet that it did not make, when it signs in', async () => {
    const wallet = await wallets.newWallet({ deployed: true })
    const header = await payment(url, wallet, 2, from(HOME))
    expect((await pay(header, HOME)).status).to.equal(200)
    const address = newAddress()
    await flood(await madeUp(OF_ADDRESS + 20), address)
    const signIn = base64({
      domain: new URL(shop.url).host,
      address: wallet.address,
      uri: url,
      version: '1',
      chainId: chain.network.caip2,
      type: 'eip191',
      nonce: 'a'.repeat(32),
      issuedAt: new Date().toISOString(),
      signature: `0x${'12'.repeat(70)}`,
    })
    const headers = { 'x-forwarded-for': address, 'sign-in-with-x': signIn }
    let status = 0
    const calls = await callsDuring(async () => {
      status = (await send(url, header, 2, { headers })).status
    })
    expect([status, calls]).to.deep.equal([429, 0])
  })

  // It comes last: nothing is left for strangers after it.
  it('end for strangers at all addresses together, and a wallet that has bought before is served all the same', async () => {
    const known = privateKeyToAccount(`0x${'a5'.repeat(32)}`)
    await chain.mint(known.address, 1_000_000n)
    const contract = await wallets.newWallet({ deployed: true })
    for (const account of [known, contract]) expect(await buyFrom(account, HOME)).to.equal(200)
    const newcomer = await newBuyer(chain)
    const header = await payment(url, newcomer, 2, from(newAddress()))
    stoppedAt = performance.now()
    // Strangers at many addresses flood another process of the gateway.
    const flooded = new NodeCallBudget({ journal: shop.gateway.journal, peers })
    for (const calls of [OF_ADDRESS, 1])
      await until(() => {
        const spent = flooded.account(newWallet().address, newAddress()).spend(calls, false)
        return spent.then(
          () => false,
          () => true,
        )
      }, 0)
    const refused = await pay(header, newAddress())
    const { code, message } = await json(refused)
    expect([refused.status, code]).to.deep.equal([429, 'rate_limited'])
    expect(message).to.contain('have not bought anything here yet')
    for (const account of [known, contract]) expect(await buyFrom(account, newAddress())).to.equal(200)
  })
})
