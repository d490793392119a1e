/** Tests of how a gateway ends: real processes, a real terminal, and the whole tree that they started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'chai'
import sqlite3 from 'sqlite3'
import { privateKeyToAccount } from 'viem/accounts'
import { anvilBinary } from '../../gateway/sandbox/anvil.ts'
import { isAlive } from '../../gateway/sandbox/processes.ts'
import { payment } from '../support/agent.ts'
import { SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { requireBuild } from '../support/process.ts'
import { until } from '../support/until.ts'
import { wordProduct } from './live-gateway.ts'

const root = resolve(import.meta.dirname, '../..')
/** Debian's `script`, which runs a command in a terminal of its own. */
const SCRIPT = '/usr/bin/script'
/** The longest that a gateway may take to stop, and as much again for a machine that is busy. */
const STOP_MS = 30_000

/** Has a word, a handler that never answers, one that never lets go of the process, and one that is sold. */
const PROBE = (seed: string): string => `import { existsSync, writeFileSync } from 'node:fs'
import { definePlugin } from 'tollgate/plugin'
const word = existsSync('${seed}') ? 'grown' : 'small'
export default definePlugin({ name: 'probe', setup: ({ log }) => ({ handlers: {
  getWord: () => ({ word }),
  hang: () => (log.warn('a call hangs'), new Promise(() => {})),
  hold: () => { setImmediate(() => { writeFileSync('${seed}-held', ''); for (;;); }); return { word } },
  buyWord: () => ({ word }),
} }) })
`
const { getWord } = wordProduct('probe').operations
const probe = {
  ...wordProduct('probe'),
  operations: {
    getWord,
    hang: { ...getWord, route: 'GET /v1/hang' },
    hold: { ...getWord, route: 'GET /v1/hold' },
    buyWord: { ...getWord, route: 'GET /v1/bought', price: '0.005' },
  },
}

/** A command that runs a gateway on the sandbox. */
interface Running {
  readonly child: ChildProcess
  readonly url: string
  readonly folder: string
  output(): string
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
  /** Every process that it has started, and those that they have started, the chain included. */
  family(): readonly number[]
}

const MAIN = [process.execPath, 'dist/gateway/main.js']
const running: Running[] = []

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** The process of the chain in a folder, which lives in a process group of its own. */
function chainOf(folder: string): readonly number[] {
  const file = join(folder, 'data/sandbox-sample/chain/process.json')
  const { pid } = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { pid: number | null }) : { pid: null }
  return pid === null ? [] : [pid]
}

const familyOf = (pid: number): readonly number[] => [pid, ...childrenOf(pid).flatMap(familyOf)]

function write(folder: string, file: string, content: unknown): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content))
}

async function run(command: readonly string[], options: { folder?: string } = {}): Promise<Running> {
  requireBuild()
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'tollgate-signals-'))
  write(folder, 'catalog/service.json', SERVICE)
  write(folder, 'catalog/probe.json', probe)
  write(folder, 'plugins/probe/index.ts', PROBE(join(folder, 'seed')))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const [program = '', ...args] = command.map((word) => word.replaceAll('$FOLDER', folder))
  const child = spawn(program, args, {
    cwd: root,
    // A gateway in a process group of its own does not get what the terminal of the tests sends.
    detached: true,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      SHELL: '/bin/sh',
      DATA_DIR: join(folder, 'data'),
      CATALOG_DIR: join(folder, 'catalog'),
      PLUGIN_DIRS: join(folder, 'plugins'),
      PORT: String(port),
      LOG_LEVEL: 'warn',
    },
    // `script` ends at the end of its input.
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (printed += String(chunk)))
  const ended = new Promise<number | string>((done) => child.once('exit', (code, signal) => done(code ?? signal ?? 0)))
  const started = {
    child,
    url,
    folder,
    output: () => printed,
    ended,
    family: () => [...new Set([...familyOf(child.pid as number), ...chainOf(folder)])],
  }
  running.push(started)
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${command.join(' ')} ended:\n${printed}`)
    return (await wordOf(started)) !== null
  }, 50)
  return started
}

/** The word that the gateway answers with; null if it does not answer. */
async function wordOf({ url }: Running): Promise<string | null> {
  const response = await fetch(`${url}/v1/probe`).catch(() => null)
  return response?.status === 200 ? ((await response.json()) as { word: string }).word : null
}

async function areAlive(pids: readonly number[]): Promise<readonly number[]> {
  const alive = await Promise.all(pids.map(async (pid) => ((await isAlive(pid)) ? [pid] : [])))
  return alive.flat()
}

/** Expects that all of these processes end in time. */
async function expectEnd(pids: readonly number[], limitMs = STOP_MS): Promise<void> {
  expect(pids.length).to.be.greaterThan(2)
  const deadline = performance.now() + limitMs
  await until(async () => (await areAlive(pids)).length === 0 || performance.now() > deadline, 50)
  expect(await areAlive(pids), 'processes that are still alive').to.deep.equal([])
}

/** The process among these that runs main.js as the operator started it. */
function launcherOf({ family }: Running): number {
  const found = family().find((pid) => {
    const [program = '', file = '', as = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return program.endsWith('node') && /(main\.js|tollgate\.mjs)$/.test(file) && as !== '--as'
  })
  return found as number
}

/** The process that listens, in which plugins run. */
const gatewayOf = (started: Running): number =>
  childrenOf(launcherOf(started)).find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--as\0gateway'),
  ) as number

describe('the end of a gateway', function () {
  this.timeout(120_000)

  before(function () {
    try {
      anvilBinary()
    } catch {
      this.skip()
    }
  })
  afterEach(async () => {
    const all = running.splice(0)
    const pids = all.flatMap(({ family }) => family())
    for (const pid of pids)
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    await until(async () => (await areAlive(pids)).length === 0, 50)
    // Only now: two of them may share a folder.
    for (const { folder } of all) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  describe('in a terminal', () => {
    before(function () {
      if (!existsSync(SCRIPT)) this.skip()
    })

    for (const [name, command] of [
      ['one process', MAIN.join(' ')],
      ['two workers', `${MAIN.join(' ')} --workers 2`],
      ['npm start', 'npm start'],
    ] as const)
      it(`${name}: everything ends when the terminal closes`, async () => {
        const started = await run([SCRIPT, '-qec', command, '/dev/null'])
        const family = started.family()
        started.child.kill('SIGKILL')
        await expectEnd(family)
      })

    it('SIGHUP reloads the catalog while the terminal is there, and SIGTERM still ends everything', async () => {
      const started = await run([SCRIPT, '-qec', MAIN.join(' '), '/dev/null'])
      expect(await wordOf(started)).to.equal('small')
      write(started.folder, 'seed', '')
      write(started.folder, 'plugins/probe/index.ts', `${PROBE(join(started.folder, 'seed'))}// edited\n`)
      const family = started.family()
      process.kill(launcherOf(started), 'SIGHUP')
      await until(async () => (await wordOf(started)) === 'grown')
      expect(await areAlive(family)).to.deep.equal(family)
      process.kill(launcherOf(started), 'SIGTERM')
      await expectEnd(family)
    })

    it('a gateway with nohup goes on when the terminal closes, and SIGTERM ends it then', async () => {
      const started = await run([SCRIPT, '-qec', `nohup ${MAIN.join(' ')} < /dev/null > $FOLDER/log 2>&1`, '/dev/null'])
      const launcher = launcherOf(started)
      const family = [launcher, gatewayOf(started), ...chainOf(started.folder)]
      started.child.kill('SIGKILL')
      await started.ended
      await until(async () => !(await isAlive(started.child.pid as number)))
      for (let asked = 0; asked < 20; asked++) expect(await wordOf(started)).to.equal('small')
      expect(await areAlive(family)).to.deep.equal(family)
      process.kill(launcher, 'SIGTERM')
      await expectEnd(family)
    })
  })

  it('SIGHUP reloads a gateway without a terminal, again and again, and SIGTERM ends it with 0', async () => {
    const started = await run(MAIN)
    const family = started.family()
    for (let times = 0; times < 3; times++) {
      started.child.kill('SIGHUP')
      expect(await wordOf(started)).to.equal('small')
    }
    started.child.kill('SIGTERM')
    expect(await started.ended).to.equal(0)
    await expectEnd(family)
  })

  it('SIGUSR2, which replaces workers, does nothing to a gateway without workers', async () => {
    const started = await run(MAIN)
    const family = started.family()
    started.child.kill('SIGUSR2')
    await until(() => started.output().includes('started without --workers. Nothing was done.'))
    expect(await wordOf(started)).to.equal('small')
    started.child.kill('SIGTERM')
    expect(await started.ended).to.equal(0)
    await expectEnd(family)
  })

  for (const [name, target] of [
    ['npm', ({ child }: Running) => child.pid as number],
    ['the process that npm starts', ({ child }: Running) => childrenOf(child.pid as number)[0] as number],
    ['the gateway itself', gatewayOf],
  ] as const)
    it(`npm start: SIGTERM to ${name} ends everything`, async () => {
      const started = await run(['npm', 'start'])
      const family = started.family()
      process.kill(target(started), 'SIGTERM')
      await expectEnd(family)
    })

  it('npm start: Ctrl-C, which npm passes on as well, lets the running call finish', async () => {
    const started = await run(['npm', 'start', '--', '--workers', '2'])
    const family = started.family()
    const launcher = launcherOf(started)
    process.kill(launcher, 'SIGINT')
    process.kill(launcher, 'SIGINT')
    await expectEnd(family)
    expect(started.output()).not.to.match(/SIGKILL/)
  })

  for (const [name, args] of [
    ['one process', []],
    ['two workers', ['--workers', '2']],
  ] as const)
    it(`${name}: a second SIGTERM ends everything at once, with 1`, async () => {
      const started = await run([...MAIN, ...args])
      // The first worker answers before the second one does.
      await until(() => started.output().includes('is open at'))
      const family = started.family()
      fetch(`${started.url}/v1/hang`).catch(() => {})
      await until(() => started.output().includes('a call hangs'))
      started.child.kill('SIGTERM')
      // Each caller that comes while the port closes is answered or turned away, and never left waiting.
      const callers = Array.from({ length: 20 }, () => until(async () => (await wordOf(started)) === null, 1))
      await Promise.all(callers)
      expect(await areAlive(family), 'it waits for the call').to.include(started.child.pid)
      const began = performance.now()
      started.child.kill('SIGTERM')
      await expectEnd(family)
      expect(performance.now() - began, 'milliseconds').to.be.lessThan(8_000)
      expect(await started.ended).to.equal(1)
    })

  const HELD = {
    'a handler that never answers': { path: '/v1/hang', args: [] },
    'a handler that never lets go of the process': { path: '/v1/hold', args: [] },
    'a worker whose handler never lets go of it': { path: '/v1/hold', args: ['--workers', '2'] },
  } as const
  let headers: Record<string, string> = {}
  /** Each gateway stops only when its time is over, so all of them stop at once. Null, or why it did not end. */
  const ends = new Map<string, unknown>()
  let ended: Promise<void> | undefined
  let locked: Running

  /** Resolves when the gateway has ended despite a call that holds it. */
  async function endHeld({ path, args }: (typeof HELD)[keyof typeof HELD]): Promise<void> {
    const started = await run([...MAIN, ...args])
    const family = started.family()
    fetch(started.url + path).catch(() => {})
    if (path === '/v1/hang') await until(() => started.output().includes('a call hangs'))
    else await until(() => existsSync(join(started.folder, 'seed-held')))
    started.child.kill('SIGTERM')
    await expectEnd(family)
  }

  /** Resolves when the gateway has ended although the journal was locked, which it no longer is. */
  async function endLocked(): Promise<void> {
    locked = await run(MAIN)
    const family = locked.family()
    const description = join(locked.folder, 'data/sandbox-sample/sandbox.json')
    await until(() => existsSync(description))
    const { buyer } = JSON.parse(readFileSync(description, 'utf8')) as {
      buyer: { private_key: `0x${string}` }
    }
    headers = {
      'payment-signature': await payment(`${locked.url}/v1/bought`, privateKeyToAccount(buyer.private_key)),
    }
    const unlock = await lock(join(locked.folder, 'data/sandbox-sample/journal.sqlite'))
    fetch(`${locked.url}/v1/bought`, { headers }).catch(() => {})
    // The call comes first, so that it has begun to write when these are answered.
    for (let asked = 0; asked < 20; asked++) expect(await wordOf(locked)).to.equal('small')
    locked.child.kill('SIGTERM')
    await expectEnd(family)
    await unlock()
  }

  /** Starts and ends all of these gateways, and notes how each ended. */
  async function endAll(): Promise<void> {
    const note = async (name: string, end: Promise<void>): Promise<void> => {
      ends.set(
        name,
        await end.then(
          () => null,
          (error: unknown) => error,
        ),
      )
    }
    await Promise.all([
      note('locked', endLocked()),
      ...Object.entries(HELD).map(([name, held]) => note(name, endHeld(held))),
    ])
  }

  /** Expects that this one ended. Whoever asks first starts and ends all of them. */
  async function expectEnded(name: string): Promise<void> {
    ended ??= endAll()
    await ended
    const failure = ends.get(name)
    expect(failure, failure instanceof Error ? failure.stack : undefined).to.equal(null)
  }

  it('SIGTERM ends everything while the journal cannot be written, and the payment is answered after the next start', async () => {
    await expectEnded('locked')
    const again = await run(MAIN, { folder: locked.folder })
    const answer = await fetch(`${again.url}/v1/bought`, { headers })
    expect([answer.status, await answer.json()]).to.deep.equal([200, { word: 'small' }])
  })

  for (const name of Object.keys(HELD)) it(`SIGTERM ends everything in time despite ${name}`, () => expectEnded(name))
})

/** Keeps everybody else from writing a SQLite file. Returns the function that ends that. */
async function lock(file: string): Promise<() => Promise<void>> {
  const database = new sqlite3.Database(file)
  const exec = (sql: string): Promise<void> =>
    new Promise((done, reject) => database.exec(sql, (error) => (error ? reject(error) : done())))
  await exec('BEGIN IMMEDIATE')
  return async () => {
    await exec('ROLLBACK')
    await new Promise((done) => database.close(done))
  }
}
