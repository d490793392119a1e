import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../../..')

/** Creates logs, and says how often they wrote before their lines were due, for these lines, and when no line is due. */
const PROGRAM = `
import fs from 'node:fs'
import { createLog } from './gateway/observe/log.ts'
import { holdTimers } from './test/support/held-timers.ts'
const write = fs.write
let [writes, isWritten] = [0, () => {}]
fs.write = (...words) => {
  writes += 1
  const done = words.pop()
  return write(...words, (...result) => {
    done(...result)
    isWritten()
  })
}
const timers = holdTimers()
const [idle, busy] = [createLog('info'), createLog('info')]
for (let line = 1; line <= 3; line += 1) busy.info({ line }, 'ready')
const counts = [writes]
const written = new Promise((resolve) => (isWritten = resolve))
timers.fire()
await written
counts.push(writes)
timers.fire()
counts.push(writes)
idle.info('done')
fs.writeSync(2, JSON.stringify(counts))
`

describe('a log', () => {
  it('writes lines together, and nothing while there are none', () => {
    const args = ['--import', 'tsx/esm', '--input-type=module', '-e', PROGRAM]
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
    const lines = stdout.trim().split('\n')
    const said = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(said.map(({ line, msg }) => line ?? msg)).to.deep.equal([1, 2, 3, 'done'])
    expect(JSON.parse(stderr)).to.deep.equal([0, 1, 1])
  })
})
