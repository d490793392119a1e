import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { digestOf, fileOfTemplate } from '../../../gateway/http/built-templates.ts'
import { templateOf } from '../../../gateway/http/known-templates.ts'

describe('a view that the build has compiled', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'templates-'))
    for (const name of ['views', 'built']) mkdirSync(join(folder, name))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const [page, layout] = ['extends /layout\nblock content\n  p theirs', 'main\n  block content']
  function write(texts: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, 'views', name), text)
  }
  /** As if the build had made this of other texts than Pug would. */
  function build(texts: Readonly<Record<string, string>>): void {
    const digests = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, digestOf(text)]))
    const text = `module.exports = { template: () => 'built', digests: ${JSON.stringify(digests)} }`
    writeFileSync(join(folder, 'built', fileOfTemplate('page.pug')), text)
  }
  const shown = (): string => templateOf(join(folder, 'views/page.pug'), join(folder, 'views'), join(folder, 'built'))()

  it('is shown as it was built while its texts are those', () => {
    write({ 'page.pug': page, 'layout.pug': layout })
    build({ 'page.pug': page, 'layout.pug': layout })
    expect(shown()).to.equal('built')
  })

  it('is compiled again once it or its layout has changed, or if nothing was built', () => {
    write({ 'page.pug': page, 'layout.pug': layout })
    expect(shown()).to.equal('<main><p>theirs</p></main>')
    build({ 'page.pug': page, 'layout.pug': layout })
    write({ 'layout.pug': 'div\n  block content' })
    expect(shown()).to.equal('<div><p>theirs</p></div>')
    write({ 'page.pug': 'p ours' })
    expect(shown()).to.equal('<p>ours</p>')
  })
})
