import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { createCatalog } from '../../gateway/catalog/resolve.ts'
import type { CatalogDocument } from '../../gateway/catalog/documents.ts'
import type { JsonSchema } from '../../gateway/plugin/plugin.ts'
import { declarations, readonlyArrays } from '../../scripts/declarations.ts'
import { SERVICE, thing } from '../support/catalog.ts'

const root = resolve(import.meta.dirname, '../..')

const SCHEMAS = new Map<string, JsonSchema>([
  [
    'thing.json',
    {
      $id: 'thing.json',
      $defs: {
        Query: {
          type: 'object',
          required: ['day'],
          properties: { day: { type: 'string' }, limit: { type: 'integer', default: 5 } },
        },
        Symbol: { type: 'string' },
        Row: {
          type: 'object',
          required: ['of', 'values'],
          properties: {
            of: { $ref: '#/$defs/Symbol' },
            values: { type: 'array', items: { type: ['number', 'null'] } },
          },
        },
        Columns: { type: 'object', required: ['values'], properties: { values: { tsType: 'Float64Array' } } },
      },
    },
  ],
])

async function typesOf(operation: object): Promise<string> {
  const documents: CatalogDocument[] = [
    { file: 'service.json', kind: 'service', content: SERVICE },
    { file: 'thing.json', kind: 'product', content: thing('thing', { ...operation }) },
  ]
  return declarations(createCatalog(documents, SCHEMAS).catalog, (plugin) => plugin === 'thing')
}

describe('the generated types', () => {
  it('are those of the catalog: npm run types has been run', () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', join(root, 'scripts/types.ts'), '--check'],
      {
        encoding: 'utf8',
      },
    )
    expect(stderr).to.equal('')
    expect(status).to.equal(0)
    expect(existsSync(join(root, 'schemas/types.d.ts'))).to.equal(true)
  })

  it('give each handler its input and output, shapes under their own names', async () => {
    const text = await typesOf({
      query: { $ref: 'thing.json#/$defs/Query' },
      response: {
        type: 'object',
        required: ['rows'],
        properties: { rows: { type: 'array', items: { $ref: 'thing.json#/$defs/Row' } } },
      },
    })
    const tight = text.replace(/\s+/g, ' ')
    expect(tight).to.contain(
      'thing: { getThing: { input: { params: Readonly<Record<string, unknown>> query: Query body: undefined }',
    )
    expect(tight).to.contain('output: { rows: readonly Row[] }')
    expect(tight).to.contain('export type Row = { of: ThingSymbol values: readonly (number | null)[] }')
    expect(tight).to.contain("declare module 'tollgate/plugin' { interface Plugins extends Products {} }")
  })

  it('count a field with a default as present for the handler, and let who asks leave it out', async () => {
    const text = await typesOf({ query: { $ref: 'thing.json#/$defs/Query' } })
    expect(text.replace(/\s+/g, ' ')).to.contain('export type Query = { day: string limit: number }')
    expect(text.replace(/\s+/g, ' ')).to.contain('export type AskedQuery = { day: string limit?: number }')
  })

  it('know files and typed arrays', async () => {
    const text = await typesOf({
      route: 'POST /v1/thing',
      body_media: 'multipart/form-data',
      body: { type: 'object', required: ['file'], properties: { file: { type: 'string', format: 'binary' } } },
      response: { $ref: 'thing.json#/$defs/Columns' },
    })
    expect(text).to.contain("import type { Upload } from 'tollgate/plugin'")
    expect(text.replace(/\s+/g, ' ')).to.contain('body: { file: Upload }')
    expect(text).to.contain('values: Float64Array')
  })

  it('have readonly arrays, however their items are written', () => {
    const pairs: readonly (readonly [string, string])[] = [
      ['a: string[]', 'a: readonly string[]'],
      ['a: (string | null)[]', 'a: readonly (string | null)[]'],
      ['a: {\n  b: number[]\n}[]', 'a: readonly {\n  b: readonly number[]\n}[]'],
      ['a: (string | null)[][]', 'a: readonly (readonly (string | null)[])[]'],
      [' * a list, string[]\n a: 1', ' * a list, string[]\n a: 1'],
    ]
    for (const [text, expected] of pairs) expect(readonlyArrays(text)).to.equal(expected)
  })

  it('say that they are made', () => {
    expect(readFileSync(join(root, 'schemas/types.d.ts'), 'utf8')).to.match(/^\/\*\*\n \* Made by scripts\/types\.ts/)
  })
})
