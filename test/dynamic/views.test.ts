import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openLiveGateway, type LiveGateway, root, until } from './live-gateway.ts'

const PAGE = (name: string, view: string) => ({
  product: name,
  title: name,
  summary: 'A page.',
  plugin: name,
  operations: { [`show${name}`]: { route: `GET /${name}`, summary: 'A page.', price: 'free', view, handler: 'show' } },
})
const SHOWS = (name: string, views = ''): string => `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: '${name}', ${views} setup: () => ({ handlers: { show: () => ({ word: 'tin' }) } }) })
`

describe('a view', () => {
  let place: LiveGateway
  let viewDir: string
  const shows = (path: string, text: string) => until(async () => (await (await place.get(path)).text()).includes(text))

  before(async () => {
    viewDir = mkdtempSync(join(tmpdir(), 'tollgate-views-'))
    cpSync(join(root, 'views'), viewDir, { recursive: true })
    writeFileSync(join(viewDir, 'word.pug'), 'p The word is #{word}.')
    place = await openLiveGateway({ config: { viewDir } })
    place.plugin('words/index.ts', SHOWS('words'))
    place.catalog('words.json', PAGE('words', 'word'))
    await shows('/words', 'The word is tin.')
  })
  after(async () => {
    await place.close()
    rmSync(viewDir, { recursive: true })
  })

  it('is rendered with an edit of itself or of a file that it includes, without a restart', async () => {
    writeFileSync(join(viewDir, 'word.pug'), 'include part\np It is #{word}.')
    writeFileSync(join(viewDir, 'part.pug'), 'p One part.')
    await shows('/words', 'It is tin.')
    expect(await (await place.get('/words')).text()).to.contain('One part.')
    writeFileSync(join(viewDir, 'part.pug'), 'p Another part.')
    await shows('/words', 'Another part.')
  })

  it('may come with its plugin, and never replaces a view of the gateway', async () => {
    place.plugin('own/index.ts', SHOWS('own', `views: new URL('./views', import.meta.url),`))
    place.plugin('own/views/card.pug', 'p Own: #{word}.')
    place.plugin('own/views/word.pug', 'p Stolen.')
    place.catalog('own.json', PAGE('own', 'card'))
    await shows('/own', 'Own: tin.')
    expect(await (await place.get('/words')).text()).to.contain('It is tin.')
    place.plugin('own/views/card.pug', 'p Own and new: #{word}.')
    await shows('/own', 'Own and new: tin.')
  })
})
