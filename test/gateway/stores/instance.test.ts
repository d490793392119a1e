import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect } from 'chai'
import { identify, isGone, retire } from '../../../gateway/stores/instance.ts'

describe('an instance', () => {
  it('lives until it is retired', () => {
    const instance = identify('a word')
    expect(isGone(instance)).to.equal(false)
    retire(instance)
    expect(isGone(instance)).to.equal(true)
  })

  it('is gone when its process is, and not before', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    const instance = `${hostname()}/${child.pid}/a word`
    expect(isGone(instance)).to.equal(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(isGone(instance)).to.equal(true)
  })

  it('of another machine, or of no known form, is never called gone', () => {
    for (const instance of ['elsewhere/1/x', `${hostname()}/0/x`, `${hostname()}/-1/x`, 'x', ''])
      expect(isGone(instance), instance).to.equal(false)
  })
})
