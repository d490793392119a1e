/** Products whose start takes longer than the timeout. They are added when they are ready. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { buy, json } from '../support/agent.ts'
import { gold, PRICED } from '../support/catalog.ts'
import { openLiveGateway, type LiveGateway, pluginSaying, until, word } from './live-gateway.ts'

describe('a product that is ready only after the timeout', () => {
  let folder: string
  let place: LiveGateway
  const file = (name: string): string => join(folder, name)
  const opened = (name: string): void => writeFileSync(file(name), '')
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
  const says = async (path: string): Promise<unknown> => {
    const answer = await place.get(path)
    return answer.status === 200 ? (await json(answer))['word'] : answer.status
  }
  const reasons = () => place.gateway.issues.map(({ rule, message }) => [rule, message])
  const LATE = /within 0\.2 seconds\. It is used as soon as it is ready; fix it if it hangs\.$/

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-late-'))
    place = await openLiveGateway({
      catalog: { 'gold.json': gold() },
      plugins: ['gold'],
      overrides: { setupSeconds: 0.2 },
    })
  })
  afterEach(async () => {
    await place.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('is added without a change of files once it is set up, and only once', async () => {
    place.plugin('slow/index.ts', slow('here', 'gate'))
    place.catalog('slow.json', word('slow'))
    await until(() => place.gateway.issues.length > 0)
    expect(reasons()[0]?.[1]).to.match(LATE)
    expect(await says('/v1/slow')).to.equal(404)
    expect((await buy(`${place.url}/v1/gold`, place.wallet)).status).to.equal(200)
    opened('gate')
    await until(async () => (await says('/v1/slow')) === 'here')
    expect(place.gateway.issues).to.deep.equal([])
    expect([readFileSync(file('begun'), 'utf8'), existsSync(file('stopped'))]).to.deep.equal(['.', false])
  })

  it('is added without a change of files once its code has loaded', async () => {
    place.plugin('slow/word.ts', `export const word = 'loaded'\n`)
    place.plugin('slow/index.ts', pluginSaying('slow', `${awaits('gate')}\nawait opened()\n`))
    place.catalog('slow.json', word('slow'))
    await until(() => place.gateway.issues.length > 0)
    expect(reasons()[0]?.[1]).to.match(LATE)
    opened('gate')
    await until(async () => (await says('/v1/slow')) === 'loaded')
  })

  it('is served as it was until its new code is set up', async () => {
    opened('one')
    place.plugin('slow/index.ts', slow('one', 'one'))
    place.catalog('slow.json', word('slow'))
    await until(async () => (await says('/v1/slow')) === 'one')
    place.plugin('slow/index.ts', slow('two', 'two'))
    await until(() => place.gateway.issues.length > 0)
    expect(await says('/v1/slow')).to.equal('one')
    opened('two')
    await until(async () => (await says('/v1/slow')) === 'two')
    await until(() => existsSync(file('stopped')))
  })

  it('is stopped if no document names it any more', async () => {
    place.plugin('slow/index.ts', slow('gone', 'gate'))
    place.catalog('slow.json', word('slow'))
    await until(() => place.gateway.issues.length > 0)
    place.remove('catalog/slow.json')
    await until(() => place.gateway.issues.length === 0)
    opened('gate')
    await until(() => existsSync(file('stopped')))
    expect(await says('/v1/slow')).to.equal(404)
  })

  it('keeps the reason in /health if its set-up fails in the end', async () => {
    place.plugin(
      'slow/index.ts',
      slow('x', 'gate').replace(
        'await opened()',
        `await opened(); appendFileSync('${file('failed')}', '.'); throw new Error('no')`,
      ),
    )
    place.catalog('slow.json', { ...word('slow', { response: PRICED }) })
    await until(() => place.gateway.issues.length > 0)
    opened('gate')
    await until(() => existsSync(file('failed')))
    // The gateway learns of the failure before it can answer this purchase.
    expect((await buy(`${place.url}/v1/gold`, place.wallet)).status).to.equal(200)
    expect(reasons()[0]?.[0]).to.equal('setup')
  })
})
