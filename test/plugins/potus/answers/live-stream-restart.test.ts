/** Following the live feed while the gateway is closed and opened again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../../support/gateway.ts'
import { follow, listEvents, newestEvent, untilSampleWritten } from './stream-client.ts'
import { feedCatalog, openFeedGateway, type FeedGateway } from '../feed-gateway.ts'

const HOUR = 3600
/** The sample has few posts at night, so only a whole day is sure to have several. */
const DAY_HOURS = 24

describe('a follower of the live feed', function () {
  this.timeout(90_000)
  let dataDir: string
  let gateway: FeedGateway | null = null
  before(() => (dataDir = mkdtempSync(join(tmpdir(), 'tollgate-resumed-'))))
  after(async () => {
    await gateway?.close()
    rmSync(dataDir, { recursive: true, force: true })
  })

  it('misses no event and gets none twice when it reconnects after restarts of the gateway', async () => {
    // A token is bound to the address of the gateway and to the keys in its data folder.
    const environment = { DATA_DIR: dataDir, PORT: String(await freePort()) }
    let hours = 0
    const advanceHours = (count: number): void => {
      hours += count
      gateway?.advance(count * HOUR)
    }
    const open = async (): Promise<FeedGateway> => {
      gateway = await openFeedGateway(feedCatalog(), { inMemory: false }, environment)
      gateway.advance(hours * HOUR)
      return gateway
    }
    const { url } = await open()
    const token = await (gateway as unknown as FeedGateway).token('live/30d')
    const start = await newestEvent({ url, token })
    const ids: string[] = []
    for (let round = 0; round < 2; round += 1) {
      const follower = await follow({ url, token, after: ids.at(-1) ?? start })
      expect(follower.status).to.equal(200)
      advanceHours(DAY_HOURS)
      await follower.until(2)
      await (gateway as unknown as FeedGateway).close()
      await follower.ended
      ids.push(...follower.ids)
      // The next start writes the events that appear while the gateway is down.
      hours += 5
      await open()
    }
    const last = await follow({ url, token, after: ids.at(-1) })
    advanceHours(DAY_HOURS)
    await last.until(2)
    await untilSampleWritten({ url, token })
    const all = await listEvents({ url, token }, start)
    await last.until(all.length - ids.length)
    last.disconnect()
    expect([...ids, ...last.ids]).to.deep.equal(all)
    expect(all.length).to.be.greaterThan(10)
  })
})
