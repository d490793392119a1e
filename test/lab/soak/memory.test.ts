import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { PROJECT_ROOT } from '../../../gateway/config/project-root.ts'
import { readMemory } from './memory.ts'

const ANSWERS_SIGNALS = pathToFileURL(join(PROJECT_ROOT, 'test/lab/soak/heap-on-signal.mjs')).href
/** Holds 40 MB, and makes as much garbage. */
const PROGRAM = `
  let garbage = Array.from({ length: 5e6 }, (_, at) => at + 0.5)
  const held = Array.from({ length: 5e6 }, (_, at) => at + 0.5)
  garbage = null
  setInterval(() => held.length, 1000)
  console.log('ready')`

describe('the memory of processes', () => {
  let folder: string
  let output: string
  let child: ChildProcess
  let pid: number

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'memory-'))
    output = join(folder, 'output.log')
    const descriptor = openSync(output, 'a')
    child = spawn(process.execPath, ['--import', ANSWERS_SIGNALS, '--eval', PROGRAM], {
      stdio: ['ignore', descriptor, 'inherit'],
    })
    closeSync(descriptor)
    pid = child.pid as number
    while (!readFileSync(output, 'utf8').includes('ready')) await delay(20)
  })
  after(() => {
    child?.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })

  it('is what is left after a collection of garbage, and the resident set', async () => {
    const [memory, ...others] = await readMemory([pid], output, 7)
    expect(others).to.deep.equal([])
    expect(memory).to.include({ pid, minute: 7 })
    expect(memory?.heap).to.be.within(40, 60)
    expect(memory?.resident).to.be.greaterThan(memory?.heap ?? 0)
  })

  it('is asked for anew each time, and not taken from what was printed before', async () => {
    appendFileSync(output, `heap ${pid} 1\n`)
    const [memory] = await readMemory([pid], output, 8)
    expect(memory?.heap).to.be.within(40, 60)
  })

  it('leaves out processes that have ended', async () => {
    const ended = spawn(process.execPath, ['--eval', ''])
    await new Promise((done) => ended.once('exit', done))
    expect((await readMemory([ended.pid as number, pid], output, 9)).map((each) => each.pid)).to.deep.equal([pid])
  })
})
