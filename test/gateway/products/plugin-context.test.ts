import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { parseReplayShift } from '../../../gateway/config/config.ts'
import { createContext, createProgress, deploymentSettings } from '../../../gateway/products/plugin-context.ts'
import { Unavailable, type WorkOptions } from '../../../gateway/plugin/plugin.ts'
import { createWorkerPool } from '../../../gateway/workers/pool.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { openKv } from '../../../gateway/stores/kv.ts'
import { openLocalKeys } from '../../../gateway/tokens/statement-signer.ts'

const db = openDatabase({ file: ':memory:' })
const kv = openKv(null)
const workers = createWorkerPool()
const { attestations } = await openLocalKeys(null, null)
const config = { dataMode: 'sample', replayDir: null, replayShift: parseReplayShift('auto') } as const

function contextOf(plugin: string, product: string) {
  const now = () => new Date(0)
  return createContext({
    config,
    plugin,
    product,
    settings: {},
    db,
    kv,
    work: workers.work,
    attestations,
    charged: async () => new Map(),
    log: createLog('silent'),
    now,
  })
}

describe('the context of a plugin', () => {
  after(() => db.destroy())

  it('keeps the cache keys of two products apart', async () => {
    await contextOf('gold', 'gold').kv.set('price', 1900)
    expect(await contextOf('gold', 'gold').kv.get('price')).to.equal(1900)
    expect(await contextOf('gold', 'gold-2').kv.get('price')).to.equal(undefined)
  })

  it('passes on how recorded times are moved, as it was configured and in seconds', () => {
    const shiftIn = (setting: string) => {
      const replayShift = parseReplayShift(setting)
      return deploymentSettings({ dataMode: 'replay', replayDir: '/recordings', replayShift })
    }
    const common = { data_mode: 'replay', replay_dir: '/recordings' }
    expect(shiftIn('frozen')).to.deep.equal({ ...common, replay_shift: 'frozen' })
    expect(shiftIn('-60')).to.deep.equal({ ...common, replay_shift: '-60', replay_shift_seconds: '-60' })
    expect(shiftIn('none')).to.deep.equal({ ...common, replay_shift: 'none', replay_shift_seconds: '0' })
  })

  it('fetches with our user agent, and stops when the caller aborts', async () => {
    const seen: IncomingHttpHeaders[] = []
    const server = createServer((request, response) => {
      seen.push(request.headers)
      if (request.url === '/') response.end('here')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { fetch } = contextOf('gold', 'gold')
    const response = await fetch(url, { headers: { accept: 'text/plain' } })
    expect(await response.text()).to.equal('here')
    expect(seen[0]).to.include({ 'user-agent': 'tollgate/0.1', accept: 'text/plain' })
    const aborted = await fetch(`${url}/slow`, { signal: AbortSignal.timeout(20) }).catch((error: unknown) => error)
    expect((aborted as Error).name).to.equal('TimeoutError')
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('work off the event loop', () => {
  after(() => workers.close())

  const work = <Out>(file: string, input: unknown, options?: WorkOptions): Promise<Out> =>
    contextOf('gold', 'gold').work<Out>(
      new URL(`../../fixtures/pure-functions/${file}`, import.meta.url),
      input,
      options,
    )

  it('runs the default export of a module on a copy of the input', async () => {
    const values = new Float64Array([1, 2, 3])
    expect(await work('sum.ts', values)).to.equal(6)
    expect([...values]).to.deep.equal([1, 2, 3])
  })

  it('moves a transferred buffer instead of copying it', async () => {
    const values = new Float64Array([1, 2, 3])
    expect(await work('sum.ts', values, { transfer: [values.buffer] })).to.equal(6)
    expect(values.length).to.equal(0)
  })

  it('rejects with the error that the function throws', async () => {
    const failure = await work('sum.ts', new Float64Array()).catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(Unavailable)
    expect((failure as Unavailable).status).to.equal(503)
  })

  it('rejects with the reason of the signal when it is aborted', async () => {
    const reason = new Error('the caller left')
    const options = { signal: AbortSignal.abort(reason) }
    expect(await work('sum.ts', new Float64Array(1), options).catch((error: unknown) => error)).to.equal(reason)
  })

  it('rejects a module without a function as its default export', async () => {
    const failure = await work('no-default.ts', 1).catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(TypeError)
    expect((failure as Error).message).to.match(/no-default\.ts has no function as its default export/)
  })
})

describe('progress', () => {
  function watch(isTTY: boolean) {
    const written: string[] = []
    const logged: string[] = []
    const log = { info: (_: unknown, line: string) => void logged.push(line) } as never
    return {
      written,
      logged,
      progress: createProgress(log, 'bars', 200, { isTTY, write: (text) => written.push(text) }),
    }
  }

  it('is shown in one line on a terminal', () => {
    const { written, logged, progress } = watch(true)
    progress.advance(1)
    progress.advance(1)
    progress.advance(198)
    progress.end()
    expect(written).to.deep.equal(['\rbars 0%\u001b[K', '\rbars 1%\u001b[K', '\rbars 100%\u001b[K', '\n'])
    expect(logged).to.deep.equal([])
  })

  it('is logged once for each tenth without a terminal', () => {
    const { written, logged, progress } = watch(false)
    for (let bar = 0; bar < 200; bar += 1) progress.advance(1)
    progress.end()
    expect(logged).to.deep.equal([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100].map((percent) => `bars ${percent}%`))
    expect(written).to.deep.equal([])
  })
})
