import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Catalog, Operation } from '../../../gateway/plugin/catalog.ts'
import { format } from '../../../gateway/http/view-formats.ts'
import { createRenderer, navigation } from '../../../gateway/http/render.ts'
import { Views } from '../../../gateway/products/views.ts'

const page = (path: string, more: Partial<Operation> = {}) =>
  [path, { view: 'page', method: 'GET', listed: true, path, ...more }] as [string, Operation]

const SERVICE = {
  links: [
    { href: '/shelf/gold', label: 'Gold' },
    { href: '/gone', label: 'Gone' },
    { href: 'https://shop.example', label: 'Shop' },
  ],
}
const catalogOf = (...operations: [string, Operation][]) =>
  ({ service: SERVICE, operations: new Map(operations) }) as unknown as Catalog

describe('the renderer', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'views-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const write = (file: string, text: string): void => writeFileSync(join(folder, file), text)
  const renderer = () => createRenderer(() => new Views({ viewDirs: [folder] }))

  it('renders a view and escapes its values', () => {
    write('page.pug', 'p= word')
    expect(renderer()('page', { word: '<script>' })).to.equal('<p>&lt;script&gt;</p>')
  })

  it('passes the formats and the menu to every view', () => {
    write('page.pug', "p= format.usd('5000')\neach item in navigation\n  a(href=item.href)= item.label")
    expect(renderer()('page', { catalog: catalogOf(page('/audit-tool')) })).to.equal(
      '<p>$0.005</p><a href="/audit-tool">Audit tool</a>',
    )
  })
})

describe('the foot of a page', () => {
  it('has the links of service.json that are served, and the check of receipts', () => {
    const folder = mkdtempSync(join(tmpdir(), 'views-'))
    writeFileSync(join(folder, 'page.pug'), 'each link in links\n  a(href=link.href)= link.label')
    const render = createRenderer(() => new Views({ viewDirs: [folder] }))
    const html = render('page', { catalog: catalogOf(page('/shelf/{metal}'), page('/receipt')) })
    rmSync(folder, { recursive: true })
    expect(html).to.equal(
      '<a href="/shelf/gold">Gold</a><a href="https://shop.example">Shop</a><a href="/receipt">Check a receipt</a>',
    )
  })
})

describe('the menu', () => {
  it('has the listed pages with a path of one segment', () => {
    const catalog = catalogOf(
      page('/'),
      page('/pricing'),
      page('/report/{rid}'),
      page('/tools/calculator'),
      page('/hidden', { listed: false }),
      page('/health', { view: null }),
      page('/send', { method: 'POST' }),
    )
    expect(navigation(catalog)).to.deep.equal([{ href: '/pricing', label: 'Pricing' }])
  })
})

describe('the formats', () => {
  it('write money', () => {
    expect([5000n, 100_000n, 750_000_000n, 1_234_000_000n].map(format.usd)).to.deep.equal([
      '$0.005',
      '$0.10',
      '$750.00',
      '$1,234.00',
    ])
    expect(format.usd('2000000')).to.equal('$2.00')
    expect(format.price(null)).to.equal('Free')
    expect(format.range(5000n, 20_000n)).to.equal('$0.005 to $0.02')
    expect(format.range(5000n, 5000n)).to.equal('$0.005')
  })

  it('write times in UTC', () => {
    expect(format.time('2026-11-20T10:41:59+01:00')).to.equal('2026-11-20 09:41 UTC')
    expect(format.time('whenever')).to.equal('whenever')
    expect(format.iso(0)).to.equal('1970-01-01T00:00:00.000Z')
  })

  it('write percentages, basis points, counts and durations', () => {
    expect(format.percent(0.874)).to.equal('87.4%')
    expect(format.percent(12.5)).to.equal('1,250.0%')
    expect(format.bps(12.345)).to.equal('12.3 bps')
    expect(format.bps(2549.33)).to.equal('2,549.3 bps')
    expect(format.number(417_512)).to.equal('417,512')
    expect([1, 59, 60, 3600, 86_400, 2_592_000].map(format.duration)).to.deep.equal([
      '1 second',
      '59 seconds',
      '60 seconds',
      '60 minutes',
      '24 hours',
      '30 days',
    ])
  })

  it('split a text into code and the text around it', () => {
    expect(format.pieces('see `a` and `b`')).to.deep.equal([
      { text: 'see ', isCode: false },
      { text: 'a', isCode: true },
      { text: ' and ', isCode: false },
      { text: 'b', isCode: true },
      { text: '', isCode: false },
    ])
  })

  it('quote what a shell would not take as it is', () => {
    expect(format.shell('http://127.0.0.1:4021/v1/bars')).to.equal('http://127.0.0.1:4021/v1/bars')
    expect(format.shell('/event/$(id)')).to.equal("'/event/$(id)'")
    expect(format.shell("/event/';id;'")).to.equal(String.raw`'/event/'\'';id;'\'''`)
  })

  it('write the reason phrases of statuses', () => {
    expect(format.status(402)).to.equal('Payment Required')
    expect(format.status(599)).to.equal('Error')
  })
})
