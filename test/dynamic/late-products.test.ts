/** Products that take longer than the timeout to start. They are added when they are ready. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { buy, json } from '../support/agent.ts'
import { gold, PRICED } from '../support/catalog.ts'
import { openLiveGateway, type LiveGateway, wordPlugin, wordProduct } from './live-gateway.ts'
import { until } from '../support/until.ts'

describe('a product that takes longer than the timeout to start', () => {
  let folder: string
  let live: LiveGateway
  const file = (name: string): string => join(folder, name)
  const openGate = (name: string): void => writeFileSync(file(name), '')
  /** Source of `opened()`, which notes that it was called and resolves once a file exists. */
  const awaits = (name: string): string => `
import { existsSync, appendFileSync } from 'node:fs'
const opened = async () => {
  appendFileSync('${file('begun')}', '.')
  while (!existsSync('${file(name)}')) await new Promise((wake) => setTimeout(wake, 10))
}
`
  /** A plugin that is set up once a file exists, and writes another file when it is stopped. */
  const slow = (text: string, gate: string): string => `import { definePlugin } from 'tollgate/plugin'
${awaits(gate)}
export default definePlugin({
  name: 'slow',
  async setup() {
    await opened()
    return { handlers: { getWord: () => ({ word: '${text}' }) }, stop: async () => appendFileSync('${file('stopped')}', '.') }
  },
})
`
  const wordOrStatus = async (path: string): Promise<unknown> => {
    const answer = await live.get(path)
    return answer.status === 200 ? (await json(answer))['word'] : answer.status
  }
  const reasons = () => live.gateway.issues.map(({ rule, message }) => [rule, message])
  const LATE = /within 0\.2 seconds\. It is used as soon as it is ready; fix it if it hangs\.$/

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-late-'))
    live = await openLiveGateway({
      catalog: { 'gold.json': gold() },
      plugins: ['gold'],
      overrides: { setupSeconds: 0.2 },
    })
    // On a slow machine gold is late too.
    await until(() => live.gateway.issues.length === 0)
  })
  afterEach(async () => {
    await live.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('goes on sale by itself when its set-up completes, and is set up only once', async () => {
    live.writePlugin('slow/index.ts', slow('here', 'gate'))
    live.writeCatalog('slow.json', wordProduct('slow'))
    await until(() => live.gateway.issues.length > 0)
    expect(reasons()[0]?.[1]).to.match(LATE)
    expect(await wordOrStatus('/v1/slow')).to.equal(404)
    expect((await buy(`${live.url}/v1/gold`, live.wallet)).status).to.equal(200)
    openGate('gate')
    await until(async () => (await wordOrStatus('/v1/slow')) === 'here')
    expect(live.gateway.issues).to.deep.equal([])
    expect([readFileSync(file('begun'), 'utf8'), existsSync(file('stopped'))]).to.deep.equal(['.', false])
  })

  it('goes on sale by itself when its code has loaded', async () => {
    live.writePlugin('slow/word.ts', `export const word = 'loaded'\n`)
    live.writePlugin('slow/index.ts', wordPlugin('slow', `${awaits('gate')}\nawait opened()\n`))
    live.writeCatalog('slow.json', wordProduct('slow'))
    await until(() => live.gateway.issues.length > 0)
    expect(reasons()[0]?.[1]).to.match(LATE)
    openGate('gate')
    await until(async () => (await wordOrStatus('/v1/slow')) === 'loaded')
  })

  it('keeps serving its old version until its new code is set up', async () => {
    openGate('one')
    live.writePlugin('slow/index.ts', slow('one', 'one'))
    live.writeCatalog('slow.json', wordProduct('slow'))
    await until(async () => (await wordOrStatus('/v1/slow')) === 'one')
    live.writePlugin('slow/index.ts', slow('two', 'two'))
    await until(() => live.gateway.issues.length > 0)
    expect(await wordOrStatus('/v1/slow')).to.equal('one')
    openGate('two')
    await until(async () => (await wordOrStatus('/v1/slow')) === 'two')
    await until(() => existsSync(file('stopped')))
  })

  it('is stopped if its catalog document was removed in the meantime', async () => {
    live.writePlugin('slow/index.ts', slow('gone', 'gate'))
    live.writeCatalog('slow.json', wordProduct('slow'))
    await until(() => live.gateway.issues.length > 0)
    live.remove('catalog/slow.json')
    await until(() => live.gateway.issues.length === 0)
    openGate('gate')
    await until(() => existsSync(file('stopped')))
    expect(await wordOrStatus('/v1/slow')).to.equal(404)
  })

  it('goes on sale by itself when its set-up failed and what it needs is there again', async () => {
    live.writePlugin(
      'slow/index.ts',
      slow('back', 'gate').replace(
        'await opened()',
        `if (!existsSync('${file('gate')}')) throw new Error('the source is away')`,
      ),
    )
    live.writeCatalog('slow.json', wordProduct('slow'))
    await until(() => live.gateway.issues.length > 0)
    expect(reasons()).to.deep.equal([['setup-failed', 'The plugin slow could not be set up: the source is away']])
    expect(await wordOrStatus('/v1/slow')).to.equal(404)
    // Until the changes of the files have been seen: each of them is a try too.
    await new Promise((wake) => setTimeout(wake, 3_000))
    openGate('gate')
    await until(async () => (await wordOrStatus('/v1/slow')) === 'back')
    expect(live.gateway.issues).to.deep.equal([])
  })

  it('stays reported as failed if its set-up fails in the end', async () => {
    live.writePlugin(
      'slow/index.ts',
      slow('x', 'gate').replace(
        'await opened()',
        `await opened(); appendFileSync('${file('failed')}', '.'); throw new Error('no')`,
      ),
    )
    live.writeCatalog('slow.json', { ...wordProduct('slow', { response: PRICED }) })
    await until(() => live.gateway.issues.length > 0)
    openGate('gate')
    await until(() => existsSync(file('failed')))
    // The gateway learns of the failure before it can answer this purchase.
    expect((await buy(`${live.url}/v1/gold`, live.wallet)).status).to.equal(200)
    expect(reasons()[0]?.[0]).to.equal('setup')
  })
})
