import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../gateway/stores/database.ts'
import { createLease, LEASE_SECONDS, RENEW_SECONDS } from '../../gateway/stores/lease.ts'
import { openLiveGateway, type LiveGateway, wordProduct } from './live-gateway.ts'
import { until } from '../support/until.ts'

const state: { ticks: string[] } = { ticks: [] }

const TICKS = (name: string, everySeconds = 0.02): string => `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'parrot', setup: () => ({
  handlers: { getWord: () => ({ word: '${name}' }) },
  jobs: [{ name: 'tick', everySeconds: ${everySeconds}, async run() { globalThis.ticking.ticks.push('${name}') } }],
}) })`

describe('the jobs of two gateways on one database', () => {
  let dataDir: string
  const gateways: LiveGateway[] = []

  async function open(name: string): Promise<LiveGateway> {
    const live = await openLiveGateway({ environment: { DATA_DIR: dataDir }, overrides: { inMemory: false } })
    gateways.push(live)
    live.writePlugin('parrot/index.ts', TICKS(name))
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await live.gateway.reload()
    return live
  }

  before(() => {
    Object.assign(globalThis, { ticking: state })
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-lease-'))
  })
  after(async () => {
    for (const live of gateways) await live.close()
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('run in only one of them, and continue in the other when that one is closed', async () => {
    const first = await open('first')
    await until(() => state.ticks.includes('first'))
    await open('second')
    const before = state.ticks.length
    await until(() => state.ticks.length > before + 10)
    expect(state.ticks).not.to.include('second')
    gateways.shift()
    await first.close()
    await until(() => state.ticks.includes('second'))
  })
})

describe('the job of a process that died on another machine', () => {
  it('moves within 30 seconds, however rarely it runs', async () => {
    Object.assign(globalThis, { ticking: state })
    state.ticks = []
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-lease-'))
    const options = { environment: { DATA_DIR: dataDir }, overrides: { inMemory: false } }
    const live = await openLiveGateway(options)
    const db = openDatabase({ file: join(live.gateway.config.dataDir, 'products.sqlite') })
    try {
      const dead = createLease(db, 'dead', live.now)
      await dead.hold('parrot/tick', LEASE_SECONDS)
      await db('leases').where({ name: 'parrot/tick' }).update({ holder: 'elsewhere/1/dead' })
      live.writePlugin('parrot/index.ts', TICKS('heir', 3600))
      live.writeCatalog('parrot.json', wordProduct('parrot'))
      await live.gateway.reload()
      await until(async () => (await live.get('/v1/parrot')).status === 200)
      expect(state.ticks, 'while the lease lasts').to.deep.equal([])
      live.advance(LEASE_SECONDS)
      await until(() => state.ticks.includes('heir'))
      expect(LEASE_SECONDS + RENEW_SECONDS).to.be.at.most(30)
    } finally {
      await db.destroy()
      await live.close()
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})
