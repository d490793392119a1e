/** Lost tokens reissued to contract wallets. Only a real chain can check their signatures. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import type { LocalAccount } from 'viem/accounts'
import { reissueMessage } from '../../../gateway/documents/plans/reissue.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { createChainSettler } from '../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { ask, buy, json } from '../../support/agent.ts'
import { startChain, type TestChain } from '../../support/chain.ts'
import { newWallet, openGateway, PAY_TO, type TestGateway } from '../../support/gateway.ts'
import { type Proxy, startProxy } from '../../support/proxy.ts'
import { newSettleKey } from '../../support/payments.ts'
import { createContractWallets, type ContractWallets } from '../../support/contract-wallets.ts'

const SHOP = resolve(import.meta.dirname, '../../fixtures/shop/catalog')
const REISSUE = '/v1/passes/reissue'
const RICH = 10_000_000n

describe('a lost access token of a contract wallet', () => {
  let chain: TestChain
  let proxy: Proxy
  let contractWallets: ContractWallets
  let catalog: string
  let shop: TestGateway
  before(async function () {
    chain = await startChain(this)
    proxy = await startProxy(chain.rpcUrl)
    contractWallets = await createContractWallets(chain)
    catalog = mkdtempSync(join(tmpdir(), 'tollgate-reissue-'))
    cpSync(SHOP, catalog, { recursive: true })
    const plans = JSON.parse(readFileSync(join(catalog, 'plans.json'), 'utf8')) as object
    writeFileSync(join(catalog, 'plans.json'), JSON.stringify({ ...plans, reissue: REISSUE }))
    const { network } = chain
    const key = await newSettleKey(chain)
    const parts = { rpcUrl: chain.rpcUrl, key, network, log: createLog('silent'), confirmSeconds: 10 }
    const settler = await createChainSettler({ ...parts, factories: [contractWallets.factory] })
    const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: () => settler.close() }
    shop = await openGateway({ CATALOG_DIR: catalog, RPC_URL: proxy.url }, { settlement })
  })
  after(async () => {
    await shop?.close()
    await proxy?.close()
    await chain?.stop()
    if (catalog) rmSync(catalog, { recursive: true, force: true })
  })

  async function reissue(account: LocalAccount, address = account.address): Promise<Response> {
    const issuedAt = shop.now().toISOString()
    const signature = await account.signMessage({ message: reissueMessage(shop.url, address, issuedAt) })
    return ask(`${shop.url}${REISSUE}`, { method: 'POST', body: { address, issued_at: issuedAt, signature } })
  }
  async function bought(account: LocalAccount): Promise<Record<string, unknown>> {
    const response = await buy(`${shop.url}/v1/passes/late/1h`, account, 2, { method: 'POST' })
    expect(response.status).to.equal(200)
    return json(response)
  }

  const wallets: Readonly<Record<string, () => Promise<LocalAccount>>> = {
    'that is deployed (ERC-1271)': () => contractWallets.newWallet({ deployed: true, balance: RICH }),
    'that the purchase deployed, and that still wraps its signatures (ERC-6492)': () =>
      contractWallets.newWallet({ deployed: false, balance: RICH }),
    'at the address of a key (EIP-7702)': async () => {
      const account = await contractWallets.newDelegatedAccount()
      await chain.mint(account.address, RICH)
      return account
    },
  }
  for (const [name, newAccount] of Object.entries(wallets))
    it(`is reissued to a wallet ${name}, with the same id and the same expiry`, async () => {
      const account = await newAccount()
      const purchase = await bought(account)
      const response = await reissue(account)
      expect(response.status).to.equal(200)
      const { count, tokens } = (await json(response)) as { count: number; tokens: Record<string, unknown>[] }
      expect(count).to.equal(1)
      expect(decodeJwt(String(tokens[0]?.['token']))).to.deep.equal(decodeJwt(String(purchase['token'])))
    })

  it('is refused to another wallet, to a key, and for a contract that cannot verify signatures', async () => {
    const account = await contractWallets.newWallet({ deployed: true, balance: RICH })
    await bought(account)
    const other = await contractWallets.newWallet({ deployed: true, balance: RICH })
    for (const forger of [other, newWallet()]) expect((await reissue(forger, account.address)).status).to.equal(422)
    // The USDC contract has code, but no isValidSignature.
    expect((await reissue(other, chain.network.asset)).status).to.equal(422)
  })

  it('is not reissued once it has expired', async () => {
    const account = await contractWallets.newWallet({ deployed: true, balance: RICH })
    await bought(account)
    shop.advance(3601)
    expect(await json(await reissue(account))).to.deep.equal({ count: 0, tokens: [] })
    shop.advance(-3601)
  })

  it('causes no chain request for an address that bought nothing, and few for a flood of wrong signatures', async () => {
    const signatureChecks = (): number => proxy.requests.filter((body) => body.includes('0x1626ba7e')).length
    const before = signatureChecks()
    const stranger = await contractWallets.newWallet({ deployed: true, balance: 0n })
    expect((await reissue(stranger)).status).to.equal(422)
    expect(signatureChecks()).to.equal(before)
    const payer = await contractWallets.newWallet({ deployed: true, balance: RICH })
    await bought(payer)
    const answers = await Promise.all(Array.from({ length: 80 }, () => reissue(newWallet(), payer.address)))
    expect(answers.filter(({ status }) => status === 429).length).to.be.greaterThan(5)
    expect(signatureChecks() - before).to.be.at.most(60)
  })

  it('answers 503 with a Retry-After header while the chain is unreachable', async () => {
    const account = await contractWallets.newWallet({ deployed: true, balance: RICH })
    await bought(account)
    await proxy.close()
    const response = await reissue(account)
    expect(response.status).to.equal(503)
    expect(response.headers.get('retry-after')).to.equal('10')
  })
})
