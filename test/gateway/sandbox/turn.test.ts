import { expect } from 'chai'
import { spawnSync } from 'node:child_process'
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { inTurn } from '../../../gateway/sandbox/turn.ts'
import { temporaryFolder } from './laboratory.ts'

describe('a turn', () => {
  const folder = temporaryFolder()
  const lock = join(folder.path, 'lock')
  after(() => folder.remove())

  /** Eight workers at once; how many were seen inside together. */
  async function crowd(): Promise<number> {
    let inside = 0
    let most = 0
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside)
      await pause(5)
      inside--
    }
    await Promise.all(Array.from({ length: 8 }, () => inTurn(lock, work)))
    return most
  }

  it('is had by one at a time, and given back', async () => {
    expect(await crowd()).to.equal(1)
    expect(existsSync(lock)).to.equal(false)
  })

  it('is given back when the work fails', async () => {
    const failing = inTurn(lock, () => Promise.reject(new Error('no')))
    expect(await failing.catch((error: Error) => error.message)).to.equal('no')
    expect(await inTurn(lock, async () => 'next')).to.equal('next')
  })

  it('passes from a holder that was killed to one of those who wait', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', ''])
    writeFileSync(lock, `${pid} 0011223344556677`)
    expect(await crowd()).to.equal(1)
  })

  it('passes from a holder that was killed before it wrote its name', async () => {
    writeFileSync(lock, '')
    utimesSync(lock, 1, 1)
    expect(await crowd()).to.equal(1)
  })
})
