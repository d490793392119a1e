import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import type { Catalog } from '../../../gateway/plugin/catalog.ts'
import { missingAssets, Views } from '../../../gateway/products/views.ts'

const catalogOf = (...views: readonly string[]) =>
  ({
    products: [{ file: 'pages.json', operations: views.map((view) => ({ id: view, view, retired: false })) }],
  }) as unknown as Catalog

describe('the views of an edition', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'views-'))
    write('gateway/layout.pug', 'header gateway\nmain\n  block content')
    write('gateway/page.pug', 'extends layout\nblock content\n  p of the gateway\n  block more')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  function write(file: string, text: string): void {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  const options = () => ({
    viewDirs: [join(folder, 'shop'), join(folder, 'gateway')],
    pluginViewDirs: [join(folder, 'plugin')],
  })
  const show = (view: string, views = new Views(options())): string => views.template(view)()

  it('are those of the shop, of the gateway and of plugins, in this order', () => {
    for (const place of ['shop', 'gateway', 'plugin']) {
      write(`${place}/${place}.pug`, `p ${place}`)
      write(`${place}/any.pug`, `p ${place}`)
    }
    expect(['shop', 'gateway', 'plugin', 'any'].map((view) => show(view))).to.deep.equal(
      ['shop', 'gateway', 'plugin', 'shop'].map((place) => `<p>${place}</p>`),
    )
    rmSync(join(folder, 'shop'), { recursive: true })
    expect(show('any')).to.equal('<p>gateway</p>')
  })

  it('of a shop extend those of the gateway, also of their own name, and frame the pages of the gateway', () => {
    write('shop/page.pug', 'extends /page\nblock more\n  p of the shop')
    expect(show('page')).to.equal('<header>gateway</header><main><p>of the gateway</p><p>of the shop</p></main>')
    write('shop/layout.pug', 'aside shop\ninclude /layout')
    expect(show('page')).to.contain('<aside>shop</aside><header>gateway</header>')
    write('plugin/own.pug', 'extends /layout\nblock content\n  include part')
    write('plugin/part.pug', 'p of the plugin')
    write('shop/layout.pug', 'section\n  block content')
    expect(show('own')).to.equal('<section><p>of the plugin</p></section>')
    rmSync(join(folder, 'shop/page.pug'))
    expect(show('page')).to.equal('<section><p>of the gateway</p></section>')
  })

  it('are never files outside of the folders', () => {
    write('secret.pug', 'p secret')
    for (const name of ['../secret', '/secret', 'page.pug', 'none', '', 'a/../../secret'])
      expect(() => show(name), name).to.throw(`There is no view "${name}"`)
    write('shop/page.pug', 'include ../secret')
    expect(() => show('page')).to.throw('no such file')
  })

  it('stay as they were until a file has changed', async () => {
    const catalog = catalogOf('page')
    const first = await Views.next(options(), catalog)
    expect(await Views.next(options(), catalog, first)).to.equal(first)
    write('gateway/layout.pug', 'section\n  block content')
    const next = await Views.next(options(), catalog, first)
    expect(next).to.not.equal(first)
    expect(show('page', next)).to.equal('<section><p>of the gateway</p></section>')
  })

  it('keep the last version of one that has an error, or else that of the gateway, and say what is wrong', async () => {
    const catalog = catalogOf('page', 'other')
    write('gateway/error.pug', 'p refused')
    write('shop/other.pug', 'extends /layout\nblock content\n  p other')
    write('shop/page.pug', 'extends /page\nblock more\n  p(')
    const first = await Views.next(options(), catalog)
    expect(show('page', first)).to.equal('<header>gateway</header><main><p>of the gateway</p></main>')
    const [issue, ...more] = first.issues(catalog)
    expect(more).to.deep.equal([])
    expect(issue).to.include({ file: 'pages.json', pointer: '/operations/page/view', rule: 'view' })
    expect(issue?.message).to.match(/^The view has an error: .+ \(page\.pug:3\)\.$/)

    write('shop/page.pug', 'extends /page\nblock more\n  p of the shop')
    write('shop/error.pug', 'p= (')
    const second = await Views.next(options(), catalog, first)
    expect(second.issues(catalog).map(({ file }) => file)).to.deep.equal(['views/error.pug'])
    expect(show('error', second)).to.equal('<p>refused</p>')

    write('shop/layout.pug', 'p(')
    const third = await Views.next(options(), catalog, second)
    expect(third.issues(catalog).map(({ message }) => /\((.+)\)\.$/.exec(message)?.[1])).to.deep.equal([
      'layout.pug:1',
      'error.pug:1',
    ])
    expect(show('page', third)).to.contain('<p>of the shop</p>')
    expect(show('other', third)).to.contain('<p>other</p>')
    rmSync(join(folder, 'shop/layout.pug'))
    rmSync(join(folder, 'shop/error.pug'))
    expect((await Views.next(options(), catalog, third)).issues(catalog)).to.deep.equal([])
  })
})

describe('the look of a service', () => {
  it('names files that are in a folder of assets', () => {
    const folder = mkdtempSync(join(tmpdir(), 'views-'))
    mkdirSync(join(folder, 'assets'))
    writeFileSync(join(folder, 'assets/shop.css'), '')
    const service = { name: 'a', title: 'a', summary: 'a', description: 'a', version: '1.0.0', notes: [] }
    const look = { style: '/assets/shop.css', logo: '/assets/logo.svg', image: '/pictures/card.png' }
    const issues = missingAssets({ ...service, ...look }, [folder])
    rmSync(folder, { recursive: true })
    expect(issues.map(({ pointer, message }) => `${pointer} ${message}`)).to.deep.equal([
      '/logo There is no views/assets/logo.svg. Put the file there, or correct the path.',
    ])
  })
})
