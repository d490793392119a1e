import { expect } from 'chai'
import { openLiveGateway, type LiveGateway, pluginSaying, until, word } from './live-gateway.ts'

describe('plugin code, edited while the gateway runs', () => {
  let place: LiveGateway
  const said = async (path = '/v1/parrot'): Promise<unknown> => {
    const answer = await place.get(path)
    return answer.status === 200 ? ((await answer.json()) as { word: unknown }).word : answer.status
  }
  const says = (text: unknown, path?: string) => until(async () => (await said(path)) === text)

  beforeEach(async () => {
    place = await openLiveGateway()
    place.plugin('parrot/index.ts', pluginSaying('parrot'))
    place.plugin('parrot/word.ts', `export const word = 'one'`)
  })
  afterEach(() => place.close())

  it('is not imported until a document names it, and then works without a restart', async () => {
    await place.gateway.reload()
    expect(await said()).to.equal(404)
    place.catalog('parrot.json', word('parrot'))
    await says('one')
  })

  it('is served with an edit of a module that it imports, and after the edit is undone', async () => {
    place.catalog('parrot.json', word('parrot'))
    await says('one')
    place.plugin('parrot/word.ts', `export const word = 'two'`)
    await says('two')
    place.plugin('parrot/word.ts', `export const word = 'one'`)
    await says('one')
  })

  it('is served as it was while an edit does not load, and is replaced once the edit is fixed', async () => {
    place.catalog('parrot.json', word('parrot'))
    await says('one')
    place.plugin('parrot/word.ts', `throw new Error('half done')\nexport const word = ''`)
    await until(() => place.gateway.current.disabled.length === 0 && place.gateway.issues.length === 1)
    expect(place.gateway.issues[0]).to.include({ file: 'parrot.json', pointer: '/plugin', rule: 'plugin' })
    expect(place.gateway.issues[0]?.message).to.match(/does not load: half done \(word\.ts:1:7\)$/)
    expect(await said()).to.equal('one')
    place.plugin('parrot/word.ts', `export const word = 'three'`)
    await says('three')
    expect(place.gateway.issues).to.deep.equal([])
  })

  it('is refused with file and line if it has a syntax error or imports a missing module', async () => {
    place.catalog('parrot.json', word('parrot'))
    await says('one')
    const message = async (source: string): Promise<string> => {
      place.plugin('parrot/word.ts', source)
      await until(() => place.gateway.issues.length === 1)
      const told = place.gateway.issues[0]?.message ?? ''
      place.plugin('parrot/word.ts', `export const word = 'one'`)
      await until(() => place.gateway.issues.length === 0)
      return told
    }
    expect(await message(`export const word = 'one'\nfunction (`)).to.match(
      /plugins\/parrot\/word\.ts:2:\d+: ERROR: Expected/,
    )
    expect(await message(`export const words = 'one'`)).to.match(/export named 'word' \(index\.ts:2\)$/)
    expect(await message(`export { word } from './lost.ts'`)).to.match(/Cannot find module .*plugins\/parrot\/lost\.ts/)
  })

  it('is loaded again after a failure whose cause was outside the code', async () => {
    place.plugin('parrot/word.ts', `if (!globalThis.seed) throw new Error('no seed')\nexport const word = 'four'`)
    place.catalog('parrot.json', word('parrot'))
    await until(() => place.gateway.issues.length === 1)
    expect(await said()).to.equal(404)
    Object.assign(globalThis, { seed: true })
    await place.gateway.reload()
    expect(await said()).to.equal('four')
  })

  it('may import a sibling folder, and is reloaded if that changes', async () => {
    place.plugin('shared/noise.ts', `export const noise = 'squawk'`)
    place.plugin('parrot/word.ts', `export { noise as word } from '../shared/noise.ts'`)
    place.catalog('parrot.json', word('parrot'))
    await says('squawk')
    place.plugin('shared/noise.ts', `export const noise = 'screech'`)
    await says('screech')
  })

  it('can read the files beside it', async () => {
    place.plugin(
      'parrot/word.ts',
      `import { readFileSync } from 'node:fs'\nexport const word = readFileSync(new URL('./data/word.txt', import.meta.url), 'utf8')`,
    )
    place.plugin('parrot/data/word.txt', 'written')
    place.catalog('parrot.json', word('parrot'))
    await says('written')
    place.plugin('parrot/data/word.txt', 'rewritten')
    await says('rewritten')
  })

  it('may have its own packages and package.json', async () => {
    place.plugin('parrot/package.json', '{ "name": "parrot", "type": "commonjs" }')
    place.plugin('parrot/node_modules/cracker/package.json', '{ "name": "cracker", "main": "index.js" }')
    place.plugin('parrot/node_modules/cracker/index.js', `module.exports = 'crunch'`)
    place.plugin('parrot/word.ts', `import cracker from 'cracker'\nexport const word = cracker`)
    place.catalog('parrot.json', word('parrot'))
    await says('crunch')
  })

  it('can be served in two versions at once', async () => {
    place.catalog('parrot.json', word('parrot'))
    place.plugin('parrot@2/index.ts', pluginSaying('parrot'))
    place.plugin('parrot@2/word.ts', `export const word = 'second'`)
    const second = { ...word('parrot', {}, { product: 'parrot-2', plugin: 'parrot@2' }) }
    const { getWord } = second.operations
    place.catalog('parrot-2.json', {
      ...second,
      operations: { getSecondWord: { ...getWord, route: 'GET /v1/parrot-2', handler: 'getWord' } },
    })
    await says('second', '/v1/parrot-2')
    await says('one')
  })

  it('is no longer sold after its document is removed', async () => {
    place.catalog('parrot.json', word('parrot'))
    await says('one')
    place.remove('catalog', 'parrot.json')
    await says(404)
  })
})
