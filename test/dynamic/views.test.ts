import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openLiveGateway, type LiveGateway, root } from './live-gateway.ts'
import { until } from '../support/until.ts'

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

describe('the view of a page', () => {
  let live: LiveGateway
  let viewDir: string
  const untilShows = (path: string, text: string) =>
    until(async () => (await (await live.get(path)).text()).includes(text))

  before(async () => {
    viewDir = mkdtempSync(join(tmpdir(), 'tollgate-views-'))
    cpSync(join(root, 'views'), viewDir, { recursive: true })
    writeFileSync(join(viewDir, 'word.pug'), 'p The word is #{word}.')
    live = await openLiveGateway({ config: { viewDir } })
    live.writePlugin('words/index.ts', SHOWS('words'))
    live.writeCatalog('words.json', PAGE('words', 'word'))
    await untilShows('/words', 'The word is tin.')
  })
  after(async () => {
    await live.close()
    rmSync(viewDir, { recursive: true })
  })

  it('is updated without a restart when it or a file that it includes is edited', async () => {
    writeFileSync(join(viewDir, 'word.pug'), 'include part\np It is #{word}.')
    writeFileSync(join(viewDir, 'part.pug'), 'p One part.')
    await untilShows('/words', 'It is tin.')
    expect(await (await live.get('/words')).text()).to.contain('One part.')
    writeFileSync(join(viewDir, 'part.pug'), 'p Another part.')
    await untilShows('/words', 'Another part.')
  })

  it('may come with a plugin, and never replaces a view of the gateway', async () => {
    live.writePlugin('own/index.ts', SHOWS('own', `views: new URL('./views', import.meta.url),`))
    live.writePlugin('own/views/card.pug', 'p Own: #{word}.')
    live.writePlugin('own/views/word.pug', 'p Stolen.')
    live.writeCatalog('own.json', PAGE('own', 'card'))
    await untilShows('/own', 'Own: tin.')
    expect(await (await live.get('/words')).text()).to.contain('It is tin.')
    live.writePlugin('own/views/card.pug', 'p Own and new: #{word}.')
    await untilShows('/own', 'Own and new: tin.')
  })
})
