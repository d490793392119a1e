import { expect } from 'chai'
import { spawnSync } from 'node:child_process'
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { withLock } from '../../../gateway/sandbox/shared-files.ts'
import { temporaryFolder } from './usdc-client.ts'

describe('a lock file', () => {
  const folder = temporaryFolder()
  const lock = join(folder.path, 'lock')
  after(() => folder.remove())

  /** Runs eight workers and returns how many held the lock at the same time. */
  async function mostHolders(): Promise<number> {
    let holders = 0
    let maximum = 0
    const work = async (): Promise<void> => {
      maximum = Math.max(maximum, ++holders)
      await pause(5)
      holders--
    }
    await Promise.all(Array.from({ length: 8 }, () => withLock(lock, work)))
    return maximum
  }

  it('is held by one worker at a time, and is removed afterwards', async () => {
    expect(await mostHolders()).to.equal(1)
    expect(existsSync(lock)).to.equal(false)
  })

  it('is released when the work fails', async () => {
    const failing = withLock(lock, () => Promise.reject(new Error('no')))
    expect(await failing.catch((error: Error) => error.message)).to.equal('no')
    expect(await withLock(lock, async () => 'next')).to.equal('next')
  })

  it('passes to one waiting worker when its holder was killed', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', ''])
    writeFileSync(lock, `${pid} 0011223344556677`)
    expect(await mostHolders()).to.equal(1)
  })

  it('passes on when another process has the pid of its holder, as after a restart of a container', async () => {
    writeFileSync(lock, `${process.pid} 1 0011223344556677`)
    expect(await mostHolders()).to.equal(1)
  })

  it('passes on when its holder was killed before it wrote its name', async () => {
    writeFileSync(lock, '')
    utimesSync(lock, 1, 1)
    expect(await mostHolders()).to.equal(1)
  })
})
