import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { ask, buy } from '../support/agent.ts'
import { freePort } from '../support/gateway.ts'
import { requireBuild } from '../support/process.ts'
import { SHOP } from '../support/sandbox.ts'
import { until } from '../support/until.ts'

const main = resolve(import.meta.dirname, '../../dist/gateway/main.js')
/** Debian's `script`, which runs a command in a terminal of its own. */
const SCRIPT = '/usr/bin/script'
const ESCAPES = /\p{Cc}\[\d*[mK]/gu

describe('the log of a running gateway', function () {
  this.timeout(90_000)
  let folder: string
  let running: { readonly child: ChildProcess; readonly output: () => string } | null = null
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-terminal-'))))
  afterEach(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Stops the gateway itself: its terminal would be gone before it has stopped. */
  async function stop(): Promise<void> {
    if (!running) return
    const { child, output } = running
    running = null
    const ended = once(child, 'exit')
    const [, pid] = / {2}process {2}(\d+)/.exec(output()) ?? []
    if (pid === undefined) child.kill('SIGTERM')
    else process.kill(Number(pid), 'SIGTERM')
    await ended
  }

  /** Starts a sandbox, buys from it, and returns what it has printed once it matches. */
  async function printed(command: readonly [string, ...string[]], sign: RegExp, settings = {}): Promise<string> {
    requireBuild()
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const system = { PATH: process.env['PATH'], HOME: process.env['HOME'], SHELL: '/bin/sh', TERM: 'xterm-256color' }
    const place = { ...SHOP, DATA_DIR: folder, PORT: String(port) }
    const [program, ...args] = command
    const child = spawn(program, args, {
      env: { ...system, ...place, ...settings },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (bytes: Buffer) => (output += String(bytes)))
    running = { child, output: () => output }
    await until(() => {
      if (child.exitCode !== null) throw new Error(`${command.join(' ')} ended:\n${output}`)
      return output.includes('/pricing')
    }, 50)
    const { buyer } = JSON.parse(readFileSync(join(folder, 'sandbox-sample/sandbox.json'), 'utf8')) as {
      buyer: { private_key: Hex }
    }
    expect((await buy(`${url}/v1/echo/hello`, privateKeyToAccount(buyer.private_key))).status).to.equal(200)
    await ask(`${url}/pricing.json`)
    const [, token = ''] = /operator .*\(the token is ([\w-]+)\)/.exec(output) ?? []
    const headers = { authorization: `Bearer ${token}` }
    expect((await ask(`${url}/operator`, { headers })).status).to.equal(200)
    await until(() => sign.test(output))
    return output
  }

  const terminal = (words: string): readonly [string, ...string[]] => [SCRIPT, '-qec', words, '/dev/null']
  const isPresent = (context: Mocha.Context): void => void (existsSync(SCRIPT) || context.skip())
  const SOLD = /\d\d:\d\d:\d\d sold getEcho \$0\.005 to 0x\w\w…\w\w, \d+ ms\r?\n/

  it('has one line for a sale on a terminal, also with several workers, and none for free calls', async function () {
    isPresent(this)
    for (const flags of ['', ' --workers 2']) {
      const output = await printed(terminal(`${process.execPath} ${main}${flags}`), /sold/)
      expect(output).to.contain('\u001b[32msold\u001b[0m')
      expect(output.replace(ESCAPES, '')).to.match(SOLD)
      expect(output).not.to.match(/\{"level"|pricing\.json/)
      await stop()
    }
  })

  it('has no colours with NO_COLOR', async function () {
    isPresent(this)
    const output = await printed(terminal(`${process.execPath} ${main}`), /sold/, { NO_COLOR: '1' })
    expect(output).not.to.match(/\p{Cc}\[\d*m/u)
    expect(output).to.match(SOLD)
  })

  it('is JSON where nobody watches, and on a terminal with LOG_FORMAT=json', async function () {
    const piped = await printed([process.execPath, main], /"route":"GET \/operator"/)
    for (const line of piped.split('\n').filter((each) => each.startsWith('{'))) JSON.parse(line)
    expect(piped).to.match(
      /^\{"level":"info","time":"[^"]+","call":"[^"]+","operation":"getEcho","amount":"5000","payer":/m,
    )
    expect(piped).to.match(/"route":"GET \/pricing.json"/)
    expect(piped).not.to.match(/\p{Cc}\[| sold |"level":"debug"/u)
    isPresent(this)
    await stop()
    const forced = await printed(terminal(`${process.execPath} ${main}`), /"msg":"payment settled"/, {
      LOG_FORMAT: 'json',
    })
    expect(forced).not.to.match(/\p{Cc}\[| sold /u)
  })

  it('is for people in a pipe with LOG_FORMAT=text, without colours', async () => {
    const output = await printed([process.execPath, main], /sold/, { LOG_FORMAT: 'text' })
    expect(output).to.match(SOLD)
    expect(output).not.to.contain('\u001b')
  })
})
