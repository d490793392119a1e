/** A load of older items that is killed in the middle, several times. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../../../gateway/stores/database.ts'
import { compiled } from '../../../support/compiled.ts'
import { root } from '../test-feed.ts'
import { openScriptedSources, type ScriptedSources } from './scripted-sources.ts'

const NOW = Date.UTC(2026, 4, 1, 12)

interface Stored {
  readonly seq: number
  readonly source: string
  readonly key: string
  readonly ingest: string
}

describe('a load of older items that is killed', function () {
  this.timeout(180_000)
  let scripts: ScriptedSources
  let folder: string
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-load-'))
    scripts = await openScriptedSources({ now: NOW, posts: 420, releases: 70, documents: 40 })
  })
  after(async () => {
    await scripts.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Runs the load, and kills it once the store has this many events; null lets it end. */
  async function run(file: string, killAt: number | null): Promise<string> {
    const program = await compiled('test/plugins/potus/first-day/killed-load.ts')
    const arguments_ = [program, file, JSON.stringify(scripts.settings), String(NOW)]
    const child = spawn(process.execPath, arguments_, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (data: Buffer) => (output += data.toString()))
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
    let isClosed = false
    void closed.then(() => (isClosed = true))
    if (killAt !== null) {
      const db = openDatabase({ file })
      const count = async (): Promise<number> => {
        if (!(await db.schema.hasTable('potus_events'))) return 0
        return ((await db('potus_events').count('* as n').first()) as { n: number }).n
      }
      while (!isClosed && (await count().catch(() => 0)) < killAt)
        await new Promise((resolve) => setTimeout(resolve, 20))
      child.kill('SIGKILL')
      await db.destroy()
    }
    await closed
    return output
  }
  async function stored(file: string): Promise<Stored[]> {
    const db = openDatabase({ file })
    const rows = (await db('potus_events')
      .orderBy('seq')
      .select('seq', 'source', 'source_key as key', 'ingest')) as Stored[]
    const integrity = (await db.raw('pragma integrity_check')) as { integrity_check: string }[]
    await db.destroy()
    expect(integrity[0]?.integrity_check).to.equal('ok')
    return rows
  }

  it('goes on where it was, without holes and without duplicates', async () => {
    const [disturbed, undisturbed] = [join(folder, 'disturbed.sqlite'), join(folder, 'undisturbed.sqlite')]
    for (const at of [30, 240]) expect(await run(disturbed, at)).to.equal('')
    expect(await run(disturbed, null)).to.equal('done\n')
    expect(await run(undisturbed, null)).to.equal('done\n')
    const [found, expected] = [await stored(disturbed), await stored(undisturbed)]
    const names = (rows: readonly Stored[]) =>
      rows.map(({ source, key, ingest }) => `${source} ${key} ${ingest}`).sort()
    expect(names(found)).to.deep.equal(names(expected))
    expect(expected).to.have.length(420 + 70 + 40)
    expect(found.map(({ seq }) => seq)).to.deep.equal(found.map((_, at) => at + 1))
  })
})
