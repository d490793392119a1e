/** Tests of `npm start -- --workers 2`: real processes on one port, on each database. */
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { anvilBinary } from '../../gateway/sandbox/anvil.ts'
import { isAlive } from '../../gateway/sandbox/processes.ts'
import { v8Flags } from '../../gateway/v8-flags.ts'
import { openSchema, type Schema } from '../contracts/postgres.ts'
import { payment } from '../support/agent.ts'
import { SERVICE } from '../support/catalog.ts'
import { balanceOf } from '../support/chain.ts'
import { freePort } from '../support/gateway.ts'
import { environmentIn, startGateway, type Started } from '../support/process.ts'
import { PROXY_ADDRESS, REVERSE_PROXIES, startReverseProxy } from '../support/reverse-proxies.ts'
import { msUntil, until, untilFound } from '../support/until.ts'
import { wordProduct } from './live-gateway.ts'

/**
 * Answers with the process that answers, sells a word that is never the same, fails in the process that a file names, and
 * has a job that says where it runs.
 */
const WHO = (folder: string): string => `import { appendFileSync, existsSync } from 'node:fs'
import { definePlugin } from 'tollgate/plugin'
let sold = 0
export default definePlugin({ name: 'who', setup: () => ({
  handlers: {
    getWho: () => ({ word: String(process.pid) }),
    buyWord: () => ({ word: \`\${process.pid}-\${sold++}\` }),
    tryWord: () => {
      if (existsSync('${folder}/broken-' + process.pid)) throw new Error('broken')
      return { word: String(process.pid) }
    },
  },
  jobs: [{ name: 'tick', everySeconds: 0.05, async run() { appendFileSync('${folder}/ticks', process.pid + '\\n') } }],
}) })
`
const who = {
  ...wordProduct('who'),
  operations: {
    getWho: wordProduct('who').operations.getWord,
    buyWord: { ...wordProduct('who', { route: 'GET /v1/bought' }).operations.getWord, price: '0.005' },
    tryWord: wordProduct('who', { route: 'GET /v1/tried' }).operations.getWord,
  },
}
const PRICE = 5_000n
/** How long calls are counted, as docs/operations.md says. */
const WINDOW_MS = 10_000

/** Answers after a second with the process that answers. */
const SLOW = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'who', setup: ({ log }) => ({ handlers: { getWord: async () => {
  log.warn('a call has begun')
  await new Promise((wake) => setTimeout(wake, 1_000))
  return { word: String(process.pid) }
} } }) })
`

/** Holds the calls that begin while the file "slow" exists until the file "held" is gone. */
const HELD = (folder: string): string => `import { existsSync } from 'node:fs'
import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'who', setup: ({ log }) => ({ handlers: { getWord: async () => {
  if (existsSync('${folder}/slow')) {
    log.warn('a call has begun')
    while (existsSync('${folder}/held')) await new Promise((wake) => setTimeout(wake, 20))
  }
  return { word: String(process.pid) }
} } }) })
`

/** A plugin that loads only once a file exists, outside the folders that are watched. */
const LATE = (seed: string): string => `import { readFileSync } from 'node:fs'
import { definePlugin } from 'tollgate/plugin'
const word = readFileSync('${seed}', 'utf8')
export default definePlugin({ name: 'late', setup: () => ({ handlers: { getWord: () => ({ word }) } }) })
`

/** Does not open in the second process before the file "go" exists. */
const SECOND_WAITS = (folder: string): string => `import { existsSync, writeFileSync } from 'node:fs'
import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'who', async setup() {
  try {
    writeFileSync('${folder}/first', String(process.pid), { flag: 'wx' })
    writeFileSync('${folder}/primary', String(process.ppid))
  } catch {
    writeFileSync('${folder}/second', String(process.pid))
    while (!existsSync('${folder}/go')) await new Promise((wake) => setTimeout(wake, 20))
  }
  return { handlers: { getWord: () => ({ word: String(process.pid) }) } }
} })
`

interface Answer {
  readonly status: number
  readonly word: string
}

interface AskOptions {
  readonly agent?: Agent
  readonly headers?: Record<string, string>
  readonly timeoutMs?: number
}

/** Sends a request on a connection of its own, or on those of the agent. */
async function ask(url: string, options: AskOptions = {}): Promise<Answer> {
  const { agent = false, headers = {}, timeoutMs } = options
  const sent = httpRequest(url, { agent, headers, ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }) })
  sent.once('timeout', () => sent.destroy(new Error('no answer in time')))
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) text += chunk
  const { word = '' } = JSON.parse(text) as { word?: string }
  return { status: answer.statusCode ?? 0, word }
}

function isChainInstalled(): boolean {
  try {
    return anvilBinary() !== ''
  } catch {
    return false
  }
}

const DATABASES: Readonly<Record<string, () => Promise<Schema | null | 'none'>>> = {
  SQLite: async () => 'none',
  PostgreSQL: openSchema,
}

for (const [name, open] of Object.entries(DATABASES))
  describe(`two workers on ${name}`, function () {
    this.timeout(180_000)
    let folder: string
    let schema: Schema | null = null
    let running: Started
    let port: number
    let url: string
    const write = (file: string, content: unknown): void => {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content))
    }
    const ticks = (): string[] => readFileSync(join(folder, 'ticks'), 'utf8').split('\n').filter(Boolean)
    /** The processes that answer, with the number of calls that each took. */
    const answering = async (calls = 20): Promise<Map<string, number>> => {
      const counts = new Map<string, number>()
      for (let call = 0; call < calls; call++) {
        const { word } = await ask(`${url}/v1/who`)
        counts.set(word, (counts.get(word) ?? 0) + 1)
      }
      return counts
    }

    before(async function () {
      const opened = await open()
      if (opened === null || !isChainInstalled()) this.skip()
      schema = opened === 'none' ? null : opened
      folder = mkdtempSync(join(tmpdir(), 'tollgate-workers-'))
      write('catalog/service.json', SERVICE)
      write('catalog/who.json', who)
      write('catalog/late.json', wordProduct('late'))
      write('plugins/who/index.ts', WHO(folder))
      write('plugins/late/index.ts', LATE(join(folder, 'seed')))
      port = await freePort()
      url = `http://127.0.0.1:${port}`
      const { DATA_DIR, CATALOG_DIR, PLUGIN_DIRS, PORT } = environmentIn(folder, port) as Record<string, string>
      const database = schema ? { DATABASE_URL: schema.url } : {}
      const environment = { DATA_DIR, CATALOG_DIR, PLUGIN_DIRS, PORT, TRUSTED_PROXIES: PROXY_ADDRESS, ...database }
      running = await startGateway(/is open at/, environment as Record<string, string>, undefined, ['--workers', '2'])
    })
    after(async () => {
      await running?.stop()
      await schema?.drop()
      if (folder) rmSync(folder, { recursive: true, force: true })
    })

    it('both answer on one port, half of the connections each, and are announced once', async () => {
      const counts = await answering()
      expect(counts.size).to.equal(2)
      for (const count of counts.values()) expect(count).to.be.within(8, 12)
      expect(running.output().match(/is open at/g)).to.have.length(1)
      expect(running.output()).to.match(/^ {2}workers {2}2$/m)
      expect([...counts.keys()]).not.to.include(String(running.child.pid))
    })

    it('have no more threads of V8 than leave a core to each', async function () {
      if (process.platform !== 'linux') this.skip()
      for (const pid of (await answering()).keys()) {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        expect(command).to.include.members([...v8Flags(2, availableParallelism(), { execArgv: [], nodeOptions: '' })])
      }
    })

    it('settle a payment once that both get at the same time, and give the same answer', async () => {
      const {
        rpc_url: rpcUrl,
        pay_to: payTo,
        buyer,
      } = JSON.parse(readFileSync(join(folder, 'data/sandbox-sample/sandbox.json'), 'utf8'))
      const before = await balanceOf(rpcUrl, payTo)
      const header = await payment(`${url}/v1/bought`, privateKeyToAccount(buyer.private_key))
      const send = () => ask(`${url}/v1/bought`, { headers: { 'payment-signature': header } })
      const answers = await Promise.all(Array.from({ length: 12 }, send))
      const later = await Promise.all([send(), send()])
      const paid = [...answers, ...later].filter(({ status }) => status === 200)
      expect(new Set(paid.map(({ word }) => word)).size).to.equal(1)
      expect(later.map(({ status }) => status)).to.deep.equal([200, 200])
      expect([...new Set(answers.map(({ status }) => status))].filter((status) => status < 500)).to.deep.equal([200])
      expect(await balanceOf(rpcUrl, payTo)).to.equal(before + PRICE)
    })

    it('hold a caller to one limit', async () => {
      // Beyond the limit is what one of them admits before it has heard of the other. Alone, each would admit 600.
      const MOST = 900
      let admitted: Map<string, number>
      let total: number
      let began: number
      let caller = 0
      do {
        admitted = new Map()
        began = performance.now()
        caller += 1
        const headers = { 'x-forwarded-for': `198.51.100.${caller}` }
        let left = 1_200
        const client = async (): Promise<void> => {
          while (left-- > 0) {
            const { status, word } = await ask(`${url}/v1/who`, { headers })
            if (status === 200) admitted.set(word, (admitted.get(word) ?? 0) + 1)
            else expect(status).to.equal(429)
          }
        }
        await Promise.all(Array.from({ length: 8 }, client))
        total = [...admitted.values()].reduce((sum, calls) => sum + calls, 0)
        // On a busy machine the calls may take longer than the window: then the count begins anew.
      } while (total > MOST && performance.now() - began >= WINDOW_MS)
      expect(admitted.size).to.equal(2)
      expect(total).to.be.within(600, MOST)
    })

    it('pause an operation together that fails in one of them', async () => {
      const attempt = () => ask(`${url}/v1/tried`)
      const [broken = ''] = (await answering()).keys()
      write(`broken-${broken}`, '')
      const statuses: number[] = []
      while (statuses.filter((status) => status === 502).length < 5) statuses.push((await attempt()).status)
      expect(new Set(statuses)).to.deep.equal(new Set([200, 502]))
      const ms = await msUntil(async () =>
        (await Promise.all([attempt(), attempt()])).every(({ status }) => status === 503),
      )
      expect(ms, 'milliseconds until both pause it').to.be.lessThan(1_500)
    })

    it('run a job in one of them, and in another one when it has been killed and replaced', async () => {
      const before = await answering()
      await until(() => ticks().length > 20)
      const [holder = ''] = ticks()
      expect(new Set(ticks())).to.deep.equal(new Set([holder]))
      process.kill(Number(holder), 'SIGKILL')
      const killedAt = Date.now()
      await until(() => ticks().at(-1) !== holder)
      expect(Date.now() - killedAt, 'milliseconds until the job moved').to.be.lessThan(30_000)
      await until(async () => (await answering(4)).size === 2)
      const after = [...(await answering()).keys()]
      expect(after).to.have.length(2)
      expect(after.filter((pid) => before.has(pid))).to.deep.equal([...before.keys()].filter((pid) => pid !== holder))
    })

    it('share the connections that clients keep, also when one of them was killed and replaced', async () => {
      const agents = Array.from({ length: 20 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
      // Node may hand a connection to a worker that has just been killed. Nobody answers it then, so a client needs a timeout.
      const askAll = async (): Promise<readonly string[]> => {
        const asked = agents.map((agent) => ask(`${url}/v1/who`, { agent, timeoutMs: 2_000 }))
        return (await Promise.all(asked).catch(() => [])).map(({ word }) => word)
      }
      try {
        const [killed] = await askAll()
        process.kill(Number(killed), 'SIGKILL')
        // Its clients connect again at once, to the other one.
        await until(async () => (await askAll()).length > 0)
        await until(async () => (await answering(4)).size === 2)
        // A worker that has just started takes connections more slowly, so it may get fewer of them.
        await until(async () => new Set(await askAll()).size === 2)
      } finally {
        for (const agent of agents) agent.destroy()
      }
    })

    it('all reload on SIGHUP', async () => {
      const statuses = async () =>
        Promise.all(Array.from({ length: 10 }, async () => (await ask(`${url}/v1/late`)).status))
      expect(new Set(await statuses())).to.deep.equal(new Set([404]))
      write('seed', 'grown')
      running.child.kill('SIGHUP')
      await until(async () => (await statuses()).every((status) => status === 200))
    })

    /** Replaces all workers under a steady load to all of `urls`, and returns what went wrong at each. */
    async function replaceUnderLoad(urls: readonly string[]): Promise<readonly (readonly string[])[]> {
      const before = new Set((await answering()).keys())
      const replacements = (): number => running.output().match(/all workers were replaced/g)?.length ?? 0
      const earlier = replacements()
      const loads = urls.map((at) => ({ at, calls: 0, failures: [] as string[] }))
      let isOver = false
      const client = async (load: (typeof loads)[number]): Promise<void> => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 })
        while (!isOver) {
          const { status } = await ask(`${load.at}/v1/who`, { agent }).catch((error: Error) => ({
            status: error.message,
          }))
          load.calls += 1
          if (status !== 200) load.failures.push(String(status))
          await new Promise((wake) => setTimeout(wake, 5))
        }
        agent.destroy()
      }
      const clients = loads.flatMap((load) => Array.from({ length: 8 }, () => client(load)))
      const eachCalled = async (times: number): Promise<void> => {
        const then = loads.map(({ calls }) => calls)
        await until(() => loads.every(({ calls }, at) => calls > (then[at] ?? 0) + times))
      }
      await eachCalled(50)
      running.child.kill('SIGUSR2')
      await until(() => replacements() > earlier)
      await eachCalled(50)
      isOver = true
      await Promise.all(clients)
      const after = await answering()
      expect(after.size).to.equal(2)
      expect([...after.keys()].filter((pid) => before.has(pid))).to.deep.equal([])
      return loads.map((load) => load.failures)
    }

    const DIRECT = 'without a proxy'
    let replaced: Promise<ReadonlyMap<string, readonly string[]>> | undefined
    /** What went wrong on each way to the workers while all were replaced; nothing for a proxy that is not installed. */
    const failures = () => (replaced ??= replaceBehindProxies())

    /** Replaces the workers once under the load of all proxies, since each replacement starts two processes. */
    async function replaceBehindProxies(): Promise<ReadonlyMap<string, readonly string[]>> {
      const proxies = await Promise.all(
        Object.entries(REVERSE_PROXIES).map(async ([kind, setup]) => ({
          kind,
          proxy: await startReverseProxy(setup, port),
        })),
      )
      const ways = [
        { kind: DIRECT, url },
        ...proxies.flatMap(({ kind, proxy }) => (proxy ? [{ kind, url: proxy.url }] : [])),
      ]
      try {
        const found = await replaceUnderLoad(ways.map((way) => way.url))
        return new Map(ways.map(({ kind }, at) => [kind, found[at] ?? []]))
      } finally {
        for (const { proxy } of proxies) await proxy?.close()
      }
    }

    it('are replaced on SIGUSR2 without dropping a call', async () => {
      expect((await failures()).get(DIRECT)).to.deep.equal([])
    })

    for (const kind of Object.keys(REVERSE_PROXIES))
      it(`are replaced on SIGUSR2 without dropping a call behind ${kind}`, async function () {
        const lost = (await failures()).get(kind)
        if (lost === undefined) return this.skip()
        expect(lost).to.deep.equal([])
      })

    it('all end on SIGTERM, with the chain', async () => {
      const chain = JSON.parse(readFileSync(join(folder, 'data/sandbox-sample/chain/process.json'), 'utf8')) as {
        pid: number
      }
      const pids = [...(await answering()).keys()].map(Number)
      running.child.kill('SIGTERM')
      expect(await running.ended).to.equal(0)
      for (const pid of [...pids, chain.pid]) expect(await isAlive(pid), String(pid)).to.equal(false)
    })
  })

/**
 * Makes the folder of a gateway that sells one product at `url`, whose plugin may look for files in the folder. Its calls may
 * take as long as a worker needs to start on a busy machine.
 */
async function makeFolder(plugin: (folder: string) => string) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-workers-'))
  const port = await freePort()
  for (const part of ['catalog', 'plugins/who']) mkdirSync(join(folder, part), { recursive: true })
  writeFileSync(join(folder, 'catalog/service.json'), JSON.stringify(SERVICE))
  writeFileSync(join(folder, 'catalog/who.json'), JSON.stringify(wordProduct('who', { timeout_seconds: 120 })))
  writeFileSync(join(folder, 'plugins/who/index.ts'), plugin(folder))
  return { folder, port, url: `http://127.0.0.1:${port}/v1/who` }
}

/** Calls eight times at once. Returns the processes that answered. */
async function askEight(url: string): Promise<ReadonlySet<string>> {
  return new Set((await Promise.all(Array.from({ length: 8 }, () => ask(url)))).map(({ word }) => word))
}

describe('two workers whose primary is killed', function () {
  this.timeout(60_000)

  it('finish their calls and end', async () => {
    const { folder, port, url } = await makeFolder(() => SLOW)
    const settings = { ...environmentIn(folder, port), SETTLE_KEY: `${generatePrivateKey()} ${generatePrivateKey()}` }
    const running = await startGateway(/is open at/, settings, undefined, ['--workers', '2'])
    try {
      // The workers tell their primary of each caller. That must not fail when it is gone.
      const call = (nth: number) => ask(url, { headers: { 'x-forwarded-for': `198.51.100.${nth}` } })
      const calls = Array.from({ length: 20 }, (_, nth) => call(nth))
      await until(() => (running.output().match(/a call has begun/g)?.length ?? 0) === 20)
      running.child.kill('SIGKILL')
      const answers = await Promise.all(calls)
      expect(answers.map(({ status }) => status)).to.deep.equal(calls.map(() => 200))
      const pids = [...new Set(answers.map(({ word }) => Number(word)))]
      expect(pids).to.have.length(2)
      await until(async () => !(await Promise.all(pids.map(isAlive))).includes(true))
      expect(running.output()).not.to.match(/"level":[56]0/)
    } finally {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('a worker that dies while the one before it finishes its calls', function () {
  this.timeout(120_000)

  it('is started again', async () => {
    const { folder, port, url } = await makeFolder(HELD)
    for (const file of ['slow', 'held']) writeFileSync(join(folder, file), '')
    const keys = { SETTLE_KEY: `${generatePrivateKey()} ${generatePrivateKey()}`, LOG_LEVEL: 'info' }
    const running = await startGateway(/is open at/, { ...environmentIn(folder, port), ...keys }, undefined, [
      '--workers',
      '2',
    ])
    const answering = () => askEight(url)
    try {
      const held = Promise.all(Array.from({ length: 8 }, () => ask(url)))
      await until(() => (running.output().match(/a call has begun/g)?.length ?? 0) === 8)
      rmSync(join(folder, 'slow'))
      const before = await answering()
      expect(before.size).to.equal(2)
      running.child.kill('SIGUSR2')
      // Once a new worker answers and an old one does not, the old one only finishes its calls.
      const successor = await untilFound(async () => {
        const now = await answering()
        return now.size === 2 ? [...now].find((pid) => !before.has(pid)) : undefined
      })
      process.kill(Number(successor), 'SIGKILL')
      await until(() => running.output().includes('a worker has ended'))
      rmSync(join(folder, 'held'))
      expect(new Set((await held).map(({ word }) => word))).to.deep.equal(before)
      await until(() => running.output().includes('all workers were replaced'))
      await until(async () => {
        const after = [...(await answering())]
        return after.length === 2 && !after.some((pid) => before.has(pid) || pid === successor)
      })
    } finally {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('a worker that the system cannot start', function () {
  this.timeout(120_000)
  const { execPath } = process

  it('is started later, and the other one goes on', async () => {
    const { folder, port, url } = await makeFolder(HELD)
    // A program that is gone fails to start as one for which there are no processes or files left.
    const program = join(folder, 'node')
    copyFileSync(execPath, program)
    process.execPath = program
    const settings = { ...environmentIn(folder, port), SETTLE_KEY: `${generatePrivateKey()} ${generatePrivateKey()}` }
    const starting = startGateway(/is open at/, settings, undefined, ['--workers', '2'])
    process.execPath = execPath
    const running = await starting
    const answering = () => askEight(url)
    try {
      const before = [...(await answering())]
      expect(before).to.have.length(2)
      renameSync(program, `${program}-away`)
      process.kill(Number(before[0]), 'SIGKILL')
      await until(() => (running.output().match(/a worker could not be started/g)?.length ?? 0) >= 2)
      expect(running.output()).to.contain('ENOENT')
      expect([...(await answering())]).to.deep.equal([before[1]])
      renameSync(`${program}-away`, program)
      await until(async () => (await answering()).size === 2)
    } finally {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    }
    expect(await running.ended).to.equal(0)
  })
})

describe('two workers of which one takes longer to open', function () {
  this.timeout(60_000)
  let folder: string
  let url: string
  let starting: Promise<Started>
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
  /** Starts the gateway, and resolves when the second worker waits to be let on. */
  let start: () => Promise<void>
  beforeEach(async () => {
    let port: number
    ;({ folder, port, url } = await makeFolder(SECOND_WAITS))
    const keys = { SETTLE_KEY: `${generatePrivateKey()} ${generatePrivateKey()}` }
    const settings = { ...environmentIn(folder, port), ...keys }
    start = async () => {
      starting = startGateway(/is open at/, settings, undefined, ['--workers', '2'])
      starting.catch(() => {})
      await until(() => ['primary', 'second'].every((file) => existsSync(join(folder, file)) && read(file) !== ''))
    }
    await start()
  })
  afterEach(async () => {
    writeFileSync(join(folder, 'go'), '')
    await (await starting.catch(() => null))?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function expectToOpenTogether(): Promise<void> {
    for (let tries = 0; tries < 10; tries++)
      expect(await ask(url).catch(({ code }: NodeJS.ErrnoException) => code)).to.equal('ECONNREFUSED')
    writeFileSync(join(folder, 'go'), '')
    await starting
    const pids = [read('first'), read('second')]
    expect(await askEight(url)).to.deep.equal(new Set(pids))
  }

  it('accept calls together', () => expectToOpenTogether())

  it('accept calls together when there are data already', async () => {
    writeFileSync(join(folder, 'go'), '')
    await (await starting).stop()
    for (const file of ['first', 'second', 'primary', 'go']) rmSync(join(folder, file))
    await start()
    await expectToOpenTogether()
  })

  it('both end when the primary is killed meanwhile', async () => {
    const pids = [read('first'), read('second')].map(Number)
    process.kill(Number(read('primary')), 'SIGKILL')
    // A set-up that takes longer than 30 seconds is given up anyway.
    const ms = await msUntil(async () => !(await Promise.all(pids.map(isAlive))).includes(true))
    expect(ms, 'milliseconds until both have ended').to.be.lessThan(15_000)
  })
})

describe('the start of two workers', function () {
  this.timeout(120_000)
  let folder: string
  const start = async (environment: Readonly<Record<string, string>>, count = '2'): Promise<string> => {
    const started = startGateway(/is open at/, environment, undefined, ['--workers', count])
    return started.then(
      async (gateway) => {
        await gateway.stop()
        return 'it started'
      },
      (error: Error) => error.message,
    )
  }
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-workers-'))
    mkdirSync(join(folder, 'plugins'))
    mkdirSync(join(folder, 'catalog'))
    writeFileSync(join(folder, 'catalog/service.json'), JSON.stringify(SERVICE))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('ends with the error of the configuration', async () => {
    const { PAY_TO: _, ...environment } = environmentIn(folder, 4_021)
    expect(await start(environment)).to.match(/ended with 1:\nThe configuration is invalid:\n {2}- PAY_TO is missing/)
  })

  it('ends with the error of the first worker, if it cannot open', async () => {
    writeFileSync(join(folder, 'catalog/service.json'), '{')
    const settings = { ...environmentIn(folder, 4_021), SETTLE_KEY: `${generatePrivateKey()} ${generatePrivateKey()}` }
    const message = await start(settings)
    expect(message)
      .to.match(/ended with 1:/)
      .and.to.match(/service\.json/)
    expect(message.match(/service\.json/g), 'reported once').to.have.length(1)
  })

  it('asks for a gas key of each worker', async () => {
    expect(await start(environmentIn(folder, 4_021))).to.contain(
      'SETTLE_KEY: each of 2 workers pays gas with a key of its own, and 1 is given.',
    )
  })

  it('says how to write --workers if npm did not pass it on', async () => {
    const failure = startGateway(/is open at/, { ...environmentIn(folder, 4_021), npm_config_workers: '2' })
    const message = await failure.then(
      () => 'it started',
      (error: Error) => error.message,
    )
    expect(message).to.contain('npm did not pass --workers on. Write: npm start -- --workers 2')
  })

  it('is refused with a count that is not a number from 1 to 64', async () => {
    for (const count of ['0', 'two', '65', ''])
      expect(await start({}, count), count).to.contain('Start with --workers and a number from 1 to 64')
  })
})
