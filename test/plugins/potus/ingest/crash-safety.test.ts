/** A process killed while it ingests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../../../gateway/stores/database.ts'
import { compiled } from '../../../support/compiled.ts'
import { root } from '../test-feed.ts'

const POLLS = 40

describe('an ingest process that is killed', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-kill-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  async function start(file: string): Promise<ChildProcess> {
    const program = await compiled('test/plugins/potus/ingest/killed-process.ts')
    return spawn(process.execPath, [program, file, String(POLLS)], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  }
  /** Kills the process when so many polls are through, or lets it end. */
  async function run(file: string, killAfter: number | null): Promise<void> {
    const child = await start(file)
    let seen = 0
    child.stdout?.on('data', (data: Buffer) => {
      seen += data.toString().split('\n').length - 1
      if (killAfter !== null && seen > killAfter) child.kill('SIGKILL')
    })
    await new Promise((resolve) => child.once('close', resolve))
  }

  it('loses no item and stores none twice, wherever it was interrupted', async () => {
    const file = join(folder, 'products.sqlite')
    for (const after of [3, 11]) await run(file, after)
    await run(file, null)
    const db = openDatabase({ file })
    const rows = (await db('potus_events').orderBy('seq').select('seq', 'source_key as key')) as {
      seq: number
      key: string
    }[]
    const versions = (await db('potus_versions').count('* as n').first()) as { n: number }
    const integrity = (await db.raw('pragma integrity_check')) as { integrity_check: string }[]
    await db.destroy()
    expect(rows.map(({ key }) => Number(key.split('=')[1])).toSorted((a, b) => a - b)).to.deep.equal(
      Array.from({ length: POLLS + 4 }, (_, n) => n),
    )
    expect(rows.map(({ seq }) => seq)).to.deep.equal(rows.map((_, at) => at + 1))
    expect(versions.n).to.equal(rows.length)
    expect(integrity[0]?.integrity_check).to.equal('ok')
  })
})
