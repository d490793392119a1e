/**
 * Bought answers and thieves. A settled payment is public: whoever reads the chain can present it again. Buyers are
 * unmodified x402 clients, wallets are keys and contracts on a real chain, and the thief sends what a buyer has sent.
 */
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import {
  createSIWxClientExtension,
  createSIWxPayload,
  encodeSIWxHeader,
  wrapFetchWithSIWx,
} from '@x402/extensions/sign-in-with-x'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { expect } from 'chai'
import type { LocalAccount } from 'viem/accounts'
import { createChainSettler } from '../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { json, offer, payment } from '../../support/agent.ts'
import { startChain, type TestChain } from '../../support/chain.ts'
import { type ContractWallets, createContractWallets } from '../../support/contract-wallets.ts'
import { newWallet, nextRequest, openGateway, PAY_TO, type TestGateway, until } from '../../support/gateway.ts'
import { newBuyer, newSettleKey } from '../../support/payments.ts'
import { createPayment, signPayment } from '../../support/wallet.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const HOME = '203.0.113.7'
const ELSEWHERE = '198.51.100.9'
const RICH = 10_000_000n
const ECHO = '/v1/echo/hello'
const PASS = '/v1/passes/late/1h'
const KEY = 'order-5f0b7c1e-7d2a'

/** The request that a client sent with its payment. */
interface Captured {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
}

/** What a caller changes of a captured request. A header of null is left out. */
interface Change {
  readonly from?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | null>>
}

interface Challenge {
  readonly info: Readonly<Record<string, string>>
  readonly supportedChains: readonly { readonly chainId: string; readonly type: 'eip191' }[]
}

describe('an answer that was bought', () => {
  let chain: TestChain
  let wallets: ContractWallets
  let shop: TestGateway
  let catalog: string
  before(async function () {
    chain = await startChain(this)
    wallets = await createContractWallets(chain)
    const { network, rpcUrl } = chain
    const key = await newSettleKey(chain)
    const factories = [wallets.factory]
    const settler = await createChainSettler({
      rpcUrl,
      key,
      network,
      factories,
      log: createLog('silent'),
      confirmSeconds: 10,
    })
    const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: () => settler.close() }
    // The tests call through a proxy on this machine, which reports where they come from.
    catalog = mkdtempSync(join(tmpdir(), 'tollgate-bought-'))
    cpSync(join(ROOT, 'test/fixtures/shop/catalog'), catalog, { recursive: true })
    const environment = { RPC_URL: rpcUrl, TRUSTED_PROXIES: '127.0.0.1 ::1', CATALOG_DIR: catalog }
    shop = await openGateway(environment, { settlement })
  })
  after(async () => {
    await shop?.close()
    await chain?.stop()
    if (catalog) rmSync(catalog, { recursive: true, force: true })
  })

  // A buyer signs by the real time, so the clock goes back after each test.
  let offset = 0
  const later = (seconds: number): void => {
    offset += seconds
    shop.advance(seconds)
  }
  afterEach(() => later(-offset))

  const buyer = (): Promise<LocalAccount> => newBuyer(chain, RICH)

  /** Buys with the stock client, and returns the paid request beside the answer. */
  async function buy(
    path: string,
    account: LocalAccount,
    { method = 'GET', headers = {} }: { readonly method?: string; readonly headers?: Record<string, string> } = {},
  ): Promise<Captured & { readonly answer: Response; readonly text: string }> {
    let captured: Captured | null = null
    const watched: typeof fetch = (input, init) => {
      const request = new Request(input, init)
      if (request.headers.has('payment-signature'))
        captured = { url: request.url, method: request.method, headers: Object.fromEntries(request.headers) }
      return fetch(request)
    }
    const client = new x402Client().register('eip155:84532', new ExactEvmScheme(account))
    client.setSpendControls(false)
    const pay = wrapFetchWithPayment(watched, client)
    const answer = await pay(`${shop.url}${path}`, { method, headers: { 'x-forwarded-for': HOME, ...headers } })
    const text = await answer.text()
    expect(answer.status, text).to.equal(200)
    const sent = captured as unknown as Captured
    await until(async () => (await recordOf(sent)).deliveredAt !== null)
    return { ...sent, answer, text }
  }

  const paymentIn = ({ headers }: Captured) =>
    JSON.parse(Buffer.from(headers['payment-signature'] ?? '', 'base64').toString()) as {
      payload: { signature: string; authorization: { from: string; nonce: string } }
    }

  async function recordOf(bought: Captured) {
    const { payload } = paymentIn(bought)
    const { caip2, asset } = chain.network
    const { from, nonce } = payload.authorization
    const record = await shop.gateway.journal.find(`${caip2}/${asset}/${from}/${nonce}`.toLowerCase())
    if (!record) throw new Error('the payment is not in the journal')
    return record
  }

  /** Sends a captured request again, with changes. */
  const again = (bought: Captured, change: Change = {}, send: typeof fetch = fetch): Promise<Response> =>
    send(...requestOf(bought, change))

  function requestOf({ url, method, headers }: Captured, change: Change): [string, RequestInit] {
    const changed = { ...headers, 'x-forwarded-for': change.from ?? HOME, ...change.headers }
    const kept = Object.entries(changed).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]))
    return [
      change.path === undefined ? url : `${shop.url}${change.path}`,
      { method, headers: Object.fromEntries(kept) },
    ]
  }

  /** Expects the refusal of a caller who has proved nothing, and returns its challenge. */
  async function refused(response: Response, secret: string): Promise<Challenge> {
    const text = await response.text()
    const header = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString()
    expect(response.status, text).to.equal(402)
    expect(JSON.parse(text), text).to.include({ code: 'sign_in_required', retry: 'after_fix' })
    expect(text).to.contain('Do not pay again')
    expect(response.headers.has('payment-response')).to.equal(false)
    for (const part of [text, header]) expect(part).not.to.contain(secret)
    const { extensions } = JSON.parse(header) as { extensions: { 'sign-in-with-x': Challenge } }
    return extensions['sign-in-with-x']
  }

  const SAID = '"said"'

  /** Signs a challenge as the stock client does, after changing it. */
  async function signIn(
    { info, supportedChains: [chain] }: Challenge,
    account: LocalAccount,
    change: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const signed = { ...info, ...chain, ...change } as unknown as Parameters<typeof createSIWxPayload>[0]
    return encodeSIWxHeader(await createSIWxPayload(signed, account, signed.uri))
  }

  describe('without an Idempotency-Key', () => {
    it('goes to the address that bought it until 60 seconds after its delivery, and then to nobody without a proof', async () => {
      const bought = await buy(ECHO, await buyer())
      const repeated = await again(bought)
      expect([repeated.status, await repeated.text()]).to.deep.equal([200, bought.text])
      expect(repeated.headers.get('idempotent-replay')).to.equal('true')
      later(58)
      expect((await again(bought)).status, 'within a minute').to.equal(200)
      later(3)
      await refused(await again(bought), SAID)
    })

    it('goes to no other address, not even to one of the same /64', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      await refused(await again(bought, { from: ELSEWHERE }), SAID)
      const address = '2001:db8:1:2::7'
      const overV6 = await buy(ECHO, account, { headers: { 'x-forwarded-for': address } })
      expect((await again(overV6, { from: address })).status).to.equal(200)
      await refused(await again(overV6, { from: '2001:db8:1:2::8' }), SAID)
    })

    it('goes to no caller with a key of his own', async () => {
      const bought = await buy(ECHO, await buyer())
      await refused(await again(bought, { headers: { 'idempotency-key': KEY } }), SAID)
    })

    it('that was never delivered goes to the address that bought it at any time, and to nobody elsewhere', async () => {
      const url = `${shop.url}${ECHO}`
      const headers = { 'payment-signature': await payment(url, await buyer()), 'x-forwarded-for': HOME }
      const bought = { url, method: 'GET', headers }
      const leaving = new AbortController()
      const arrived = nextRequest(shop)
      await chain.rpc.call('evm_setAutomine', false)
      const abandoned = fetch(url, { headers, signal: leaving.signal }).catch(() => 'gone')
      const closed = once((await arrived).response, 'close')
      await until(async () => (await recordOf(bought).catch(() => null))?.state === 'submitted')
      leaving.abort()
      expect(await abandoned).to.equal('gone')
      await closed
      await chain.rpc.call('evm_setAutomine', true)
      await chain.rpc.call('evm_mine')
      await until(async () => (await recordOf(bought)).state === 'settled')
      expect((await recordOf(bought)).deliveredAt).to.equal(null)
      later(120)
      await refused(await again(bought, { from: ELSEWHERE }), SAID)
      expect((await again(bought)).status).to.equal(200)
    })
  })

  describe('with an Idempotency-Key', () => {
    it('goes to everybody who sends the key, at any time, and to nobody else, not even at the address that bought it', async () => {
      const bought = await buy(ECHO, await buyer(), { headers: { 'idempotency-key': KEY } })
      for (const from of [HOME, ELSEWHERE]) {
        await refused(await again(bought, { from, headers: { 'idempotency-key': null } }), SAID)
        await refused(await again(bought, { from, headers: { 'idempotency-key': `${KEY}-2` } }), SAID)
        const repeated = await again(bought, { from })
        expect([repeated.status, await repeated.text()]).to.deep.equal([200, bought.text])
      }
      later(3600)
      expect((await again(bought, { from: ELSEWHERE })).status).to.equal(200)
    })
  })

  describe('goes to the wallet that paid when it signs in', () => {
    const kinds: Readonly<Record<string, () => Promise<LocalAccount>>> = {
      'a key': () => buyer(),
      'a deployed contract (ERC-1271)': () => wallets.newWallet({ deployed: true, balance: RICH }),
      'a contract that the purchase deployed (ERC-6492)': () => wallets.newWallet({ deployed: false, balance: RICH }),
      'a key with code (EIP-7702)': () => wallets.newDelegatedAccount(),
    }
    for (const [kind, newAccount] of Object.entries(kinds))
      it(`as ${kind}, through the stock client, from elsewhere and after an hour`, async () => {
        const account = await newAccount()
        const bought = await buy(ECHO, account)
        later(3600)
        const signing = wrapFetchWithSIWx(fetch, account)
        const repeated = await again(bought, { from: ELSEWHERE }, signing)
        expect([repeated.status, await repeated.text()]).to.deep.equal([200, bought.text])
        expect(repeated.headers.get('idempotent-replay')).to.equal('true')
      })

    it('through the extension of the stock client, which pays nothing for it', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account, { headers: { 'idempotency-key': KEY } })
      const before = await chain.balanceOf(PAY_TO)
      const client = new x402Client().register('eip155:84532', new ExactEvmScheme(account))
      client.registerExtension(createSIWxClientExtension({ signers: [account] }))
      const pay = wrapFetchWithPayment(fetch, client)
      const repeated = await again(bought, { from: ELSEWHERE, headers: { 'idempotency-key': null } }, pay)
      expect([repeated.status, await repeated.text()]).to.deep.equal([200, bought.text])
      expect(await chain.balanceOf(PAY_TO)).to.equal(before)
    })

    it('also if the purchase has a key that was lost', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account, { headers: { 'idempotency-key': KEY } })
      const signing = wrapFetchWithSIWx(fetch, account)
      const repeated = await again(bought, { from: ELSEWHERE, headers: { 'idempotency-key': null } }, signing)
      expect([repeated.status, await repeated.text()]).to.deep.equal([200, bought.text])
    })

    it('with each signature once, and not with one that somebody has seen', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      const challenge = await refused(await again(bought, { from: ELSEWHERE }), SAID)
      const signed = { 'sign-in-with-x': await signIn(challenge, account) }
      expect((await again(bought, { from: ELSEWHERE, headers: signed })).status).to.equal(200)
      const seen = await again(bought, { from: ELSEWHERE, headers: signed })
      expect(await seen.clone().json()).to.include({ error: 'invalid_siwx_nonce' })
      await refused(seen, SAID)
      // One that was not needed is used up too.
      const unneeded = {
        'sign-in-with-x': await signIn(await refused(await again(bought, { from: ELSEWHERE }), SAID), account),
      }
      expect((await again(bought, { headers: unneeded })).status).to.equal(200)
      await refused(await again(bought, { from: ELSEWHERE, headers: unneeded }), SAID)
    })

    it('with a message for a network that payments are taken on, and for no other, which is not used up', async () => {
      for (const account of [await buyer(), await wallets.newWallet({ deployed: true, balance: RICH })]) {
        const bought = await buy(ECHO, account)
        const challenge = await refused(await again(bought, { from: ELSEWHERE }), SAID)
        for (const chainId of ['eip155:1', 'eip155:8453']) {
          const headers = { 'sign-in-with-x': await signIn(challenge, account, { chainId }) }
          const response = await again(bought, { from: ELSEWHERE, headers })
          const { error, message } = await json(response.clone())
          expect(error).to.equal('invalid_siwx_unsupported_chain')
          expect(message).to.contain('eip155:84532')
          await refused(response, SAID)
        }
        const headers = { 'sign-in-with-x': await signIn(challenge, account) }
        expect((await again(bought, { from: ELSEWHERE, headers })).status).to.equal(200)
      }
    })

    it('until sixty sign-ins from its address have failed within a minute, and from any other address', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      const challenge = await refused(await again(bought, { from: ELSEWHERE }), SAID)
      const forged = JSON.parse(Buffer.from(await signIn(challenge, newWallet()), 'base64').toString()) as object
      const wrong = { 'sign-in-with-x': encodeSIWxHeader({ ...forged, address: account.address } as never) }
      const guesser = '192.0.2.66'
      const statuses: number[] = []
      let last: Response | null = null
      while (statuses.length < 62) {
        last = await again(bought, { from: guesser, headers: wrong })
        statuses.push(last.status)
      }
      expect(statuses).to.deep.equal([...Array<number>(60).fill(402), 429, 429])
      expect(Number(last?.headers.get('retry-after'))).to.be.within(1, 60)
      const own = async () => ({ 'sign-in-with-x': await signIn(challenge, account, { nonce: 'c'.repeat(32) }) })
      expect((await again(bought, { from: guesser, headers: await own() })).status).to.equal(429)
      expect((await again(bought, { from: ELSEWHERE, headers: await own() })).status).to.equal(200)
    })

    it('as often as it likes, because a sign-in that succeeds does not count', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      const challenge = await refused(await again(bought, { from: ELSEWHERE }), SAID)
      for (let times = 0; times < 62; times++) {
        const nonce = `${'d'.repeat(20)}${times}`
        const headers = { 'sign-in-with-x': await signIn(challenge, account, { nonce }) }
        expect((await again(bought, { from: '192.0.2.67', headers })).status).to.equal(200)
      }
    })

    it('but to nobody with a signature that is wrong in any way', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      const challenge = await refused(await again(bought, { from: ELSEWHERE }), SAID)
      const at = (seconds: number): string => new Date(shop.now().getTime() + seconds * 1000).toISOString()
      const thief = newWallet()
      const forged = JSON.parse(Buffer.from(await signIn(challenge, thief), 'base64').toString()) as object
      const attempts: Readonly<Record<string, string>> = {
        invalid_siwx_address: await signIn(challenge, thief),
        invalid_siwx_signature: encodeSIWxHeader({ ...forged, address: account.address } as never),
        invalid_siwx_domain_mismatch: await signIn(challenge, account, {
          domain: 'shop.example',
          uri: 'https://shop.example/',
        }),
        invalid_siwx_issued_at_too_old: await signIn(challenge, account, {
          issuedAt: at(-301),
          expirationTime: undefined,
        }),
        invalid_siwx_issued_at_in_future: await signIn(challenge, account, { issuedAt: at(90) }),
        invalid_siwx_expired: await signIn(challenge, account, { expirationTime: at(-1) }),
        invalid_siwx_not_yet_valid: await signIn(challenge, account, { notBefore: at(60) }),
        invalid_siwx_payload: 'e30=',
      }
      for (const [reason, signed] of Object.entries(attempts)) {
        const response = await again(bought, { from: ELSEWHERE, headers: { 'sign-in-with-x': signed } })
        expect(((await response.clone().json()) as { error: string }).error).to.equal(reason)
        await refused(response, SAID)
      }
      const changed = {
        ...forged,
        ...(JSON.parse(Buffer.from(await signIn(challenge, account), 'base64').toString()) as object),
      }
      const { signature } = changed as { signature: string }
      for (const field of ['nonce', 'issuedAt', 'statement', 'chainId', 'version'] as const) {
        const value = { nonce: 'a'.repeat(32), issuedAt: at(0), statement: 'Hello', chainId: 'eip155:1', version: '2' }[
          field
        ]
        const header = encodeSIWxHeader({ ...changed, [field]: value, signature } as never)
        await refused(await again(bought, { from: ELSEWHERE, headers: { 'sign-in-with-x': header } }), SAID)
      }
      const contract = await wallets.newWallet({ deployed: true, balance: RICH })
      const ofContract = await buy(ECHO, contract)
      const other = await wallets.newWallet({ deployed: true, balance: 0n })
      const signed = JSON.parse(Buffer.from(await signIn(challenge, other), 'base64').toString()) as object
      const header = encodeSIWxHeader({ ...signed, address: contract.address } as never)
      await refused(await again(ofContract, { from: ELSEWHERE, headers: { 'sign-in-with-x': header } }), SAID)
    })
  })

  describe('as the token of a plan', () => {
    it('does not go to the address that bought it, not even at once, but to the key of the purchase and to the wallet', async () => {
      const account = await buyer()
      const bought = await buy(PASS, account, { method: 'POST' })
      const tokenOf = ({ text }: { text: string }) => String((JSON.parse(text) as { token: unknown }).token)
      expect(tokenOf(bought)).to.match(/^eyJ/)
      await refused(await again(bought), tokenOf(bought))
      await refused(await again(bought, { from: ELSEWHERE }), tokenOf(bought))
      const signing = wrapFetchWithSIWx(fetch, account)
      const repeated = await again(bought, { from: ELSEWHERE }, signing)
      expect([repeated.status, await repeated.text()]).to.deep.equal([200, bought.text])
      const named = await buy(PASS, account, { method: 'POST', headers: { 'idempotency-key': `${KEY}-pass` } })
      await refused(await again(named, { headers: { 'idempotency-key': null } }), tokenOf(named))
      expect(await (await again(named, { from: ELSEWHERE })).text()).to.equal(named.text)
    })
  })

  describe('is not told by the refusal', () => {
    it('which is the same on every route', async () => {
      const bought = await buy(ECHO, await buyer(), { headers: { 'idempotency-key': KEY } })
      const bare = { from: ELSEWHERE, headers: { 'idempotency-key': null } }
      const told = async (path: string) => {
        const response = await again(bought, { ...bare, path })
        const { code, message, error } = await json(response)
        return { status: response.status, code, message, error }
      }
      const atHome = await told(ECHO)
      expect(atHome).to.include({ status: 402, code: 'sign_in_required' })
      for (const path of ['/v1/echo/other', '/v1/late', `${ECHO}?times=2`])
        expect(await told(path)).to.deep.equal(atHome)
      // The buyer learns that the payment was for another request.
      const conflict = await again(bought, { path: '/v1/echo/other' })
      expect([conflict.status, (await json(conflict))['code']]).to.deep.equal([409, 'payment_conflict'])
    })
  })

  describe('is not told by the look-up of its payment', () => {
    /** Looks the payment up as anybody can who has read it from the chain. */
    async function lookUp(
      bought: Captured,
      change: Change & { readonly nonce?: string } = {},
      send: typeof fetch = fetch,
    ): Promise<Response> {
      const { payer, identity } = await recordOf(bought)
      const nonce = change.nonce ?? identity
      const { payload } = paymentIn(bought)
      const path = `/v1/payments/base-sepolia/${payer}/${nonce}?signature=${payload.signature}`
      const headers = { 'x-forwarded-for': change.from ?? HOME, ...(change.headers as Record<string, string>) }
      return send(`${shop.url}${path}`, { headers })
    }
    const paying = (account: LocalAccount): typeof fetch => {
      const client = new x402Client().register('eip155:84532', new ExactEvmScheme(account))
      client.registerExtension(createSIWxClientExtension({ signers: [account] }))
      return wrapFetchWithPayment(fetch, client)
    }

    it('to those who read the chain: they get the refusal that they get for a payment that does not exist', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      const named = await buy(ECHO, account, { headers: { 'idempotency-key': `${KEY}-look` } })
      later(61)
      const bodies = []
      for (const response of [
        await lookUp(bought),
        await lookUp(bought, { from: ELSEWHERE }),
        await lookUp(named, { headers: { 'idempotency-key': KEY } }),
        await lookUp(named),
        await lookUp(bought, { nonce: `0x${'77'.repeat(32)}` }),
      ]) {
        const text = await response.clone().text()
        await refused(response, '/v1/echo')
        expect(text).to.not.match(/settled|delivered|echo/)
        bodies.push(text)
      }
      expect(new Set(bodies).size).to.equal(1)
      const plan = await buy(PASS, account, { method: 'POST' })
      await refused(await lookUp(plan), 'passes')
    })

    it('except to its buyer: by the key, at the address within a minute, and by a sign-in through the stock client', async () => {
      const account = await buyer()
      const named = await buy(ECHO, account, { headers: { 'idempotency-key': `${KEY}-state` } })
      const byKey = await lookUp(named, { from: ELSEWHERE, headers: { 'idempotency-key': `${KEY}-state` } })
      expect(byKey.headers.get('cache-control')).to.equal('private, no-store')
      expect(await json(byKey)).to.include({ state: 'settled', route: 'GET /v1/echo/{word}', answer_kept: true })
      const bought = await buy(ECHO, account)
      expect((await lookUp(bought)).status).to.equal(200)
      const before = await chain.balanceOf(PAY_TO)
      const signedIn = await lookUp(bought, { from: ELSEWHERE }, paying(account))
      expect(await json(signedIn)).to.include({ state: 'settled', payer: account.address.toLowerCase() })
      expect(await chain.balanceOf(PAY_TO)).to.equal(before)
      const contract = await wallets.newWallet({ deployed: true, balance: RICH })
      const ofContract = await buy(ECHO, contract)
      expect((await lookUp(ofContract, { from: ELSEWHERE }, paying(contract))).status).to.equal(200)
    })

    it('and not to another wallet that signs in; the wallet itself learns that a payment does not exist', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      const challenge = await refused(await lookUp(bought, { from: ELSEWHERE }), '/v1/echo')
      const foreign = { 'sign-in-with-x': await signIn(challenge, newWallet()) }
      await refused(await lookUp(bought, { from: ELSEWHERE, headers: foreign }), '/v1/echo')
      const own = { 'sign-in-with-x': await signIn(challenge, account, { nonce: 'b'.repeat(32) }) }
      const absent = await lookUp(bought, { from: ELSEWHERE, nonce: `0x${'77'.repeat(32)}`, headers: own })
      expect([absent.status, (await json(absent))['code']]).to.deep.equal([404, 'not_found'])
      await refused(await lookUp(bought, { from: ELSEWHERE, headers: own }), '/v1/echo')
    })
  })

  describe('over MCP', () => {
    interface ToolResult {
      readonly isError?: boolean
      readonly structuredContent: Readonly<Record<string, unknown>>
    }
    async function call(
      sent: Captured | object | string | null,
      { from = HOME, meta = {} }: { readonly from?: string; readonly meta?: object } = {},
      more: Readonly<Record<string, string>> = {},
    ): Promise<ToolResult> {
      const captured = sent !== null && typeof sent === 'object' && 'headers' in sent
      const payment = captured ? paymentIn(sent) : sent
      const params = {
        name: 'get_echo',
        arguments: { word: 'hello', ...(typeof payment === 'string' ? { payment_signature: payment } : {}) },
        _meta: { ...(typeof payment === 'string' ? {} : { 'x402/payment': payment }), ...meta },
      }
      const response = await fetch(`${shop.url}/mcp`, {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          'x-forwarded-for': from,
          ...more,
        },
      })
      return ((await response.json()) as { result: ToolResult }).result
    }

    it('follows the same rules: address, key, and the sign-in of the wallet in _meta or in the header', async () => {
      const account = await buyer()
      const bought = await buy(ECHO, account)
      const content = JSON.parse(bought.text) as object
      expect((await call(bought)).structuredContent).to.deep.equal(content)
      expect((await call(bought, { from: ELSEWHERE })).structuredContent).to.include({ code: 'sign_in_required' })
      later(61)
      const { structuredContent, isError } = await call(bought)
      expect(isError).to.equal(true)
      expect(structuredContent).to.include({ code: 'sign_in_required' })
      expect(JSON.stringify(structuredContent)).not.to.contain(SAID)
      const challengeOf = (result: Readonly<Record<string, unknown>>): Challenge =>
        (result['extensions'] as { 'sign-in-with-x': Challenge })['sign-in-with-x']
      const header = await signIn(challengeOf(structuredContent), account)
      const byMeta = await call(bought, { from: ELSEWHERE, meta: { 'x402/sign-in-with-x': header } })
      expect(byMeta.structuredContent).to.deep.equal(content)
      const seen = await call(bought, { from: ELSEWHERE, meta: { 'x402/sign-in-with-x': header } })
      expect(seen.structuredContent).to.include({ code: 'sign_in_required', error: 'invalid_siwx_nonce' })
      const next = await signIn(challengeOf(seen.structuredContent), account)
      const object: unknown = JSON.parse(Buffer.from(next, 'base64').toString())
      const byObject = await call(bought, { from: ELSEWHERE, meta: { 'x402/sign-in-with-x': object } })
      expect(byObject.structuredContent).to.deep.equal(content)
      const last = await signIn(challengeOf((await call(bought)).structuredContent), account)
      const byHeader = await call(bought, { from: ELSEWHERE }, { 'sign-in-with-x': last })
      expect(byHeader.structuredContent).to.deep.equal(content)

      const key = { 'idempotency-key': `${KEY}-mcp` }
      const named = await buy(ECHO, account, { headers: key })
      expect((await call(named)).structuredContent).to.include({ code: 'sign_in_required' })
      expect((await call(named, { from: ELSEWHERE }, key)).structuredContent).to.deep.equal(JSON.parse(named.text))
    })

    it('follows the same rules for a payment-identifier in _meta and for x402 version 1 in the argument', async () => {
      const account = await buyer()
      const { accepts } = (await call(null)).structuredContent as { accepts: never[] }
      const named = { extensions: { 'payment-identifier': { info: { required: false, id: `${KEY}-in-meta` } } } }
      const payload = await createPayment({ account, requirement: accepts[0] as never, version: 2, envelope: named })
      const bought = await call(payload)
      expect(bought.structuredContent).to.have.property('said')
      expect((await call(payload, { from: ELSEWHERE })).structuredContent).to.deep.equal(bought.structuredContent)
      const { extensions: _, ...public_ } = payload as { extensions: unknown }
      expect((await call(public_)).structuredContent).to.include({ code: 'sign_in_required' })

      const { v1 } = await offer(`${shop.url}${ECHO}`)
      const header = await signPayment({ account, requirement: v1.accepts[0] as never, version: 1 })
      const first = await call(header)
      expect(first.structuredContent).to.have.property('said')
      expect((await call(header, { from: ELSEWHERE })).structuredContent).to.include({ code: 'sign_in_required' })
      later(61)
      expect((await call(header)).structuredContent).to.include({ code: 'sign_in_required' })
    })
  })
})
