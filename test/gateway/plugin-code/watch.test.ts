import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Watch, watchFolders } from '../../../gateway/plugin-code/watch.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { until } from '../../support/until.ts'

describe('the watch on folders', () => {
  let folder: string
  let watch: Watch
  let reports: number

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), '.watch-'))
    mkdirSync(join(folder, 'views'))
    reports = 0
    const folders = [folder, join(folder, 'nowhere')]
    watch = await watchFolders({ folders, onRest: () => (reports += 1), log: createLog('silent') })
  })
  afterEach(async () => {
    await watch.close()
    rmSync(folder, { recursive: true })
  })

  /**
   * Waits until every change so far has been reported: a second watch has then reported two later changes, and reports
   * come in the order of the changes.
   */
  const waitUntilQuiet = async (): Promise<void> => {
    const other = mkdtempSync(join(tmpdir(), '.watch-'))
    let otherReports = 0
    const otherWatch = await watchFolders({
      folders: [other],
      onRest: () => (otherReports += 1),
      log: createLog('silent'),
    })
    for (const change of [1, 2]) {
      writeFileSync(join(other, 'a.json'), String(change))
      await until(() => otherReports >= change)
    }
    await otherWatch.close()
    rmSync(other, { recursive: true })
  }

  it('reports many changes once, after the last of them', async () => {
    for (let count = 0; count < 30; count++) writeFileSync(join(folder, `views/${count}.pug`), 'p')
    await until(() => reports > 0)
    await waitUntilQuiet()
    expect(reports).to.equal(1)
    writeFileSync(join(folder, 'views/1.pug'), 'b')
    await until(() => reports > 1)
    rmSync(join(folder, 'views/1.pug'))
    await until(() => reports > 2)
  })

  it('reports changes after a while even if they never stop', async () => {
    const busy = setInterval(() => writeFileSync(join(folder, 'views/log.pug'), String(Math.random())), 20)
    await until(() => reports > 0)
    clearInterval(busy)
    expect(reports).to.be.greaterThan(0)
  })

  it('ignores hidden files, packages, generated types and backups', async () => {
    mkdirSync(join(folder, 'node_modules'))
    for (const name of ['.swp', 'types.d.ts', 'index.ts~', 'node_modules/a.js']) writeFileSync(join(folder, name), '')
    await waitUntilQuiet()
    expect(reports).to.equal(0)
  })

  it('sees changes made after the folders were read and before it started', async () => {
    await watch.close()
    writeFileSync(join(folder, 'views/old.pug'), 'p')
    const [before, after] = [Date.now() - 60_000, Date.now() + 60_000]
    const watchSince = async (since: number): Promise<number> => {
      reports = 0
      watch = await watchFolders({ folders: [folder], since, onRest: () => (reports += 1), log: createLog('silent') })
      await waitUntilQuiet()
      await watch.close()
      return reports
    }
    expect(await watchSince(after)).to.equal(0)
    expect(await watchSince(before)).to.equal(1)
  })

  it('sees that a folder is replaced or created, and sees the changes in it', async () => {
    renameSync(folder, `${folder}-old`)
    mkdirSync(join(folder, 'views'), { recursive: true })
    await until(() => reports > 0)
    await waitUntilQuiet()
    reports = 0
    writeFileSync(join(folder, 'views/a.pug'), 'p')
    await until(() => reports > 0)
    reports = 0
    mkdirSync(join(folder, 'nowhere'))
    await until(() => reports > 0)
    expect(reports).to.be.greaterThan(0)
    rmSync(`${folder}-old`, { recursive: true })
  })

  it('sees that a folder that is a symbolic link gets a new target', async () => {
    await watch.close()
    const link = join(folder, 'current')
    for (const release of ['one', 'two']) mkdirSync(join(folder, release))
    symlinkSync(join(folder, 'one'), link)
    watch = await watchFolders({ folders: [link], onRest: () => (reports += 1), log: createLog('silent') })
    symlinkSync(join(folder, 'two'), `${link}.new`)
    renameSync(`${link}.new`, link)
    await until(() => reports > 0)
    reports = 0
    writeFileSync(join(folder, 'two/a.json'), '{}')
    await until(() => reports > 0)
    expect(reports).to.be.greaterThan(0)
  })

  it('sees that a symbolic link inside a folder gets a new target, and sees the changes there', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), '.watch-'))
    const link = join(folder, 'views/x')
    for (const release of ['one', 'two']) mkdirSync(join(elsewhere, release))
    symlinkSync(join(elsewhere, 'one'), link)
    symlinkSync(elsewhere, join(elsewhere, 'one/round'))
    await until(() => reports > 0)
    await waitUntilQuiet()
    symlinkSync(join(elsewhere, 'two'), `${link}~`)
    reports = 0
    renameSync(`${link}~`, link)
    await until(() => reports > 0)
    await waitUntilQuiet()
    reports = 0
    writeFileSync(join(elsewhere, 'two/a.json'), '{}')
    await until(() => reports > 0)
    expect(reports).to.be.greaterThan(0)
    rmSync(elsewhere, { recursive: true })
  })

  it('reports nothing after it is closed', async () => {
    writeFileSync(join(folder, 'views/a.pug'), 'p')
    await watch.close()
    await waitUntilQuiet()
    expect(reports).to.equal(0)
  })
})
