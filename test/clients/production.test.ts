import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { buy, json, offer, receipt } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { freePort } from '../support/gateway.ts'
import { startGateway, type Started } from '../support/process.ts'
import { SHOP } from '../support/sandbox.ts'

describe('a production gateway', () => {
  const payee = privateKeyToAccount(generatePrivateKey()).address
  const buyer = privateKeyToAccount(generatePrivateKey())
  const settleKey = generatePrivateKey()
  let chain: TestChain
  let dataDir: string
  let running: Started | undefined
  let environment: Record<string, string>
  before(async function () {
    chain = await startChain(this, { network: NETWORKS.base })
    await chain.mint(buyer.address, 1_000_000n)
    await chain.fund(privateKeyToAccount(settleKey).address)
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-production-'))
    environment = {
      NETWORK: 'base',
      PAY_TO: payee,
      SETTLE_RPC_URL: chain.rpcUrl,
      SETTLE_KEY: settleKey,
      ALLOW_SAMPLE_SALES: 'true',
      DATA_DIR: dataDir,
      PORT: String(await freePort()),
      ...SHOP,
    }
  })
  after(async () => {
    await running?.stop()
    await chain?.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('settles payments on the chain with id 8453, under the name and token domain of Base', async () => {
    running = await startGateway(/is open at/, environment)
    const url = `http://127.0.0.1:${environment['PORT']}`
    const { v1, v2 } = await offer(`${url}/v1/echo/real`)
    expect(v1.accepts[0]).to.deep.include({ network: 'base', asset: NETWORKS.base.asset, payTo: payee })
    expect(v2.accepts[0]).to.deep.include({ network: 'eip155:8453', extra: { name: 'USD Coin', version: '2' } })
    const response = await buy(`${url}/v1/echo/real`, buyer)
    expect(response.status).to.equal(200)
    expect(receipt(response)).to.include({ success: true, network: 'eip155:8453' })
    expect(await chain.balanceOf(payee)).to.equal(5000n)
    expect(
      await json(
        await fetch(`${url}/pricing.json`).then((answer) => (answer.status === 200 ? answer : Response.json({}))),
      ),
    ).to.be.an('object')
  })

  it('does not start if configuration is missing, and lists everything that is missing', async () => {
    const { PAY_TO: _payee, SETTLE_KEY: _key, ALLOW_SAMPLE_SALES: _allow, ...rest } = environment
    const failure = await startGateway(/is open at/, rest).catch((error: Error) => error.message)
    expect(failure)
      .to.match(/PAY_TO is missing/)
      .and.match(/SETTLE_KEY is missing/)
      .and.match(/ALLOW_SAMPLE_SALES/)
  })

  it('does not start if the node serves another chain than the configured one', async () => {
    const failure = await startGateway(/is open at/, { ...environment, NETWORK: 'base-sepolia' }).catch(
      (error: Error) => error.message,
    )
    expect(failure).to.match(/base-sepolia/)
  })
})
