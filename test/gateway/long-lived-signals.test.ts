/** Signals that live as long as the process, which calls and jobs listen to, must not keep anything of what has ended. */
import { getEventListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { type LoopbackServer, startLoopbackServer } from '../support/loopback-server.ts'
import { until } from '../support/until.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const PLUGIN = `import { definePlugin, Reply } from 'tollgate/plugin'
export default definePlugin({
  name: 'courier',
  setup({ fetch, work, settings }) {
    const errand = async (ask, signal, more = {}) => {
      await ask('getWord', { params: {}, query: {}, body: undefined })
      await work(new URL('./double.ts', import.meta.url), 2, { signal, ...more })
      await (await fetch(settings.url, { signal })).text()
      await (await fetch(settings.url, { signal: AbortSignal.any([signal, AbortSignal.timeout(1_000)]) })).text()
    }
    let runs = 0
    return {
      handlers: {
        async getErrand(call) {
          await errand(call.ask, call.signal, { call })
          return { runs }
        },
        getRuns: () => ({ runs }),
        followErrands: ({ signal }) => Reply.events((async function* () {
          yield { id: '1', data: {} }
          signal.throwIfAborted()
        })()),
      },
      jobs: [{ name: 'errand', everySeconds: 0.005, async run({ ask, signal }) {
        await errand(ask, signal)
        runs += 1
      } }],
    }
  },
  settings: { type: 'object', properties: { url: { type: 'string' } } },
})
`
const WORD = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'word', setup: () => ({ handlers: { getWord: async () => ({ word: 'now' }) } }) })
`

const free = (path: string, more: object = {}) => ({
  route: `GET ${path}`,
  summary: 'An errand.',
  price: 'free',
  response: { type: 'object' },
  ...more,
})
const catalogOf = (url: string) => ({
  'word.json': {
    product: 'word',
    title: 'A word',
    summary: 'A word.',
    plugin: 'word',
    operations: { getWord: free('/v1/word') },
  },
  'courier.json': {
    product: 'courier',
    title: 'A courier',
    summary: 'Errands.',
    plugin: 'courier',
    uses: ['getWord'],
    settings: { url },
    operations: {
      getErrand: free('/v1/errand'),
      getRuns: free('/v1/runs'),
      followErrands: free('/v1/errands', { response: { type: 'string', contentMediaType: 'text/event-stream' } }),
    },
  },
})

/** Watches every controller that is created until it is closed. */
class Controllers {
  readonly #signals: WeakRef<AbortSignal>[] = []
  readonly #original = globalThis.AbortController

  constructor() {
    const signals = this.#signals
    globalThis.AbortController = class extends this.#original {
      constructor() {
        super()
        signals.push(new WeakRef(this.signal))
      }
    }
  }

  /** How many signals there are, and how many listeners and combined signals they know, once garbage is collected. */
  async count(): Promise<{ readonly signals: number; readonly followers: number }> {
    for (let turn = 0; turn < 4; turn += 1) {
      collectGarbage()
      await delay(20)
    }
    const living = this.#signals.flatMap((signal) => signal.deref() ?? [])
    return { signals: living.length, followers: living.reduce((sum, signal) => sum + followersOf(signal), 0) }
  }

  close(): void {
    globalThis.AbortController = this.#original
  }
}

/** The listeners of a signal, and the signals that AbortSignal.any has made of it, as far as Node remembers them. */
function followersOf(signal: AbortSignal): number {
  const key = Object.getOwnPropertySymbols(signal).find(({ description }) => description === 'kDependantSignals')
  const combined = key && (signal as unknown as Record<symbol, { readonly size: number } | undefined>)[key]
  return getEventListeners(signal, 'abort').length + (combined?.size ?? 0)
}

describe('the signals of a process', () => {
  let controllers: Controllers
  let server: LoopbackServer
  let shop: LiveGateway

  before(async () => {
    controllers = new Controllers()
    server = await startLoopbackServer(async (_, response) => void response.end('{}'))
    shop = await openLiveGateway({
      catalog: catalogOf(server.url),
      sources: {
        'courier/index.ts': PLUGIN,
        'courier/double.ts': 'export default (value) => value * 2\n',
        'word/index.ts': WORD,
      },
    })
    expect(shop.gateway.issues).to.deep.equal([])
  })
  after(async () => {
    await shop?.close()
    await server?.close()
    controllers.close()
  })

  it('are counted with what Node makes of them', () => {
    const { signal } = new AbortController()
    const combined = [AbortSignal.any([signal]), AbortSignal.any([signal])]
    signal.addEventListener('abort', () => {})
    expect([combined.length, followersOf(signal)]).to.deep.equal([2, 3])
  })

  it('keep no listener and no combined signal of calls, streams, questions, work and jobs that have ended', async () => {
    const runs = async (): Promise<number> => Number((await shop.json('/v1/runs'))['runs'])
    const round = async (count: number): Promise<void> => {
      const before = await runs()
      for (let at = 0; at < count; at += 1) {
        const answers = await Promise.all([shop.get('/v1/errand'), shop.get('/v1/errands')])
        expect(answers.map(({ status }) => status)).to.deep.equal([200, 200])
        await Promise.all(answers.map((answer) => answer.text()))
      }
      await until(async () => (await runs()) >= before + count)
    }
    await round(20)
    const few = await controllers.count()
    await round(100)
    const many = await controllers.count()
    expect(many.followers, 'listeners and combined signals').to.be.at.most(few.followers + 20)
    expect(many.signals, 'signals').to.be.at.most(few.signals + 20)
  })
})
