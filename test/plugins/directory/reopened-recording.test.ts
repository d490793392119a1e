/** What happens when the service restarts on a folder of recorded listings. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openTestProduct, TestClock } from 'tollgate/testing'
import directory from '../../../plugins/directory/index.ts'

const AT = Date.UTC(2026, 9, 2, 14)

describe('a folder of recorded listings', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-listings-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))
  const record = (name: string, host: string): void =>
    writeFileSync(
      join(folder, name),
      JSON.stringify({ items: [{ resource: `https://${host}/a`, accepts: [], lastUpdated: AT / 1000 }] }),
    )

  it('may be empty, is loaded only once, and is loaded again when a file is added', async () => {
    const openAfter = async (
      hours: number,
    ): Promise<{ hosts: (string | null)[]; firstSeen: string[]; shift: unknown }> => {
      const product = await openTestProduct(directory, {
        clock: new TestClock(new Date(AT + hours * 3_600_000).toISOString()),
        database: { file: join(folder, 'products.sqlite') },
        environment: { DATA_MODE: 'replay', REPLAY_DIR: folder, REPLAY_SHIFT: 'auto' },
      })
      const answer = await product.call('getAgentDirectory', { query: { sort: 'name', limit: 10 } })
      await product.close()
      return {
        hosts: answer.records.map(({ provider }) => provider.host),
        firstSeen: answer.records.map(({ first_seen: seen }) => seen),
        shift: answer.replay?.shift_seconds,
      }
    }
    expect(await openAfter(0)).to.deep.equal({ hosts: [], firstSeen: [], shift: 0 })
    record('bazaar_one.json', 'one.example.com')
    expect(await openAfter(1)).to.deep.equal({
      hosts: ['one.example.com'],
      firstSeen: ['2026-10-02T15:00:00Z'],
      shift: 3600,
    })
    expect(await openAfter(2)).to.deep.equal({
      hosts: ['one.example.com'],
      firstSeen: ['2026-10-02T15:00:00Z'],
      shift: 3600,
    })
    record('bazaar_two.json', 'two.example.com')
    expect((await openAfter(3)).hosts).to.deep.equal(['one.example.com', 'two.example.com'])
  })
})
