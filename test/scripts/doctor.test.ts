import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { diagnose, type Diagnosis } from '../../scripts/doctor/diagnose.ts'
import { openLiveGateway, type LiveGateway } from '../dynamic/live-gateway.ts'
import { openUpstreamServer } from '../dynamic/upstream-server.ts'
import { gold, PRICED, thing } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { on, PLANTED_FAULTS } from './planted-faults.ts'
import { openTamperingProxy, type TamperingProxy } from './tampering-proxy.ts'

const root = resolve(import.meta.dirname, '../..')
const DOCUMENTS = {
  ...(JSON.parse(readFileSync(join(root, 'catalog/documents.json'), 'utf8')) as object),
  settings: { docs: '/openapi.json' },
}
const OPERATOR_TOKEN = 'a-token-of-the-operator'
const faultsOf = ({ findings }: Diagnosis) => findings.filter(({ isFault }) => isFault)

describe('npm run doctor', () => {
  let live: LiveGateway
  let proxy: TamperingProxy

  before(async () => {
    proxy = await openTamperingProxy()
    const order = { type: 'object', required: ['grams'], properties: { grams: { type: 'number' } } }
    const example = { request: { body: { grams: 1 } }, response: { price: 1 } }
    live = await openLiveGateway({
      catalog: {
        'documents.json': DOCUMENTS,
        'gold.json': gold({ example: { request: {}, response: { price: 1900 } } }),
        'throws.json': thing('throws', { route: 'POST /v1/throws', body: order, response: PRICED, example }),
      },
      plugins: ['gold', 'throws'],
      environment: { BASE_URL: proxy.url, OPERATOR_TOKEN },
    })
    proxy.target = live.url
  })
  after(async () => {
    await live.close()
    await proxy.close()
  })

  it('finds nothing wrong with a healthy service', async () => {
    const diagnosis = await diagnose(proxy.url)
    expect(diagnosis.findings).to.deep.equal([])
    expect(diagnosis.looked).to.include({ routes: 2, documents: 9, tools: 2 })
  })

  for (const { title, tampering, rule, where } of PLANTED_FAULTS)
    it(`finds ${title}`, async () => {
      proxy.tampering = tampering
      const { findings } = await diagnose(proxy.url)
      proxy.tampering = () => {}
      const found = findings.filter((finding) => finding.rule === rule && finding.where.endsWith(where))
      expect(found, JSON.stringify(findings)).not.to.have.length(0)
      for (const { problem, fix, isFault } of found) {
        expect(isFault).to.equal(true)
        expect([problem, fix].every((text) => text.length > 5)).to.equal(true)
      }
    })

  it('says which operation is stale, for want of how many sources, since when, and what to do', async () => {
    proxy.tampering = PLANTED_FAULTS.find(({ rule }) => rule === 'stale')?.tampering ?? proxy.tampering
    const { findings } = await diagnose(proxy.url)
    proxy.tampering = () => {}
    const [stale, ...others] = findings.filter(({ where }) => where === '/health')
    expect(others).to.deep.equal([])
    expect(stale?.problem).to.match(
      /^GET \/v1\/gold is not sold.+1 of at least 2 sources.+from 2026-11-20T10:00:00.000Z.+1 source delivers data, 2 must/,
    )
    expect(stale?.fix).to.contain('source that fails')
  })

  it('reports the alarms to whoever has the token of the operator', async () => {
    const name = 'gas.above_price'
    proxy.tampering = on('/operator', (answer) => {
      if (answer.status !== 200) return
      const overview = JSON.parse(answer.body) as { alarms: unknown[] }
      overview.alarms.push({ name, message: 'getGold costs more', about: ['getGold'], since: '2026-11-20T10:00:00Z' })
      answer.body = JSON.stringify(overview)
    })
    const [told, untold, refused] = [
      await diagnose(proxy.url, proxy.url, OPERATOR_TOKEN),
      await diagnose(proxy.url),
      await diagnose(proxy.url, proxy.url, 'another-token-entirely').catch(String),
    ]
    proxy.tampering = () => {}
    const alarms = told.findings.filter(({ rule }) => rule === 'alarm')
    expect(alarms.map(({ problem }) => problem)).to.deep.equal([`The alarm ${name} is raised: getGold costs more`])
    expect(alarms[0]?.fix).to.contain('GAS_MAX_PERCENT')
    expect(untold.findings).to.deep.equal([])
    expect(JSON.stringify(refused)).to.contain('Answers 401 to OPERATOR_TOKEN')
  })

  it('finds no fault in our own catalog', async function () {
    // The first start computes the history, for as long as a busy machine takes.
    this.timeout(180_000)
    const own = await openLiveGateway({ own: true })
    try {
      // On a first start the history is not there yet, and what rests on it is not sold.
      await until(async () => (await own.json('/health'))['status'] === 'ok')
      const diagnosis = await diagnose(own.url)
      expect(faultsOf(diagnosis)).to.deep.equal([])
      expect(diagnosis.looked.routes).to.be.greaterThan(10)
    } finally {
      await own.close()
    }
  })

  describe('on the command line', () => {
    const run = async (...args: readonly string[]) => {
      const child = spawn(process.execPath, [join(root, 'scripts/tollgate.mjs'), 'doctor', ...args])
      let [stdout, stderr] = ['', '']
      child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
      const [code] = (await once(child, 'close')) as [number]
      return { code, stdout, stderr }
    }

    it('reports a healthy service and exits with 0', async () => {
      const { code, stdout } = await run(proxy.url)
      expect(stdout).to.match(/2 priced routes, 9 documents, 2 tools and \d+ links checked; no fault\./)
      expect(code).to.equal(0)
    })

    it('reports each fault with its fix and exits with 1, also as JSON', async () => {
      proxy.tampering = on('/v1/gold', ({ headers }) => delete headers['cache-control'])
      const [text, asJson] = [await run(proxy.url), await run(proxy.url, '--json')]
      proxy.tampering = () => {}
      expect([text.code, asJson.code]).to.deep.equal([1, 1])
      expect(text.stdout).to.match(/FAULT {2}GET \/v1\/gold: Its 402 may be cached\. \[cache\]\n +Send cache-control/)
      const { ok, findings } = JSON.parse(asJson.stdout) as { ok: boolean; findings: { rule: string }[] }
      expect([ok, findings.map(({ rule }) => rule)]).to.deep.equal([false, ['cache']])
    })

    it('checks a service from inside while buyers use another address', async () => {
      const gate = 'https://gate.example'
      const inner = await openLiveGateway({
        catalog: {
          'documents.json': DOCUMENTS,
          'gold.json': gold({ example: { request: {}, response: { price: 1 } } }),
        },
        plugins: ['gold'],
        environment: { BASE_URL: gate },
      })
      try {
        const withAs = await run(inner.url, '--as', gate)
        expect(withAs.stdout).to.contain('https://gate.example: 1 priced routes')
        expect([withAs.code, withAs.stdout.includes('FAULT')]).to.deep.equal([0, false])
        const withoutAs = await run(inner.url)
        expect(withoutAs.code).to.equal(1)
        expect(withoutAs.stdout).to.contain('add --as https://gate.example')
      } finally {
        await inner.close()
      }
    })

    it('reports an address that sells nothing over x402 with one finding, and exits with 1', async () => {
      const upstream = await openUpstreamServer()
      for (const answer of ['<h1>It works!</h1>', '{"openapi_version": 3}', '']) {
        upstream.answer = (response) => response.end(answer)
        expect((await diagnose(upstream.url)).findings.map(({ rule }) => rule)).to.deep.equal(['service'])
      }
      const { code, stdout } = await run(upstream.url)
      expect(code).to.equal(1)
      expect(stdout).to.match(/^FAULT .*: Sells nothing over x402: .*\n.*it is not Tollgate.*\n.*1 fault\.\n$/)
      await upstream.close()
    })

    it('exits with 2 if nothing answers or no address is given', async () => {
      const unreachable = await run(`http://127.0.0.1:${await freePort()}`)
      expect([unreachable.code, unreachable.stdout]).to.deep.equal([2, ''])
      expect((await run()).stderr).to.contain('npm run doctor -- https://')
    })
  })
})
