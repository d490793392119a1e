import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../../..')

/** Creates logs, and says how often they wrote before their lines were due, for these lines, and long afterwards. */
const PROGRAM = `
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLog } from './gateway/observe/log.ts'
const write = fs.write
let writes = 0
fs.write = (...words) => {
  writes += 1
  return write(...words)
}
const [idle, busy] = [createLog('info'), createLog('info')]
for (let line = 1; line <= 3; line += 1) busy.info({ line }, 'ready')
const counts = [writes]
while (writes === 0) await sleep(10)
await sleep(50)
counts.push(writes)
await sleep(1000)
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
