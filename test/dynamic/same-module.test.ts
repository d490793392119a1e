import { expect } from 'chai'
import { json } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, wordProduct } from './live-gateway.ts'
import { until } from '../support/until.ts'

/** Returns the source of a plugin that throws errors of the public API, imported as `api`, and runs `context.work`. */
const plugin = (name: string, api: string): string => `import { definePlugin, Unavailable, ServiceError } from '${api}'

export default definePlugin({
  name: '${name}',
  setup: ({ work }) => ({
    handlers: {
      async getWord({ input }) {
        if (input.query.fail === 'unavailable') throw new Unavailable('Not yet.', 7)
        if (input.query.fail === 'gone') throw new ServiceError('not_found', 'It is gone.')
        return { word: await work(new URL('./repeat.ts', import.meta.url), { text: input.query.fail ?? 'la', times: 2 }) }
      },
    },
  }),
})
`
const repeat = (api: string): string => `import { InvalidInput } from '${api}'

export default function repeat({ text, times }: { text: string; times: number }): string {
  if (text === 'wrong') throw new InvalidInput('Must be sung.', ['query', 'fail'])
  return text.repeat(times)
}
`
const query = { type: 'object', properties: { fail: { type: 'string' } } }
const APIS = { lark: 'tollgate/plugin', wren: '#gateway' }

describe('the plugin API, in a plugin outside the project,', () => {
  let live: LiveGateway

  before(async () => {
    live = await openLiveGateway()
    for (const [name, api] of Object.entries(APIS)) {
      live.writePlugin(`${name}/index.ts`, plugin(name, api))
      live.writePlugin(`${name}/repeat.ts`, repeat(api))
      // The plugin is a package with another copy of the API in its node_modules.
      live.writePlugin(`${name}/package.json`, JSON.stringify({ name, imports: { '#gateway': './other.ts' } }))
      live.writePlugin(
        `${name}/node_modules/tollgate/package.json`,
        JSON.stringify({ name: 'tollgate', type: 'module', exports: { './plugin': './plugin.js' } }),
      )
      live.writePlugin(`${name}/node_modules/tollgate/plugin.js`, 'export class Unavailable extends Error {}')
      const { operations, ...product } = wordProduct(name, { query, handler: 'getWord' })
      live.writeCatalog(`${name}.json`, { ...product, operations: { [`${name}Word`]: operations.getWord } })
    }
  })
  after(() => live.close())

  for (const [name, api] of Object.entries(APIS))
    describe(`imported as ${api}`, () => {
      const call = (fail?: string) => live.get(`/v1/${name}${fail === undefined ? '' : `?fail=${fail}`}`)

      before(() => until(async () => (await call()).status === 200))

      it('is the one of the running gateway, so that its errors become the right answers', async () => {
        const unavailable = await call('unavailable')
        expect([unavailable.status, unavailable.headers.get('retry-after')]).to.deep.equal([503, '7'])
        expect(await json(unavailable)).to.include({ code: 'product_suspended', message: 'Not yet.' })
        const gone = await call('gone')
        expect(gone.status).to.equal(404)
        expect(await json(gone)).to.include({ code: 'not_found', message: 'It is gone.' })
      })

      it('runs context.work in a module beside the plugin, and keeps the type of an error thrown there', async () => {
        expect(await json(await call())).to.deep.equal({ word: 'lala' })
        const wrong = await call('wrong')
        expect(wrong.status).to.equal(422)
        expect(await json(wrong)).to.include({ code: 'validation_failed' })
      })
    })
})
