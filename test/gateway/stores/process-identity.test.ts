import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect } from 'chai'
import { identify, isGone, retire } from '../../../gateway/stores/process-identity.ts'

describe('the identity of a process', () => {
  it('is alive until it is retired', () => {
    const instance = identify('a name')
    expect(isGone(instance)).to.equal(false)
    retire(instance)
    expect(isGone(instance)).to.equal(true)
  })

  it('is gone once its process has ended, and not before', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    const instance = `${hostname()}/${child.pid}/a name`
    expect(isGone(instance)).to.equal(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(isGone(instance)).to.equal(true)
  })

  it('is never called gone if it belongs to another machine or is malformed', () => {
    for (const instance of ['elsewhere/1/x', `${hostname()}/0/x`, `${hostname()}/-1/x`, 'x', ''])
      expect(isGone(instance), instance).to.equal(false)
  })
})
