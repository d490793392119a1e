/** A gateway that is killed after its upstream has begun to answer and before the first byte is passed on. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { payment, receipt, send } from '../support/agent.ts'
import { openCatalog, type TestCatalog } from '../support/catalog.ts'
import { balanceOf } from '../support/chain.ts'
import { freePort } from '../support/gateway.ts'
import { start, type Started } from '../support/process.ts'
import { openUpstreamServer, type UpstreamServer } from './upstream-server.ts'
import { FILES } from './stream-gateway.ts'

describe('a paid stream whose gateway is killed', function () {
  this.timeout(90_000)
  let dataDir: string
  let upstream: UpstreamServer
  let catalog: TestCatalog
  let port: number
  let running: Started | undefined

  /** Names the step at which the running gateway crashes; "" means that it does not. */
  const crashAt = (step: string): void => writeFileSync(join(dataDir, 'crash'), step)
  const open = async (): Promise<void> => {
    crashAt('')
    running = await start('test/support/crashing-gateway.ts', /ready/, {
      PORT: String(port),
      DATA_DIR: dataDir,
      CATALOG_DIR: catalog.catalogDir,
      FILES_KEY: 'key',
      CRASH_FILE: join(dataDir, 'crash'),
    })
  }

  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-stream-'))
    upstream = await openUpstreamServer()
    upstream.answer = (response) => response.end('all the bytes')
    catalog = openCatalog({ 'files.json': FILES(upstream.url) })
    port = await freePort()
    await open()
  })
  after(async () => {
    await running?.stop()
    await upstream?.close()
    catalog?.close()
    rmSync(dataDir, { recursive: true, force: true })
  })

  for (const [step, moment] of [
    ['submitted', 'the upstream began to answer'],
    ['sent', 'the settlement reached the chain'],
  ] as const)
    it(`right after ${moment} is delivered for the same payment after a restart, and charged once`, async () => {
      crashAt(step)
      const { rpc_url, buyer } = JSON.parse(readFileSync(join(dataDir, 'sandbox-sample/sandbox.json'), 'utf8')) as {
        rpc_url: string
        buyer: { address: Hex; private_key: Hex }
      }
      const url = `http://127.0.0.1:${port}/v1/files/big`
      const before = await balanceOf(rpc_url, buyer.address)
      const header = await payment(url, privateKeyToAccount(buyer.private_key))
      expect(await send(url, header).catch(() => 'connection lost')).to.equal('connection lost')
      expect(await running?.ended).to.equal('SIGKILL')
      await open()
      let response = await send(url, header)
      while (response.status === 503) response = await send(url, header)
      expect([response.status, await response.text()]).to.deep.equal([200, 'all the bytes'])
      expect(receipt(response)).to.include({ success: true })
      expect(before - (await balanceOf(rpc_url, buyer.address))).to.equal(10_000n)
    })
})
