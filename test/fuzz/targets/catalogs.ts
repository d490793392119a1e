/** The files of an operator: the catalog, its networks, a deny list. A mistake in one is an issue, or refuses the list. */
import { equal, ok } from 'node:assert/strict'
import type { CatalogDocument } from '../../../gateway/catalog/documents.ts'
import { createValidators } from '../../../gateway/catalog/operation-validators.ts'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { networksFileIssues } from '../../../gateway/config/networks.ts'
import { addressesIn } from '../../../gateway/hooks/deny-list.ts'
import type { JsonSchema } from '../../../gateway/plugin/plugin.ts'
import { CatalogError, type Issue } from '../../../gateway/validation/issue.ts'
import { findSyntaxError, isObject, parseJson } from '../../../gateway/validation/json.ts'
import { SchemaError } from '../../../gateway/validation/json-schema.ts'
import type { FuzzTarget } from '../target.ts'
import { gold, PLANS, SERVICE } from '../../support/catalog.ts'

const BODY = {
  type: 'object',
  required: ['day'],
  properties: { day: { $ref: 'gold.json#/$defs/Day' }, n: { type: 'integer', default: 3 } },
}
const SCHEMA = { $id: 'gold.json', $defs: { Day: { type: 'string', format: 'date', maxLength: 10 } } }
const NETWORKS = {
  networks: [
    {
      name: 'polygon',
      chain_id: 137,
      asset: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
      domain: { name: 'USD Coin', version: '2' },
      decimals: 6,
      v1: true,
    },
  ],
}
const product = gold({}, {})
const posted = gold({
  route: 'POST /v1/gold/{id}',
  params: BODY,
  query: undefined,
  body: BODY,
  body_media: 'application/json',
})

/** The files of a catalog as one object, by the name without its ending. */
const FILES = ['service', 'plans', 'product', 'schema', 'networks'] as const

function documentsOf(files: Readonly<Record<string, unknown>>): CatalogDocument[] {
  const all = { service: SERVICE, ...files }
  return (['service', 'plans', 'product'] as const).flatMap((kind) => {
    const content = (all as Readonly<Record<string, unknown>>)[kind]
    return isObject(content) ? [{ file: kind === 'product' ? 'gold.json' : `${kind}.json`, kind, content }] : []
  })
}

function assertIssues(issues: readonly Issue[]): void {
  for (const { file, pointer, rule, message } of issues) {
    ok([file, rule, message].every((text) => typeof text === 'string' && text !== ''))
    ok(pointer === '' || pointer.startsWith('/'))
  }
}

export const CATALOGS: readonly FuzzTarget[] = [
  {
    name: 'catalog-files',
    maxBytes: 16_000,
    seeds: [
      { product },
      { product: posted, schema: SCHEMA, plans: PLANS },
      { service: SERVICE, plans: PLANS, product },
      {},
    ].map((files) => JSON.stringify(files)),
    words: [
      ...FILES,
      ...'operations route summary price query params body body_media response view tool internal retired replacement'.split(
        ' ',
      ),
      ...'uses upstream url headers settings plugin family form accepts notes $ref $defs allOf properties type'.split(
        ' ',
      ),
      ...'pattern format default enum const items required authorizes gold.json#/$defs/Day # #/% GET /v1/{id} free 0.01'.split(
        ' ',
      ),
    ],
    read(input) {
      const { value, issues } = parseJson(input.toString('utf8'))
      assertIssues(issues.map((issue) => ({ file: 'x', ...issue })))
      if (!isObject(value)) return
      const { schema } = value
      // A schema with another $id than its name is an issue, and is left out.
      const isNamed = isObject(schema) && (schema['$id'] === undefined || schema['$id'] === 'gold.json')
      const schemas = new Map<string, JsonSchema>(isNamed ? [['gold.json', schema]] : [])
      let created: ReturnType<typeof createCatalog>
      try {
        created = createCatalog(documentsOf(value), schemas)
      } catch (error) {
        if (!(error instanceof CatalogError)) throw error
        return assertIssues(error.issues)
      }
      assertIssues(created.issues)
      // What is free of issues compiles, or says which schema does not.
      const compile = createValidators(schemas)
      for (const operation of created.catalog.operations.values())
        try {
          compile(operation)
        } catch (error) {
          if (!(error instanceof SchemaError)) throw error
        }
    },
  },
  {
    name: 'networks-file',
    maxBytes: 16_000,
    seeds: [JSON.stringify(NETWORKS), '{"networks":[]}'],
    words: ['networks', 'name', 'chain_id', 'asset', 'domain', 'decimals', 'v1', 'test', '0x', 'eip155:'],
    read(input) {
      const { value } = parseJson(input.toString('utf8'))
      if (value !== undefined) assertIssues(networksFileIssues(value))
    },
  },
  {
    name: 'deny-list',
    maxBytes: 16_000,
    seeds: [`# theirs\n0x${'a1'.repeat(20)} # one\r\n`, JSON.stringify([`0x${'B2'.repeat(20)}`]), '# nobody', '[]'],
    words: ['0x', '#', '\n', '\r\n', '[', ']', '"', ',', 'a1'.repeat(20)],
    read(input) {
      let addresses: ReadonlySet<string>
      try {
        addresses = addressesIn(input.toString('utf8'))
      } catch (error) {
        return ok(error instanceof Error && error.message.length < 200)
      }
      for (const address of addresses) ok(/^0x[0-9a-f]{40}$/.test(address))
    },
  },
  {
    name: 'json-file',
    maxBytes: 64_000,
    seeds: ['{"a":1,"b":[true,{"a":1,"a":2}]}', '{"a":01}', '{"a" 1}', '["\\x"]', '[1,]', '{'],
    words: ['{', '}', '[', ']', ',', ':', '"', '//', '/*', '\\u', 'null', '\uFEFF'],
    read(input) {
      const text = input.toString('utf8')
      const { value, issues } = parseJson(text)
      const found = findSyntaxError(text)
      if (found) ok(found.offset >= 0 && found.offset <= text.length && found.message !== '')
      if (value === undefined) ok(issues.length === 1)
      else equal(typeof value, typeof JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text))
    },
  },
]
