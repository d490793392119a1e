/** Tests of hooks in a running gateway: who may buy, who is told, and what a hook that fails can do. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Refusal, Sale, ScreenedPayment } from '../../gateway/plugin/plugin.ts'
import { CatalogError } from '../../gateway/validation/issue.ts'
import { useEditions } from '../gateway/products/edition-fixture.ts'
import { buy, json, payment, send } from '../support/agent.ts'
import { PLANS } from '../support/catalog.ts'
import { newWallet } from '../support/gateway.ts'
import { type LoopbackServer, startLoopbackServer } from '../support/loopback-server.ts'
import { until } from '../support/until.ts'
import { type LiveGateway, openLiveGateway, wordPlugin, wordProduct } from './live-gateway.ts'

/** What the hooks of a test share with it: they run in the same process. */
interface Board {
  screen: (payment: ScreenedPayment) => unknown
  settled: (sale: Sale) => unknown
  refused: (refusal: Refusal) => unknown
  stopped: string[]
}
const shared = globalThis as { board?: Board }

const SOURCES = {
  'parrot/index.ts': wordPlugin('parrot'),
  'parrot/word.ts': `export const word = 'one'`,
  'watch/index.ts': `import { defineHook } from 'tollgate/plugin'
export default defineHook({
  name: 'watch',
  settings: { type: 'object', properties: { sign: { type: 'string', default: 'none' } } },
  setup: ({ settings }) => ({
    screen: (payment) => globalThis.board.screen(payment),
    settled: (sale) => globalThis.board.settled(sale),
    refused: (refusal) => globalThis.board.refused(refusal),
    stop: async () => void globalThis.board.stopped.push(settings.sign),
  }),
})
`,
}
const PARROT = wordProduct('parrot', { price: '0.01', tool: true })
const CATALOG = {
  'parrot.json': PARROT,
  'plans.json': { ...PLANS, plans: [{ ...PLANS.plans[0], authorizes: ['getWord'] }] },
}
const watch = (fields: object = {}) => ({ hooks: [{ plugin: 'watch', ...fields }] })
const denyList = (settings: object, fields: object = {}) => ({
  hooks: [{ plugin: 'deny-list', settings, timeout_seconds: 20, ...fields }],
})

describe('hooks', () => {
  let live: LiveGateway
  let folder: string
  let board: Board

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-hooks-'))
    shared.board = board = { screen: () => ({ allow: true }), settled: () => {}, refused: () => {}, stopped: [] }
  })
  afterEach(async () => {
    await live?.close()
    rmSync(folder, { recursive: true, force: true })
    delete shared.board
  })

  const open = async (hooks: unknown, sources: Readonly<Record<string, string>> = SOURCES): Promise<void> => {
    live = await openLiveGateway({ catalog: { ...CATALOG, 'hooks.json': hooks }, sources })
  }
  const buyWord = (wallet = live.wallet): Promise<Response> => buy(`${live.url}/v1/parrot`, wallet)

  /** Expects that nothing was reserved, settled or charged. */
  async function expectUncharged(): Promise<void> {
    expect(live.settler.transfers).to.have.length(0)
    const counts = await live.gateway.journal.counts()
    expect(Object.values(counts).reduce((sum, each) => sum + each, 0)).to.equal(0)
  }

  describe('screen', () => {
    it('sees each payment once it is known to be good, and those that it allows are sold', async () => {
      const seen: ScreenedPayment[] = []
      board.screen = (payment) => {
        seen.push(payment)
        return { allow: true }
      }
      await open(watch())
      live.settler.next('refuse')
      expect((await buyWord()).status).to.equal(402)
      expect(seen).to.have.length(0)
      expect((await buyWord()).status).to.equal(200)
      expect(seen).to.have.length(1)
      expect(seen[0]).to.include({ amount: 10_000n, network: 'eip155:84532' })
      expect(seen[0]?.payer.toLowerCase()).to.equal(live.wallet.address.toLowerCase())
      expect(seen[0]?.operation.id).to.equal('getWord')
    })

    it('refuses over HTTP, over MCP and for plans, with a code and its own sentence, and nothing is charged', async () => {
      board.screen = () => ({ refuse: 'Not sold there.' })
      await open(watch())
      const expected = { code: 'payer_refused', retry: 'never', message: 'Not sold there. Nothing was charged.' }
      const answer = await buyWord()
      expect(answer.status).to.equal(403)
      expect(await json(answer)).to.include(expected)
      const plan = await buy(`${live.url}/v1/plans/live/24h`, live.wallet, 2, { method: 'POST' })
      expect(plan.status).to.equal(403)
      expect(await json(plan)).to.include(expected)
      const signed = await payment(`${live.url}/v1/parrot`, live.wallet)
      const params = { name: 'get_word', arguments: { payment_signature: signed } }
      const tool = await fetch(`${live.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      })
      expect(await tool.text()).to.contain('payer_refused')
      await expectUncharged()
    })

    it('gets no say over an answer that was bought before', async () => {
      await open(watch())
      const header = await payment(`${live.url}/v1/parrot`, live.wallet)
      expect((await send(`${live.url}/v1/parrot`, header)).status).to.equal(200)
      board.screen = () => ({ refuse: 'No.' })
      const again = await send(`${live.url}/v1/parrot`, header)
      expect([again.status, again.headers.get('idempotent-replay')]).to.deep.equal([200, 'true'])
    })

    const failures: Readonly<Record<string, () => unknown>> = {
      throws: () => {
        throw new Error('the list is gone')
      },
      hangs: () => new Promise(() => {}),
      'answers nonsense': () => ({ allow: 'perhaps' }),
    }
    for (const [how, fail] of Object.entries(failures)) {
      it(`that ${how} refuses the payment for the time being, and the same payment buys later`, async () => {
        board.screen = fail
        await open(watch({ timeout_seconds: 0.1 }))
        const header = await payment(`${live.url}/v1/parrot`, live.wallet)
        const answer = await send(`${live.url}/v1/parrot`, header)
        expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '10'])
        expect(await json(answer)).to.include({ code: 'screening_unavailable', retry: 'after_delay' })
        await expectUncharged()
        board.screen = () => ({ allow: true })
        expect((await send(`${live.url}/v1/parrot`, header)).status).to.equal(200)
      })

      it(`that ${how} lets the payment pass if it is to be open on failure`, async () => {
        board.screen = fail
        await open(watch({ timeout_seconds: 0.1, on_failure: 'open' }))
        expect((await buyWord()).status).to.equal(200)
      })
    }

    it('is told when its time is up', async () => {
      const reasons: unknown[] = []
      board.screen = ({ signal }) =>
        new Promise(() => signal.addEventListener('abort', () => reasons.push(String(signal.reason))))
      await open(watch({ timeout_seconds: 0.1 }))
      expect((await buyWord()).status).to.equal(503)
      expect(reasons).to.deep.equal(['Error: no answer within 0.1 seconds'])
    })
  })

  describe('settled and refused', () => {
    it('are told of what was sold and refused', async () => {
      const told: unknown[] = []
      board.settled = (sale) => told.push(sale)
      board.refused = (refusal) => told.push(refusal)
      await open(watch())
      expect((await buyWord()).status).to.equal(200)
      await until(() => told.length === 1)
      const [transfer] = live.settler.transfers
      const { wallet } = live
      expect(told[0]).to.include({ operation: 'getWord', amount: 10_000n, transaction: transfer?.transaction })
      board.screen = () => ({ refuse: 'No.' })
      expect((await buyWord()).status).to.equal(403)
      await until(() => told.length === 2)
      expect(told[1]).to.include({ operation: 'getWord', code: 'payer_refused', reason: null })
      for (const each of told as Sale[]) expect(each.payer.toLowerCase()).to.equal(wallet.address.toLowerCase())
      const unreadable = await send(`${live.url}/v1/parrot`, 'nonsense')
      expect(unreadable.status).to.equal(402)
      await until(() => told.length === 3)
      expect(told[2]).to.include({ code: 'payment_invalid', payer: null })
      expect((await live.get('/v1/parrot')).status).to.equal(402)
      expect(told).to.have.length(3)
    })

    it('hold up neither a call nor each other nor the end of the gateway if they throw or hang', async () => {
      let told = 0
      board.settled = () => {
        told += 1
        if (told === 1) throw new Error('no ink')
        return new Promise(() => {})
      }
      await open(watch({ timeout_seconds: 0.1 }))
      for (let nth = 0; nth < 12; nth++) expect((await buyWord()).status).to.equal(200)
      await until(() => told === 12)
    })
  })

  describe('a hook', () => {
    const refusing = (words: string): string => `import { defineHook } from 'tollgate/plugin'
export default defineHook({ name: 'watch', setup: () => ({ screen: () => ({ refuse: '${words}' }) }) })
`
    const messageOf = async (): Promise<unknown> => (await json(await buyWord()))['message']

    it('is replaced when its code or its settings change, and stopped then', async () => {
      await open(watch({ settings: { sign: 'first' } }))
      expect((await buyWord()).status).to.equal(200)
      live.writeCatalog('hooks.json', watch({ settings: { sign: 'second' } }))
      await until(() => board.stopped.join() === 'first')
      live.writeCatalog('hooks.json', watch())
      live.writePlugin('watch/index.ts', refusing('Since today.'))
      await until(async () => (await messageOf()) === 'Since today. Nothing was charged.')
      live.remove('catalog', 'hooks.json')
      await until(async () => (await buyWord()).status === 200)
    })

    it('with an error stays as it was, and nothing else changes until the error is gone', async () => {
      await open(watch(), { ...SOURCES, 'watch/index.ts': refusing('Closed.') })
      live.writePlugin('watch/index.ts', 'this is no code')
      await until(() => live.gateway.issues.length > 0)
      expect(live.gateway.issues[0]).to.include({ file: 'hooks.json', pointer: '/hooks/0/plugin', rule: 'plugin' })
      expect(await messageOf()).to.equal('Closed. Nothing was charged.')
      live.writePlugin('watch/index.ts', refusing('Still closed.'))
      await until(async () => (await messageOf()) === 'Still closed. Nothing was charged.')
      expect(live.gateway.issues).to.deep.equal([])
    })

    const faults: Readonly<Record<string, readonly [hooks: unknown, source: string, message: RegExp]>> = {
      'is not there': [{ hooks: [{ plugin: 'nobody' }] }, '', /There is no plugin nobody/],
      'has wrong settings': [denyList({ refresh_seconds: 5, message: '' }), '', /at least/],
      'throws in setup': [
        watch(),
        `export default { name: 'watch', setup: () => { throw new Error('no key') } }`,
        /The hook watch could not be set up: no key/,
      ],
      'is a product': [
        { hooks: [{ plugin: 'parrot' }] },
        '',
        /The hook parrot has returned neither screen nor settled nor refused/,
      ],
    }
    for (const [how, [hooks, source, message]] of Object.entries(faults))
      it(`that ${how} leaves everything as it was, and says why`, async () => {
        board.screen = () => ({ refuse: 'Closed.' })
        await open(watch())
        if (source !== '') live.writePlugin('watch/index.ts', source)
        live.writeCatalog('hooks.json', hooks)
        await until(() => live.gateway.issues.length > 0)
        expect(live.gateway.issues[0]?.file).to.equal('hooks.json')
        expect(live.gateway.issues[0]?.message).to.match(message)
        expect(await messageOf()).to.equal('Closed. Nothing was charged.')
      })

    describe('that cannot be set up', () => {
      const editions = useEditions()

      it('keeps the gateway from starting, because nobody may buy whom it keeps out', async () => {
        const failed = await editions.open({ 'hooks.json': { hooks: [{ plugin: 'nobody' }] } }).then(
          () => null,
          (error: unknown) => error,
        )
        expect(failed).to.be.instanceOf(CatalogError)
        expect(String(failed)).to.contain('hooks.json').and.to.contain('There is no plugin nobody')
      })
    })
  })

  describe('the deny list', () => {
    const listed = newWallet()
    const statusOf = async (wallet = listed): Promise<number> => (await buyWord(wallet)).status

    it('refuses the addresses of a file, in any case, and follows its changes', async () => {
      const file = join(folder, 'denied.txt')
      writeFileSync(file, `# nobody yet\n`)
      await open(denyList({ file, message: 'Ask us first.' }))
      expect(await statusOf()).to.equal(200)
      writeFileSync(
        file,
        `# from the bank\n${newWallet().address}\n${listed.address.toUpperCase().replace('X', 'x')} # theirs\n`,
      )
      await until(async () => (await statusOf()) === 403)
      expect((await json(await buyWord(listed)))['message']).to.equal('Ask us first. Nothing was charged.')
      expect(await statusOf(live.wallet)).to.equal(200)
      // A file that is being written, or is gone, leaves the last good list.
      writeFileSync(file, '')
      await until(async () => (await statusOf(live.wallet)) === 200)
      expect(await statusOf()).to.equal(403)
      writeFileSync(`${file}.next`, '# cleared\n')
      renameSync(`${file}.next`, file)
      await until(async () => (await statusOf()) === 200)
    })

    it('sells to nobody while its file cannot be read, or to everybody if it is to be open', async () => {
      const file = join(folder, 'denied.txt')
      await open(denyList({ file }))
      expect(await statusOf()).to.equal(503)
      await expectUncharged()
      live.writeCatalog('hooks.json', denyList({ file }, { on_failure: 'open' }))
      await until(async () => (await statusOf()) === 200)
      writeFileSync(file, listed.address)
      await until(async () => (await statusOf()) === 403)
    })

    it('keeps two processes to the same file', async () => {
      const file = join(folder, 'denied.txt')
      writeFileSync(file, '# nobody yet\n')
      await open(denyList({ file }))
      const other = await openLiveGateway({
        catalog: { ...CATALOG, 'hooks.json': denyList({ file }) },
        sources: SOURCES,
      })
      try {
        writeFileSync(file, listed.address)
        for (const { url } of [live, other])
          await until(async () => (await buy(`${url}/v1/parrot`, listed)).status === 403)
      } finally {
        await other.close()
      }
    })

    describe('at an address', () => {
      let server: LoopbackServer
      let content: string | number
      let requests: number

      beforeEach(async () => {
        requests = 0
        server = await startLoopbackServer(async (_request, response) => {
          requests += 1
          if (typeof content === 'number') response.writeHead(content).end(listed.address)
          else response.end(content)
        })
      })
      afterEach(() => server.close())

      it('is fetched again at intervals, and its last good list counts while it fails', async () => {
        content = JSON.stringify([newWallet().address])
        await open(denyList({ url: server.url, refresh_seconds: 1 }))
        expect(await statusOf()).to.equal(200)
        content = JSON.stringify([listed.address])
        await until(async () => (await statusOf()) === 403)
        for (const broken of [500, '<html>Moved</html>', `# ${' '.repeat(5_000_001)}`]) {
          content = broken
          const before = requests
          await until(() => requests > before + 1)
          expect(await statusOf()).to.equal(403)
        }
        content = '# cleared'
        await until(async () => (await statusOf()) === 200)
      })

      it('sells to nobody before it was fetched once', async () => {
        content = 404
        await open(denyList({ url: server.url, refresh_seconds: 1 }))
        expect(await statusOf(live.wallet)).to.equal(503)
        await expectUncharged()
        content = '# nobody'
        await until(async () => (await statusOf(live.wallet)) === 200)
      })
    })
  })
})
