/**
 * `npm run docs`: writes docs/catalog.md, docs/errors.md, docs/configuration.md, docs/licences.md and docs/security-tests.md
 * from the schemas, the table of errors, the lock file and test/security.ts. `--check` only compares, and exits with 1 if a page is out of date.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import prettier from 'prettier'
import { ERRORS, type ErrorKind } from '../gateway/errors.ts'
import { SECURITY_PROMISES, type SecurityPromise } from '../test/security.ts'
import { readFlags } from './flags.ts'
import { licencesPage, readLockFile } from './licences.ts'

const USAGE = `npm run docs [-- --check]

Writes the generated pages in docs. With --check, writes nothing and exits with 1 if a page is out of date.`

const root = resolve(import.meta.dirname, '..')

/** The parts of a JSON Schema that the pages show. */
interface Schema {
  readonly title?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
}

const readSchema = (name: string): Schema => JSON.parse(readFileSync(join(root, 'schemas', name), 'utf8')) as Schema

/** A table cell: one line, in which nothing is taken for a cell border, a tag or emphasis. */
const cell = (text: string): string => text.replace(/[|<*]/g, '\\$&').replace(/\s+/g, ' ').trim()

const code = (text: string): string => `\`${text}\``

/** The advice of a field as a description: "Write true to…" becomes "True to…". */
function describe({ description = '' }: Schema): string {
  const text = description.replace(/^Write /, '')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const anchor = (title: string): string => title.toLowerCase().replace(/[^a-z0-9]+/g, '-')

/** The name of the definition that a reference means, also of one in another file. */
const nameOf = (reference: string): string => reference.replace(/^.*#\/\$defs\//, '')

/** The type of a field in plain words: "string", "list of networks", "true or false". */
function typeOf(schema: Schema, definitions: Readonly<Record<string, Schema>>): string {
  if (schema.$ref) {
    const name = nameOf(schema.$ref)
    const target = definitions[name] as Schema
    return target.properties ? `[${name}](#${anchor(name)})` : typeOf(target, definitions)
  }
  if (schema.enum) return schema.enum.map((value) => code(JSON.stringify(value))).join(', ')
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, definitions)).join(' or ')
  if (schema.items) return `list of ${typeOf(schema.items, definitions)}`
  if (typeof schema.additionalProperties === 'object')
    return `object of ${typeOf(schema.additionalProperties, definitions)}`
  if (Array.isArray(schema.type)) return schema.type.join(' or ')
  return schema.type === undefined ? 'any JSON' : String(schema.type)
}

function limitsOf({ minimum, exclusiveMinimum, maximum, default: fallback }: Schema): string {
  const limits = [
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...(maximum === undefined ? [] : [`at most ${maximum}`]),
    ...(fallback === undefined
      ? []
      : [`default ${code(typeof fallback === 'string' ? fallback : JSON.stringify(fallback))}`]),
  ]
  return limits.length === 0 ? '' : ` (${limits.join(', ')})`
}

/** One row per field. The fields of an object that has no name of its own follow its row, with dotted paths. */
function rowsOf(schema: Schema, definitions: Readonly<Record<string, Schema>>, prefix = ''): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`
    const named = field.$ref ? (definitions[nameOf(field.$ref)] as Schema) : field
    const text = describe(field.description === undefined ? named : field)
    const isRequired = schema.required?.includes(name) ? 'yes' : ''
    const row = `| ${code(path)} | ${cell(typeOf(field, definitions) + limitsOf(named))} | ${isRequired} | ${cell(text)} |`
    return field.properties ? [row, ...rowsOf(field, definitions, `${path}.`)] : [row]
  })
}

const fieldTable = (schema: Schema, definitions: Readonly<Record<string, Schema>>): string[] => [
  '| Field | Type | Required | Meaning |',
  '|---|---|---|---|',
  ...rowsOf(schema, definitions),
]

const GENERATED = (source: string): string => `<!-- Generated from ${source} by \`npm run docs\`. Do not edit. -->`

const CATALOG_FILES = [
  [
    'service.json',
    'catalog/service.json',
    'What the whole service says about itself. Optional: `package.json` beside the folder says the rest.',
  ],
  ['product.json', 'catalog/**/*.json', 'Every other file of the catalog is one product.'],
  [
    'plans.json',
    'catalog/plans.json',
    'Subscriptions: one payment buys access to some routes for a time. Several files may hold plans: `plans.json`, and in any folder each whose name ends in `.plans.json`. Each plan has its id in one of them, and `path`, `reissue`, `model` and `note` stand in one of them for all; `family` and `enabled` are those of their file.',
  ],
  ['hooks.json', 'catalog/hooks.json', 'Plugins that decide who may buy, or are told of payments. Optional.'],
  ['networks.json', 'catalog/networks.json', 'EVM networks beyond Base and Base Sepolia. Optional.'],
] as const

/** docs/catalog.md: every field of every catalog file. */
function catalogReference(read: (name: string) => Schema): string {
  const sections = CATALOG_FILES.flatMap(([file, where, purpose]) => {
    const schema = read(`catalog/${file}`)
    const own = schema.$defs ?? {}
    // A plan demands of data what an operation does.
    const definitions = { ...read('catalog/product.json').$defs, ...own }
    const parts = Object.entries(own).filter(([, { properties }]) => properties)
    return [
      `## ${schema.title}`,
      `File: ${code(where)}. ${purpose} ${schema.description ?? ''}`.trim(),
      fieldTable(schema, definitions).join('\n'),
      ...parts.flatMap(([name, part]) => [`### ${name}`, describe(part), fieldTable(part, definitions).join('\n')]),
    ]
  })
  return [
    GENERATED('schemas/catalog'),
    '# The catalog, field by field',
    'The catalog is a folder of JSON files. It says what is sold, at which route and price. `npm run check` reads it as the gateway does and reports every error with its file and JSON pointer.',
    ...sections,
  ]
    .filter(Boolean)
    .join('\n\n')
}

/** docs/errors.md: every error code, when it is answered and what the caller does. */
export function errorReference(errors: Readonly<Record<string, ErrorKind>>): string {
  const rows = Object.entries(errors)
    .toSorted(([, one], [, other]) => one.status - other.status)
    .map(
      ([name, { status, retry, when, action }]) =>
        `| ${code(name)} | ${status} | ${code(retry)} | ${cell(when)} | ${cell(action)} |`,
    )
  return [
    GENERATED('gateway/errors.ts'),
    '# Errors',
    'Every refusal has a stable `code`, a `message` for people and a `retry` policy for programs. A 402 carries them beside the payment requirements; a 422 carries them beside `detail`, the list of what failed validation.',
    [
      '| `retry` | What to do |',
      '|---|---|',
      '| `never` | Give up. The same request will fail again. |',
      '| `after_fix` | Change the request. |',
      '| `after_delay` | Send the same request later; `Retry-After` says when. |',
      "| `new_quote` | Sign a new payment from the answer's `accepts`. |",
      '| `same_payment` | Send the same request with the same payment. You are not charged twice. |',
    ].join('\n'),
    ['| Code | Status | Retry | When | What the caller does |', '|---|---|---|---|---|', ...rows].join('\n'),
  ].join('\n\n')
}

/** docs/configuration.md: every environment variable. */
function configurationReference(schema: Schema): string {
  const rows = Object.entries(schema.properties ?? {}).map(
    ([name, field]) =>
      `| ${code(name)} | ${cell(typeOf(field, {}) + limitsOf(field))} | ${cell(field.description ?? '')} |`,
  )
  return [
    GENERATED('schemas/config.json'),
    '# Configuration',
    'The gateway reads its configuration from the environment once, at start. `npm start`, `tollgate start` and every other command also read the file `.env` of the folder they run in; what the environment sets takes precedence. White space around a value does not count, and an empty value counts as none. If variables are wrong or missing, it reports all of them at once and does not start. When `.env` changes while the gateway runs, values that catalog files name as `env:NAME` are used within two seconds, and for every other variable that has changed the log says once to restart.',
    ['| Variable | Type | Meaning |', '|---|---|---|', ...rows].join('\n'),
  ].join('\n\n')
}

/** docs/security-tests.md: the tests behind each promise of SECURITY.md, and behind each attack that once succeeded. */
function securityTests(promises: readonly SecurityPromise[]): string {
  const links = (tests: SecurityPromise['tests']): string[] =>
    Object.entries(tests).flatMap(([file, titles]) => titles.map((title) => `[${cell(title)}](../${file})`))
  return [
    GENERATED('test/security.ts'),
    '# The tests of SECURITY.md',
    'The tests that prove each promise of [SECURITY.md](../SECURITY.md). `npm test` fails if one of them did not run and pass. Attacks with a number got something from an earlier version, and their tests failed on it. Those without were suspected and tried. A title that ends in "…" stands for all tests that begin with it.',
    ...promises.flatMap(({ promise, tests, attacks }) => [
      `## ${promise}`,
      links(tests)
        .map((link) => `- ${link}`)
        .join('\n'),
      ...attacks.flatMap(({ number, attack, now, tests }) => [
        `### ${number === undefined ? '' : `${number}. `}${attack}`,
        [`Now: ${now}.`, '', ...links(tests).map((link) => `- ${link}`)].join('\n'),
      ]),
    ]),
  ]
    .filter(Boolean)
    .join('\n\n')
}

/** The generated pages by path from the root, formatted as the repository formats Markdown. */
export async function generatedPages(): Promise<ReadonlyMap<string, string>> {
  const pages: readonly (readonly [string, string])[] = [
    ['docs/catalog.md', catalogReference(readSchema)],
    ['docs/errors.md', errorReference(ERRORS)],
    ['docs/configuration.md', configurationReference(readSchema('config.json'))],
    ['docs/licences.md', licencesPage(readLockFile())],
    ['docs/security-tests.md', securityTests(SECURITY_PROMISES)],
  ]
  const options = (await prettier.resolveConfig(join(root, 'docs'))) ?? {}
  const formatted = pages.map(
    async ([path, text]) => [path, await prettier.format(text, { ...options, parser: 'markdown' })] as const,
  )
  return new Map(await Promise.all(formatted))
}

async function run(): Promise<number> {
  const { values } = readFlags(USAGE, { options: { check: { type: 'boolean', default: false } } })
  let outdated = 0
  for (const [path, text] of await generatedPages()) {
    const file = join(root, path)
    if (!values.check) writeFileSync(file, text)
    else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
      outdated += 1
      process.stderr.write(`${path} is out of date. Run: npm run docs\n`)
    }
  }
  return outdated === 0 ? 0 : 1
}

if (process.argv[1] === import.meta.filename) process.exitCode = await run()
