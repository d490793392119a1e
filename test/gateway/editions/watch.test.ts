import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Watch, watchFolders } from '../../../gateway/editions/watch.ts'
import { createLog } from '../../../gateway/observe/log.ts'

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

  const rest = () => new Promise((wake) => setTimeout(wake, 600))
  const until = async (isTrue: () => boolean): Promise<void> => {
    while (!isTrue()) await new Promise((wake) => setTimeout(wake, 10))
  }

  it('tells once of many changes, when they have come to rest', async () => {
    for (let count = 0; count < 30; count++) writeFileSync(join(folder, `views/${count}.pug`), 'p')
    await until(() => rests > 0)
    await rest()
    expect(rests).to.equal(1)
    writeFileSync(join(folder, 'views/1.pug'), 'b')
    await until(() => rests > 1)
    rmSync(join(folder, 'views/1.pug'))
    await until(() => rests > 2)
  })

  it('does not wait for ever where changes never rest', async () => {
    const busy = setInterval(() => writeFileSync(join(folder, 'views/log.pug'), String(Math.random())), 20)
    await until(() => rests > 0)
    clearInterval(busy)
  })

  it('overlooks hidden files, packages, generated types and backups', async () => {
    mkdirSync(join(folder, 'node_modules'))
    for (const name of ['.swp', 'types.d.ts', 'index.ts~', 'node_modules/a.js']) writeFileSync(join(folder, name), '')
    await rest()
    expect(rests).to.equal(0)
  })

  it('sees what changed after the folders were read, before it was there', async () => {
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

  it('sees a folder that is put in the place of another, what happens in it, and one that was not there', async () => {
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

  it('sees a link that leads elsewhere from now on', async () => {
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

  it('sees a link inside a folder that leads elsewhere from now on, and what happens there', async () => {
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

  it('tells nothing once it is closed', async () => {
    writeFileSync(join(folder, 'views/a.pug'), 'p')
    await watch.close()
    await rest()
    expect(rests).to.equal(0)
  })
})
