import { expect } from 'chai'
import { openPlace, type Place, SAYS, until, word } from './place.ts'

describe('plugin code, edited while the gateway runs', () => {
  let place: Place
  const said = async (path = '/v1/parrot'): Promise<unknown> => {
    const answer = await place.get(path)
    return answer.status === 200 ? ((await answer.json()) as { word: unknown }).word : answer.status
  }
  const says = (text: unknown, path?: string) => until(async () => (await said(path)) === text)

  beforeEach(async () => {
    place = await openPlace()
    place.plugin('parrot/index.ts', SAYS('parrot'))
    place.plugin('parrot/word.ts', `export const word = 'one'`)
  })
  afterEach(() => place.close())

  it('sleeps until a document names it, and wakes without a restart', async () => {
    await place.gateway.reload()
    expect(await said()).to.equal(404)
    place.catalog('parrot.json', word('parrot'))
    await says('one')
  })

  it('serves an edit of a module it imports, and the edit taken back', async () => {
    place.catalog('parrot.json', word('parrot'))
    await says('one')
    place.plugin('parrot/word.ts', `export const word = 'two'`)
    await says('two')
    place.plugin('parrot/word.ts', `export const word = 'one'`)
    await says('one')
  })

  it('goes on as it was while an edit does not load, and takes the mended one', async () => {
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

  it('is refused with file and line where it is no code, or imports what is not there', async () => {
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

  it('loads what failed for a reason outside, once the reason is gone', async () => {
    place.plugin('parrot/word.ts', `if (!globalThis.seed) throw new Error('no seed')\nexport const word = 'four'`)
    place.catalog('parrot.json', word('parrot'))
    await until(() => place.gateway.issues.length === 1)
    expect(await said()).to.equal(404)
    Object.assign(globalThis, { seed: true })
    await place.gateway.reload()
    expect(await said()).to.equal('four')
  })

  it('may use a folder beside it, and follows its edits', async () => {
    place.plugin('shared/noise.ts', `export const noise = 'squawk'`)
    place.plugin('parrot/word.ts', `export { noise as word } from '../shared/noise.ts'`)
    place.catalog('parrot.json', word('parrot'))
    await says('squawk')
    place.plugin('shared/noise.ts', `export const noise = 'screech'`)
    await says('screech')
  })

  it('reads files that lie beside it', async () => {
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

  it('may have packages and a package.json of its own', async () => {
    place.plugin('parrot/package.json', '{ "name": "parrot", "type": "commonjs" }')
    place.plugin('parrot/node_modules/cracker/package.json', '{ "name": "cracker", "main": "index.js" }')
    place.plugin('parrot/node_modules/cracker/index.js', `module.exports = 'crunch'`)
    place.plugin('parrot/word.ts', `import cracker from 'cracker'\nexport const word = cracker`)
    place.catalog('parrot.json', word('parrot'))
    await says('crunch')
  })

  it('lives in two releases at once', async () => {
    place.catalog('parrot.json', word('parrot'))
    place.plugin('parrot@2/index.ts', SAYS('parrot'))
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

  it('is not sold any more when its document is gone', async () => {
    place.catalog('parrot.json', word('parrot'))
    await says('one')
    place.remove('catalog', 'parrot.json')
    await says(404)
  })
})
