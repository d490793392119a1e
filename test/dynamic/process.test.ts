/** Tests of a real process: signals, unhandled rejections and uncaught errors. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { v8Flags } from '../../gateway/v8-flags.ts'
import { commandOf, familyOf } from '../support/process-family.ts'
import { gold, SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { environmentIn, startGateway, type Started } from '../support/process.ts'
import { wordProduct } from './live-gateway.ts'
import { until } from '../support/until.ts'

/** A plugin that loads only once a file exists. */
const WAITS = (seed: string): string => `import { readFileSync } from 'node:fs'
import { definePlugin } from 'tollgate/plugin'
const word = readFileSync('${seed}', 'utf8')
export default definePlugin({ name: 'late', setup: () => ({ handlers: { getWord: () => ({ word }) } }) })
`
/** A plugin that leaves a rejected promise behind. */
const LEAVES = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'careless', setup: () => ({ handlers: {
  getCare() {
    void Promise.reject(new Error('nobody waits for this'))
    return { word: 'done' }
  },
} }) })
`

/** A plugin that tries to end the process and to change what all code shares. */
const HOSTILE = `import { definePlugin, Reply } from 'tollgate/plugin'
const ways = {
  exit: () => process.exit(3),
  timer: () => void setTimeout(() => JSON.parse('thrown from a timer'), 1),
  pollute: () => Object.assign(Object.prototype, { spoilt: true }),
  status: () => new Reply({ word: 'x' }, { status: 99999 }),
  header: () => new Reply({ word: 'x' }, { headers: { 'a b': 'c' } }),
  line: () => new Reply({ word: 'x' }, { headers: { link: 'a\\r\\nb: c' } }),
  length: () => new Reply({ word: 'x' }, { headers: { 'Content-Length': '1' } }),
  receipt: () => new Reply({ word: 'x' }, { headers: { 'PAYMENT-RESPONSE': 'e30=' } }),
  hold: () => { const end = Date.now() + 1100; while (Date.now() < end); },
}
export default definePlugin({ name: 'hostile', setup: () => ({ handlers: {
  getHostility: ({ input }) => ways[input.params.way]() ?? { word: String({}.spoilt) },
} }) })
`
const hostile = {
  ...wordProduct('hostile'),
  operations: {
    getHostility: {
      ...wordProduct('hostile').operations.getWord,
      route: 'GET /v1/hostile/{way}',
      params: { type: 'object', properties: { way: { type: 'string' } } },
    },
  },
}

describe('a gateway process', () => {
  let folder: string
  let url: string
  let running: Started
  const write = (file: string, content: unknown): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content))
  }
  const get = async (path: string): Promise<number> => (await fetch(url + path)).status

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-process-'))
    const care = wordProduct('careless').operations.getWord
    write('catalog/service.json', SERVICE)
    write('catalog/files.json', {
      ...gold(),
      plugin: undefined,
      upstream: { url: 'http://127.0.0.1:9/' },
      operations: { getGold: gold().operations.getGold },
    })
    write('catalog/late.json', wordProduct('late'))
    write('catalog/careless.json', { ...wordProduct('careless'), operations: { getCare: care } })
    write('plugins/late/index.ts', WAITS(join(folder, 'seed')))
    write('plugins/careless/index.ts', LEAVES)
    write('catalog/hostile.json', hostile)
    write('plugins/hostile/index.ts', HOSTILE)
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    running = await startGateway(/is open at/, environmentIn(folder, port))
  })
  after(async () => {
    await running?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('has no more threads of V8 than leave a core to its event loop', function () {
    if (process.platform !== 'linux') this.skip()
    const flags = v8Flags(1, availableParallelism(), { execArgv: [], nodeOptions: '' })
    const commands = familyOf(running.child.pid as number).map((pid) => commandOf(pid).split('\0'))
    const [gateway] = commands.filter((command) => command.includes('gateway'))
    expect(gateway).to.include.members([...flags])
  })

  it('reloads on SIGHUP, for changes that it cannot watch, and keeps serving calls meanwhile', async () => {
    expect([await get('/v1/late'), await get('/v1/gold')]).to.deep.equal([404, 402])
    write('seed', 'grown')
    running.child.kill('SIGHUP')
    await until(async () => {
      expect(await get('/v1/gold')).to.equal(402)
      return (await get('/v1/late')) === 200
    })
  })

  it('logs file, pointer and rule of an error in the catalog, and keeps serving', async () => {
    write('catalog/x/tin.json', gold({ price: '0.0000001' }, { product: 'tin' }))
    const logLine = (): string | undefined =>
      running
        .output()
        .split('\n')
        .slice(0, -1)
        .find((text) => text.includes('x/tin.json') && text.includes('/operations/getGold/price'))
    await until(() => logLine() !== undefined)
    expect(JSON.parse(logLine() ?? '{}')).to.include({
      file: 'x/tin.json',
      pointer: '/operations/getGold/price',
      rule: 'pattern',
    })
    expect(await get('/v1/gold')).to.equal(402)
  })

  it('survives an unhandled rejection of a plugin, and logs it', async () => {
    expect(await get('/v1/careless')).to.equal(200)
    await until(() => running.output().includes('nobody waits for this'))
    expect([await get('/v1/careless'), await get('/v1/gold')]).to.deep.equal([200, 402])
  })

  it('survives an error that a plugin throws in a timer, and logs it', async () => {
    expect(await get('/v1/hostile/timer')).to.equal(200)
    await until(() => running.output().includes('uncaught error of a plugin'))
    expect([await get('/v1/hostile/timer'), await get('/v1/gold')]).to.deep.equal([200, 402])
  })

  it('cannot be ended by a plugin, and does not let a plugin change the prototype of all objects', async () => {
    for (const way of ['exit', 'pollute']) expect(await get(`/v1/hostile/${way}`), way).to.equal(502)
    expect(await (await fetch(`${url}/v1/careless`)).json()).to.deep.equal({ word: 'done' })
    expect(await get('/v1/gold')).to.equal(402)
  })

  it('never sends a malformed HTTP answer, or one with headers reserved for the gateway', async () => {
    // Five failures in a row would open its circuit breaker.
    const ways = ['timer', 'status', 'header', 'line', 'timer', 'length', 'receipt']
    for (const way of ways) expect(await get(`/v1/hostile/${way}`), way).to.equal(way === 'timer' ? 200 : 502)
  })

  it('logs the name of a handler that blocks all other calls', async () => {
    expect(await get('/v1/hostile/hold')).to.equal(200)
    await until(() => /"operation":"getHostility","ms":1\d\d\d,"msg":"a handler blocked/.test(running.output()))
  })
})
