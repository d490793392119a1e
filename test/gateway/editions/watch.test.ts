import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Watch, watchFolders } from '../../../gateway/editions/watch.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { until } from '../../support/until.ts'

describe('the watch on folders', () => {
  let folder: string
  let watch: Watch
  let rests: number

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), '.watch-'))
    mkdirSync(join(folder, 'views'))
    rests = 0
    const folders = [folder, join(folder, 'nowhere')]
    watch = await watchFolders({ folders, onRest: () => (rests += 1), log: createLog('silent') })
  })
  afterEach(async () => {
    await watch.close()
    rmSync(folder, { recursive: true })
  })

  /** Waits until a second watch has reported two later changes. A report of an earlier change comes before that. */
  const rest = async (): Promise<void> => {
    const other = mkdtempSync(join(tmpdir(), '.watch-'))
    let reports = 0
    const beside = await watchFolders({ folders: [other], onRest: () => (reports += 1), log: createLog('silent') })
    for (const change of [1, 2]) {
      writeFileSync(join(other, 'a.json'), String(change))
      await until(() => reports >= change)
    }
    await beside.close()
    rmSync(other, { recursive: true })
  }

  it('reports many changes once, when they have come to rest', async () => {
    for (let count = 0; count < 30; count++) writeFileSync(join(folder, `views/${count}.pug`), 'p')
    await until(() => rests > 0)
    await rest()
    expect(rests).to.equal(1)
    writeFileSync(join(folder, 'views/1.pug'), 'b')
    await until(() => rests > 1)
    rmSync(join(folder, 'views/1.pug'))
    await until(() => rests > 2)
  })

  it('reports changes that never come to rest after a while', async () => {
    const busy = setInterval(() => writeFileSync(join(folder, 'views/log.pug'), String(Math.random())), 20)
    await until(() => rests > 0)
    clearInterval(busy)
  })

  it('ignores hidden files, packages, generated types and backups', async () => {
    mkdirSync(join(folder, 'node_modules'))
    for (const name of ['.swp', 'types.d.ts', 'index.ts~', 'node_modules/a.js']) writeFileSync(join(folder, name), '')
    await rest()
    expect(rests).to.equal(0)
  })

  it('sees changes between the reading of the folders and its own start', async () => {
    await watch.close()
    writeFileSync(join(folder, 'views/old.pug'), 'p')
    const [before, after] = [Date.now() - 60_000, Date.now() + 60_000]
    const watchSince = async (since: number): Promise<number> => {
      rests = 0
      watch = await watchFolders({ folders: [folder], since, onRest: () => (rests += 1), log: createLog('silent') })
      await rest()
      await watch.close()
      return rests
    }
    expect(await watchSince(after)).to.equal(0)
    expect(await watchSince(before)).to.equal(1)
  })

  it('sees that a folder is replaced or created, and the changes in it', async () => {
    renameSync(folder, `${folder}-old`)
    mkdirSync(join(folder, 'views'), { recursive: true })
    await until(() => rests > 0)
    await rest()
    rests = 0
    writeFileSync(join(folder, 'views/a.pug'), 'p')
    await until(() => rests > 0)
    rests = 0
    mkdirSync(join(folder, 'nowhere'))
    await until(() => rests > 0)
    rmSync(`${folder}-old`, { recursive: true })
  })

  it('sees that a folder that is a link gets a new target', async () => {
    await watch.close()
    const link = join(folder, 'current')
    for (const release of ['one', 'two']) mkdirSync(join(folder, release))
    symlinkSync(join(folder, 'one'), link)
    watch = await watchFolders({ folders: [link], onRest: () => (rests += 1), log: createLog('silent') })
    symlinkSync(join(folder, 'two'), `${link}.new`)
    renameSync(`${link}.new`, link)
    await until(() => rests > 0)
    rests = 0
    writeFileSync(join(folder, 'two/a.json'), '{}')
    await until(() => rests > 0)
  })

  it('sees that a link inside a folder gets a new target, and the changes there', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), '.watch-'))
    const link = join(folder, 'views/x')
    for (const release of ['one', 'two']) mkdirSync(join(elsewhere, release))
    symlinkSync(join(elsewhere, 'one'), link)
    symlinkSync(elsewhere, join(elsewhere, 'one/round'))
    await until(() => rests > 0)
    await rest()
    symlinkSync(join(elsewhere, 'two'), `${link}~`)
    rests = 0
    renameSync(`${link}~`, link)
    await until(() => rests > 0)
    await rest()
    rests = 0
    writeFileSync(join(elsewhere, 'two/a.json'), '{}')
    await until(() => rests > 0)
    rmSync(elsewhere, { recursive: true })
  })

  it('reports nothing after it is closed', async () => {
    writeFileSync(join(folder, 'views/a.pug'), 'p')
    await watch.close()
    await rest()
    expect(rests).to.equal(0)
  })
})
