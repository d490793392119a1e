import { expect } from 'chai'
import { openLiveGateway, type LiveGateway, wordPlugin, wordProduct } from './live-gateway.ts'
import { until } from '../support/until.ts'

describe('plugin code in a running gateway', () => {
  let live: LiveGateway
  const wordOrStatus = async (path = '/v1/parrot'): Promise<unknown> => {
    const answer = await live.get(path)
    return answer.status === 200 ? ((await answer.json()) as { word: unknown }).word : answer.status
  }
  const untilAnswers = (text: unknown, path?: string) => until(async () => (await wordOrStatus(path)) === text)

  beforeEach(async () => {
    live = await openLiveGateway()
    live.writePlugin('parrot/index.ts', wordPlugin('parrot'))
    live.writePlugin('parrot/word.ts', `export const word = 'one'`)
  })
  afterEach(() => live.close())

  it('is loaded without a restart once a catalog document names the plugin, and not before', async () => {
    await live.gateway.reload()
    expect(await wordOrStatus()).to.equal(404)
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('one')
  })

  it('is reloaded when a module that it imports is edited, and again when the edit is undone', async () => {
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('one')
    live.writePlugin('parrot/word.ts', `export const word = 'two'`)
    await untilAnswers('two')
    live.writePlugin('parrot/word.ts', `export const word = 'one'`)
    await untilAnswers('one')
  })

  it('keeps serving its last working version while an edit does not load, and is replaced once the edit is fixed', async () => {
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('one')
    live.writePlugin('parrot/word.ts', `throw new Error('half done')\nexport const word = ''`)
    await until(() => live.gateway.current.disabled.length === 0 && live.gateway.issues.length === 1)
    expect(live.gateway.issues[0]).to.include({ file: 'parrot.json', pointer: '/plugin', rule: 'plugin' })
    expect(live.gateway.issues[0]?.message).to.match(/does not load: half done \(word\.ts:1:7\)$/)
    expect(await wordOrStatus()).to.equal('one')
    live.writePlugin('parrot/word.ts', `export const word = 'three'`)
    await untilAnswers('three')
    expect(live.gateway.issues).to.deep.equal([])
  })

  it('is refused with file and line if it has a syntax error or imports something that does not exist', async () => {
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('one')
    const issueFor = async (source: string): Promise<string> => {
      live.writePlugin('parrot/word.ts', source)
      await until(() => live.gateway.issues.length === 1)
      const issue = live.gateway.issues[0]?.message ?? ''
      live.writePlugin('parrot/word.ts', `export const word = 'one'`)
      await until(() => live.gateway.issues.length === 0)
      return issue
    }
    expect(await issueFor(`export const word = 'one'\nfunction (`)).to.match(
      /plugins\/parrot\/word\.ts:2:\d+: ERROR: Expected/,
    )
    expect(await issueFor(`export const words = 'one'`)).to.match(/export named 'word' \(index\.ts:2\)$/)
    expect(await issueFor(`export { word } from './lost.ts'`)).to.match(
      /Cannot find module .*plugins\/parrot\/lost\.ts/,
    )
  })

  it('is tried again at the next reload if it failed for a reason outside the code', async () => {
    live.writePlugin('parrot/word.ts', `if (!globalThis.seed) throw new Error('no seed')\nexport const word = 'four'`)
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await until(() => live.gateway.issues.length === 1)
    expect(await wordOrStatus()).to.equal(404)
    Object.assign(globalThis, { seed: true })
    await live.gateway.reload()
    expect(await wordOrStatus()).to.equal('four')
  })

  it('may import from a sibling folder, and is reloaded when that folder changes', async () => {
    live.writePlugin('shared/noise.ts', `export const noise = 'squawk'`)
    live.writePlugin('parrot/word.ts', `export { noise as word } from '../shared/noise.ts'`)
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('squawk')
    live.writePlugin('shared/noise.ts', `export const noise = 'screech'`)
    await untilAnswers('screech')
  })

  it('can read data files beside it, and sees when they change', async () => {
    live.writePlugin(
      'parrot/word.ts',
      `import { readFileSync } from 'node:fs'\nexport const word = readFileSync(new URL('./data/word.txt', import.meta.url), 'utf8')`,
    )
    live.writePlugin('parrot/data/word.txt', 'written')
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('written')
    live.writePlugin('parrot/data/word.txt', 'rewritten')
    await untilAnswers('rewritten')
  })

  it('may bring its own packages and package.json', async () => {
    live.writePlugin('parrot/package.json', '{ "name": "parrot", "type": "commonjs" }')
    live.writePlugin('parrot/node_modules/cracker/package.json', '{ "name": "cracker", "main": "index.js" }')
    live.writePlugin('parrot/node_modules/cracker/index.js', `module.exports = 'crunch'`)
    live.writePlugin('parrot/word.ts', `import cracker from 'cracker'\nexport const word = cracker`)
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('crunch')
  })

  it('can be served in two versions at the same time', async () => {
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    live.writePlugin('parrot@2/index.ts', wordPlugin('parrot'))
    live.writePlugin('parrot@2/word.ts', `export const word = 'second'`)
    const second = { ...wordProduct('parrot', {}, { product: 'parrot-2', plugin: 'parrot@2' }) }
    const { getWord } = second.operations
    live.writeCatalog('parrot-2.json', {
      ...second,
      operations: { getSecondWord: { ...getWord, route: 'GET /v1/parrot-2', handler: 'getWord' } },
    })
    await untilAnswers('second', '/v1/parrot-2')
    await untilAnswers('one')
  })

  it('is no longer served after its catalog document is removed', async () => {
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await untilAnswers('one')
    live.remove('catalog', 'parrot.json')
    await untilAnswers(404)
  })
})
