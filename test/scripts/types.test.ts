import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { createCatalog } from '../../gateway/catalog/resolve.ts'
import type { CatalogDocument } from '../../gateway/catalog/documents.ts'
import type { JsonSchema } from '../../gateway/plugin/plugin.ts'
import { compact, declarations, readonlyArrays, TypedSchemas } from '../../scripts/schema-types.ts'
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
  it('match the catalog as it is now', () => {
    const command = [join(root, 'scripts/tollgate.mjs'), 'types', '--check']
    const { status, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' })
    expect(stderr).to.equal('')
    expect(status).to.equal(0)
    expect(existsSync(join(root, 'schemas/types.d.ts'))).to.equal(true)
  })

  it('give each handler its input and output, and name types after their schemas', async () => {
    const text = await typesOf({
      query: { $ref: 'thing.json#/$defs/Query' },
      response: {
        type: 'object',
        required: ['rows'],
        properties: { rows: { type: 'array', items: { $ref: 'thing.json#/$defs/Row' } } },
      },
    })
    const flat = text.replace(/\s+/g, ' ')
    expect(flat).to.contain(
      'thing: { getThing: { input: { params: Readonly<Record<string, unknown>>; query: Query; body: undefined }',
    )
    expect(flat).to.contain('output: { rows: readonly Row[] }')
    expect(flat).to.contain('export type Row = { of: ThingSymbol; values: readonly (number | null)[] }')
    expect(flat).to.contain("declare module 'tollgate/plugin' { interface Plugins extends Products {} }")
  })

  it('put the name of the file before a name that a schema of another file has', () => {
    const file = (type: string): JsonSchema => ({ $defs: { Price: { type } } })
    const schemas = new TypedSchemas(
      new Map([
        ['gold.json', file('number')],
        ['silver.json', file('string')],
      ]),
    )
    const from = { root: {}, file: '', isAsked: false }
    expect(schemas.typed({ $ref: 'gold.json#/$defs/Price' }, from)).to.deep.equal({ $ref: '#/$defs/Price' })
    expect(schemas.typed({ $ref: 'silver.json#/$defs/Price' }, from)).to.deep.equal({ $ref: '#/$defs/SilverPrice' })
    expect(schemas.definitions).to.deep.equal({ Price: { type: 'number' }, SilverPrice: { type: 'string' } })
  })

  it('treat a field with a default as present in a handler, and as optional for a product that asks', async () => {
    const text = await typesOf({ query: { $ref: 'thing.json#/$defs/Query' } })
    expect(text.replace(/\s+/g, ' ')).to.contain('export type Query = { day: string; limit: number }')
    expect(text.replace(/\s+/g, ' ')).to.contain('export type AskedQuery = { day: string; limit?: number }')
  })

  it('cover uploaded files and typed arrays', async () => {
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

  it('make arrays readonly, however their items are written', () => {
    const pairs: readonly (readonly [string, string])[] = [
      ['a: string[]', 'a: readonly string[]'],
      ['a: (string | null)[]', 'a: readonly (string | null)[]'],
      ['a: {\n  b: number[]\n}[]', 'a: readonly {\n  b: readonly number[]\n}[]'],
      ['a: (string | null)[][]', 'a: readonly (readonly (string | null)[])[]'],
      [' * a list, string[]\n a: 1', ' * a list, string[]\n a: 1'],
    ]
    for (const [text, expected] of pairs) expect(readonlyArrays(text)).to.equal(expected)
  })

  it('write a comment, a union and an object in one line each, if they fit into it', () => {
    const long = 'x'.repeat(106)
    const pairs: readonly (readonly [string, string])[] = [
      ['type A = {\n  b: string\n  c: {\n    d: 1\n  }[]\n}', 'type A = { b: string; c: { d: 1 }[] }'],
      ['type A =\n  | 1\n  | {\n      b: 2\n    }', 'type A = 1 | { b: 2 }'],
      ['/**\n * Of A.\n *\n * More.\n */\ntype A = 1', '/** Of A. More. */\ntype A = 1'],
      ['type A = {\n  /**\n   * Of b.\n   */\n  b: 1\n  c: 2\n}', 'type A = { /** Of b. */ b: 1; c: 2 }'],
      [`type A = {\n  /**\n   * ${long}\n   */\n  b: number\n}`, `type A = {\n  /** ${long} */\n  b: number\n}`],
      ['a: [\n  b: 1,\n  c: 2\n]', 'a: [\n  b: 1,\n  c: 2\n]'],
    ]
    for (const [text, expected] of pairs) expect(compact(text)).to.equal(expected)
  })

  it('say that they are generated', () => {
    expect(readFileSync(join(root, 'schemas/types.d.ts'), 'utf8')).to.match(
      /^\/\*\*\n \* Generated by scripts\/types\.ts/,
    )
  })
})
