import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { ask, json, payment, receipt, send } from '../support/agent.ts'
import { createRpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'
import { balanceOf } from '../support/chain.ts'
import { freePort, until } from '../support/gateway.ts'
import { sendAsStranger } from '../support/stranger.ts'
import { start, type Started } from '../support/process.ts'

const shop = resolve(import.meta.dirname, '../fixtures/shop')
/** The steps at which the gateway crashes, and what it has done by then. */
const STEPS = {
  reserved: 'reserved a payment',
  submitted: 'stored the answer and what it will send',
  sent: 'moved the money',
  settled: 'recorded the settlement',
} as const
type CrashStep = keyof typeof STEPS

interface SandboxFile {
  readonly rpc_url: string
  readonly pay_to: Hex
  readonly buyer: { readonly address: Hex; readonly private_key: Hex }
}

describe('a gateway killed with SIGKILL', function () {
  this.timeout(90_000)
  let dataDir: string
  let port: number
  let url: string
  let running: Started | undefined
  /** Names the step at which the running gateway crashes; "" means that it does not. */
  const crashAt = (step: CrashStep | ''): void => writeFileSync(join(dataDir, 'crash'), step)
  const open = async (): Promise<void> => {
    crashAt('')
    running = await start('test/support/crashing-gateway.ts', /ready/, {
      PORT: String(port),
      DATA_DIR: dataDir,
      CATALOG_DIR: join(shop, 'catalog'),
      PLUGIN_DIRS: join(shop, 'plugins'),
      CRASH_FILE: join(dataDir, 'crash'),
    })
  }
  const sandbox = (): SandboxFile =>
    JSON.parse(readFileSync(join(dataDir, 'sandbox-sample/sandbox.json'), 'utf8')) as SandboxFile
  const balance = async (who: 'buyer' | 'payee'): Promise<bigint> => {
    const { rpc_url, pay_to, buyer } = sandbox()
    return balanceOf(rpc_url, who === 'buyer' ? buyer.address : pay_to)
  }

  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-crash-'))
    port = await freePort()
    url = `http://127.0.0.1:${port}/v1/echo/crash`
    await open()
  })
  after(async () => {
    await running?.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })

  for (const [step, event] of Object.entries(STEPS) as [CrashStep, string][])
    it(`right after it ${event} delivers the answer to the same payment after a restart, charged once`, async () => {
      crashAt(step)
      const account = privateKeyToAccount(sandbox().buyer.private_key)
      const before = { buyer: await balance('buyer'), payee: await balance('payee') }
      const header = await payment(url, account)
      const lost = await send(url, header).catch(() => 'connection lost')
      expect(lost).to.equal('connection lost')
      expect(await running?.ended).to.equal('SIGKILL')

      await open()
      let response = await send(url, header)
      while (response.status === 503) response = await send(url, header)
      expect(response.status).to.equal(200)
      expect(await json(response)).to.include({ said: 'crash' })
      expect(receipt(response)).to.include({ success: true })
      expect(before.buyer - (await balance('buyer'))).to.equal(5000n)
      expect((await balance('payee')) - before.payee).to.equal(5000n)
      const repeated = await send(url, header)
      expect(repeated.status).to.equal(200)
      expect(before.buyer - (await balance('buyer'))).to.equal(5000n)
      expect((await ask(`http://127.0.0.1:${port}/health`)).status).to.be.oneOf([200, 404])
    })
})

describe('a gateway in strict mode that is killed with SIGKILL between the two writes of a payment that others settled', function () {
  this.timeout(90_000)
  const TOKEN = 'correct-horse-battery'
  let dataDir: string
  let port: number
  let running: Started | undefined
  const open = async (crashStep: string): Promise<void> => {
    writeFileSync(join(dataDir, 'crash'), crashStep)
    running = await start('test/support/crashing-gateway.ts', /ready/, {
      PORT: String(port),
      DATA_DIR: dataDir,
      CATALOG_DIR: join(shop, 'catalog'),
      PLUGIN_DIRS: join(shop, 'plugins'),
      CRASH_FILE: join(dataDir, 'crash'),
      SETTLEMENT: 'strict',
      OPERATOR_TOKEN: TOKEN,
    })
  }
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-crash-'))
    port = await freePort()
    await open('settledByOthers')
  })
  after(async () => {
    await running?.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('delivers nothing after a restart, and owes the payment', async () => {
    const file = readFileSync(join(dataDir, 'sandbox-sample/sandbox.json'), 'utf8')
    const { rpc_url: rpcUrl, buyer } = JSON.parse(file) as SandboxFile
    const rpc = createRpc(rpcUrl)
    const url = `http://127.0.0.1:${port}/v1/echo/strict`
    const header = await payment(url, privateKeyToAccount(buyer.private_key))
    await rpc.call('evm_setAutomine', false)
    const lost = send(url, header).catch(() => 'connection lost')
    await until(async () => Number((await rpc.call<{ pending: Hex }>('txpool_status')).pending) > 0)
    await sendAsStranger(rpc, header)
    await rpc.call('evm_mine')
    await rpc.call('evm_setAutomine', true)
    expect(await lost).to.equal('connection lost')
    expect(await running?.ended).to.equal('SIGKILL')

    await open('')
    const response = await send(url, header)
    expect(response.status).to.equal(402)
    expect(await json(response)).to.include({ code: 'payment_owed' })
    const metrics = async (): Promise<string> =>
      (await ask(`http://127.0.0.1:${port}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text()
    await until(async () => /^tollgate_owed_payments 1$/m.test(await metrics()))
  })
})
