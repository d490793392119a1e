/** Following the live feed while the gateway is closed and opened again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../../support/gateway.ts'
import { follow, listed, newest, sampleWritten } from './stream-client.ts'
import { feedCatalog, openStall, type Stall } from '../feed-gateway.ts'

const HOUR = 3600

describe('a follower of the live feed', function () {
  this.timeout(90_000)
  let dataDir: string
  let stall: Stall | null = null
  before(() => (dataDir = mkdtempSync(join(tmpdir(), 'tollgate-resumed-'))))
  after(async () => {
    await stall?.close()
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('misses no event and gets none twice when it reconnects after restarts of the gateway', async () => {
    // A token is bound to the address of the gateway and to the keys in its data folder.
    const environment = { DATA_DIR: dataDir, PORT: String(await freePort()) }
    let hours = 0
    const pass = (some: number): void => {
      hours += some
      stall?.advance(some * HOUR)
    }
    const open = async (): Promise<Stall> => {
      stall = await openStall(feedCatalog(), { inMemory: false }, environment)
      stall.advance(hours * HOUR)
      return stall
    }
    const { url } = await open()
    const token = await (stall as unknown as Stall).token('live/30d')
    const start = await newest({ url, token })
    const ids: string[] = []
    for (let round = 0; round < 2; round += 1) {
      const follower = await follow({ url, token, after: ids.at(-1) ?? start })
      expect(follower.status).to.equal(200)
      pass(10)
      await follower.until(2)
      await (stall as unknown as Stall).close()
      await follower.ended
      ids.push(...follower.ids)
      // The next start writes the events that appear while the gateway is down.
      hours += 5
      await open()
    }
    const last = await follow({ url, token, after: ids.at(-1) })
    pass(10)
    await last.until(2)
    await sampleWritten({ url, token })
    const all = await listed({ url, token }, start)
    await last.until(all.length - ids.length)
    last.leave()
    expect([...ids, ...last.ids]).to.deep.equal(all)
    expect(all.length).to.be.greaterThan(10)
  })
})
