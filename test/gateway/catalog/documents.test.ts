import { expect } from 'chai'
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readNetworks } from '../../../gateway/config/networks.ts'
import { CatalogError } from '../../../gateway/validation/issue.ts'
import { MAX_FILE_DEPTH, parseJson } from '../../../gateway/validation/json.ts'
import { JsonFiles, readDocuments } from '../../../gateway/catalog/documents.ts'
import { openCatalog, type TestCatalog } from '../../support/catalog.ts'
import fc from 'fast-check'

describe('the JSON reader', () => {
  it('accepts every text that JSON.parse accepts', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 1, '\t'), (text, indent) => {
        const formatted = JSON.stringify(JSON.parse(text), null, indent)
        expect(parseJson(formatted)).to.deep.equal({ value: JSON.parse(text), issues: [] })
      }),
    )
  })

  it('refuses every text that JSON.parse refuses', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '"', '01', 'x', '\n'), (text, seed, noise) => {
        const at = seed % (text.length + 1)
        const edited = text.slice(0, at) + noise + text.slice(at + 1)
        let isValid = true
        try {
          JSON.parse(edited)
        } catch {
          isValid = false
        }
        expect(parseJson(edited).issues.some(({ rule }) => rule === 'syntax')).to.equal(!isValid)
      }),
      { numRuns: 500 },
    )
  })

  it('reports line and column of a syntax error, and what is expected there', () => {
    const wrong: readonly (readonly [string, string])[] = [
      ['{\n  "price": "1",\n}', 'Line 3, column 1: Expected a key in double quotes, found }.'],
      ['{\n  "price" "1"\n}', 'Line 2, column 11: Expected ":", found "1".'],
      ['[1, 2', 'Line 1, column 6: Expected "," or "]", found the end.'],
      ["{ 'price': 1 }", "Line 1, column 3: Unexpected '."],
      ['{} {}', 'Line 1, column 4: Expected the end of the text, found {.'],
      ['{ "price": 01 }', 'Line 1, column 12: Unexpected 01.'],
      ['', 'Line 1, column 1: Expected a value, found the end.'],
      ['"a\u0000b"', 'Line 1, column 1: Unexpected control character in a string.'],
    ]
    for (const [text, message] of wrong) {
      const { value, issues } = parseJson(text)
      expect(value, text).to.equal(undefined)
      expect(issues, text).to.deep.equal([{ pointer: '', rule: 'syntax', message }])
    }
  })

  it('reports duplicate keys, which JSON.parse drops without a warning', () => {
    const { value, issues } = parseJson('{ "a": 1,\n  "a": { "b/c": 2, "b/c": 3 } }')
    expect(value).to.deep.equal({ a: { 'b/c': 3 } })
    expect(issues.map(({ pointer, rule }) => [pointer, rule])).to.deep.equal([
      ['/a', 'duplicate-key'],
      ['/a/b~1c', 'duplicate-key'],
    ])
    expect(issues[0]?.message).to.equal('Line 2, column 3: the object has the key "a" twice. Keep one.')
  })

  it('reports duplicate keys whatever keys and values are made of, and no others', () => {
    const text = fc.string({ unit: fc.constantFrom('"', '\\', ':', ' ', '{', 'a', '\n'), maxLength: 4 })
    const space = fc.constantFrom('', ' ', '\n\t')
    fc.assert(
      fc.property(
        fc.array(fc.tuple(text, fc.oneof(text, fc.array(text), fc.object())), { maxLength: 6 }),
        space,
        (pairs, gap) => {
          const members = pairs.map(([key, value]) => `${JSON.stringify(key)}${gap}:${gap}${JSON.stringify(value)}`)
          const { issues } = parseJson(`[{${members.join(`,${gap}`)}}]`)
          expect(issues).to.have.length(pairs.length - new Set(pairs.map(([key]) => key)).size)
        },
      ),
    )
  })
})

describe('the catalog folder', () => {
  let catalog: TestCatalog
  afterEach(() => catalog.close())

  it('is read through links, even if some are broken or lead in a circle', async () => {
    catalog = openCatalog({ 'x/tin.json': { product: 'tin' }, '.releases/2/gold.json': { product: 'gold' } })
    const pathOf = (file: string): string => join(catalog.catalogDir, file)
    symlinkSync('.releases/2/gold.json', pathOf('gold.json'))
    symlinkSync('.releases/2', pathOf('y'))
    symlinkSync('..', pathOf('x/round'))
    symlinkSync('nowhere.json', pathOf('lost.json'))
    const { documents, issues } = await readDocuments(catalog.catalogDir)
    expect(documents.map(({ file }) => file)).to.deep.equal(['gold.json', 'service.json', 'x/tin.json', 'y/gold.json'])
    expect(issues).to.deep.equal([])
  })

  it('is read with its sub-folders, sorted by file name', async () => {
    catalog = openCatalog({
      'plans.json': { plans: [] },
      'gold.json': { product: 'gold' },
      'x/tin.json': {},
      'notes.txt': 'x',
    })
    const { documents, issues } = await readDocuments(catalog.catalogDir)
    expect(issues).to.deep.equal([])
    expect(documents.map(({ file, kind }) => [file, kind])).to.deep.equal([
      ['gold.json', 'product'],
      ['plans.json', 'plans'],
      ['service.json', 'service'],
      ['x/tin.json', 'product'],
    ])
  })

  it('yields the documents that can be read, and the issues of the others', async () => {
    catalog = openCatalog({ 'gold.json': '{ "product": }', 'x/tin.json': '[]', 'zinc.json': { product: 'zinc' } })
    const { documents, issues } = await readDocuments(catalog.catalogDir)
    expect(documents.map(({ file }) => file)).to.deep.equal(['service.json', 'zinc.json'])
    expect(issues.map(({ file, rule }) => [file, rule])).to.deep.equal([
      ['gold.json', 'syntax'],
      ['x/tin.json', 'type'],
    ])
  })

  it('is read without a file that has just been removed, and reports why a file cannot be read', async () => {
    catalog = openCatalog()
    const files = new JsonFiles()
    expect(await files.read(join(catalog.catalogDir, 'gone.json'))).to.equal(null)
    const read = await files.read(catalog.catalogDir)
    expect(read?.issues.map(({ rule, message }) => [rule, message])).to.deep.equal([
      ['read', 'Cannot be read (EISDIR). Give the gateway permission to read it, or remove it.'],
    ])
  })

  it('is read without folders that are removed meanwhile', async () => {
    catalog = openCatalog()
    for (let turns = 0; turns < 30; turns += 1) {
      for (let n = 0; n < 100; n += 1) mkdirSync(join(catalog.catalogDir, `x/${n}`), { recursive: true })
      const reading = readDocuments(catalog.catalogDir)
      for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate)
      rmSync(join(catalog.catalogDir, 'x'), { recursive: true })
      expect((await reading).documents.map(({ file }) => file)).to.deep.equal(['service.json'])
    }
  })

  it('is an error with what to do if there is no such folder, or if it is a file', async () => {
    catalog = openCatalog()
    for (const [folder, code] of [
      [join(catalog.folder, 'catalogue'), 'ENOENT'],
      [join(catalog.catalogDir, 'service.json'), 'ENOTDIR'],
    ] as const) {
      const error = await readDocuments(folder).catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(CatalogError)
      expect((error as CatalogError).message)
        .to.contain(`(${code}). Correct CATALOG_DIR`)
        .and.not.contain(catalog.folder)
      expect(readNetworks(folder).map(({ name }) => name)).to.deep.equal(['base', 'base-sepolia'])
    }
  })

  it('gives the same value for a file that has not changed, and the new one for an edit of the same length', async () => {
    catalog = openCatalog({ 'tin.json': { price: 1 }, 'zinc.json': { price: 1 } })
    const files = new JsonFiles()
    const read = async () => {
      const { documents } = await readDocuments(catalog.catalogDir, files)
      return new Map(documents.map(({ file, content }) => [file, content]))
    }
    const before = await read()
    catalog.write('tin.json', { price: 2 })
    const after = await read()
    expect(after.get('tin.json')).to.deep.equal({ price: 2 })
    expect(after.get('zinc.json')).to.equal(before.get('zinc.json'))
    utimesSync(join(catalog.catalogDir, 'zinc.json'), 0, 0)
    expect((await read()).get('zinc.json'), 'touched only').to.equal(before.get('zinc.json'))
    catalog.remove('zinc.json')
    expect((await read()).has('zinc.json')).to.equal(false)
  })

  it('reports a file that is nested too deeply to be checked', async () => {
    const deep = `{"a":${'['.repeat(MAX_FILE_DEPTH)}${']'.repeat(MAX_FILE_DEPTH)}}`
    expect(parseJson(deep).issues.map(({ rule, message }) => [rule, message])).to.deep.equal([
      ['depth', `Is nested deeper than ${MAX_FILE_DEPTH} levels. Write it flatter.`],
    ])
    expect(parseJson('['.repeat(100_000)).issues.map(({ rule }) => rule)).to.deep.equal(['syntax'])
    expect(parseJson(deep.replace('[[', '[').replace(']]', ']')).issues).to.deep.equal([])
  })

  it('describes the service by package.json where service.json says nothing', async () => {
    catalog = openCatalog()
    catalog.remove('service.json')
    const file = join(catalog.folder, 'package.json')
    writeFileSync(file, JSON.stringify({ name: '@acme/gold-shop', version: '1.2.3-rc.1', description: 'Sells gold.' }))
    const { documents, issues } = await readDocuments(catalog.catalogDir)
    const [service] = documents.filter(({ kind }) => kind === 'service')
    const content = { name: 'Gold shop', title: 'Gold shop', summary: 'Sells gold.', version: '0.1.0' }
    expect([service?.content, issues]).to.deep.equal([{ ...content, description: 'Sells gold.' }, []])
    catalog.write('service.json', { title: 'Gold by the hour', logo: '/assets/logo.svg' })
    const { documents: named } = await readDocuments(catalog.catalogDir)
    const own = { title: 'Gold by the hour', logo: '/assets/logo.svg', description: 'Sells gold.' }
    expect(named.find(({ kind }) => kind === 'service')?.content).to.deep.equal({ ...content, ...own })
    catalog.remove('service.json')
    rmSync(file)
    const nameless = await readDocuments(catalog.catalogDir)
    const described = nameless.documents[0]?.content
    expect(described?.['name']).to.match(/^Tollgate catalog/)
    expect(described?.['summary']).to.match(/x402/)
  })
})
