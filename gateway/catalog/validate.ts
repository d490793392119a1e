/**
 * Validates catalog documents: each against its schema and the rules that the schema cannot express, and all of them
 * against each other.
 */
import { planDrafts, planIssues } from './plans.ts'
import { type NameOwner, nameIssues } from './names-and-references.ts'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CatalogDocument } from './documents.ts'
import {
  type Draft,
  type OperationDraft,
  type ParsedCatalog,
  paramsOf,
  parsePrice,
  schemaParts,
  strings,
  textOf,
  upstreamAddress,
} from './product-drafts.ts'
import { Remembered } from './remembered.ts'
import { FORM_MEDIA, isForm } from './operation-validators.ts'
import { listSchema } from './table.ts'
import { fieldsOf, references } from './schemas.ts'
import { networksFileIssues } from '../config/networks.ts'
import { PROJECT_ROOT } from '../config/project-root.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import { type Schemas, compileOwn, schemaIssues } from '../validation/json-schema.ts'
import { isObject } from '../validation/json.ts'

export interface ValidateOptions {
  /** Which document had a name before. By default a name belongs to the first document that uses it. */
  readonly ownerOf?: NameOwner
  /** Names of the networks that payments are taken on. By default documents may name any network. */
  readonly networks?: ReadonlySet<string>
  /** Keys of documents that are known to follow their schema. */
  readonly checked?: ReadonlySet<string>
}

const NONE: ReadonlySet<string> = new Set()

/** Lists every issue of the documents. */
export function validateCatalog(
  { documents, service, plans, drafts }: ParsedCatalog,
  schemas: Schemas,
  { ownerOf, networks, checked = NONE }: ValidateOptions = {},
): Issue[] {
  const operations = drafts.flatMap((draft) => draft.operations)
  return [
    ...documents.flatMap((document) =>
      knownOfSchemas.get(document.content, [document.file], () =>
        checked.size > 0 && checked.has(documentKeyOf(document)) ? [] : schemaIssuesOf(document),
      ),
    ),
    ...drafts.flatMap((draft) =>
      knownOfProducts.get(draft.content, [draft.file, schemas], () => productIssues(draft, schemas)),
    ),
    ...nameIssues(drafts, plans.flatMap(planDrafts), ownerOf),
    ...acceptsIssues(service, drafts, networks),
    ...planIssues(plans, operations),
  ]
}

/** Lists the conflicts between documents that are valid by themselves: two claim one name, or one names what is missing. */
export function conflictsOf({ plans, drafts }: ParsedCatalog, ownerOf?: NameOwner): Issue[] {
  return nameIssues(drafts, plans.flatMap(planDrafts), ownerOf)
}

/** Returns true if no catalog can be built: service.json is missing, or a file other than a product document is invalid. */
export function isUnusable({ documents, service }: ParsedCatalog, invalid: ReadonlySet<string>): boolean {
  return !service || documents.some(({ file, kind }) => kind !== 'product' && invalid.has(file))
}

type Report = (pointer: string, rule: string, message: string) => void

/** Paths that the gateway serves itself. */
const RESERVED = /^\/(mcp|assets)(\/|$)|^\/(livez|readyz|sandbox\/wallet)$/

/** Media types that the gateway decodes for a plugin. An upstream may take any. */
const READ_MEDIA = ['application/json', ...FORM_MEDIA, 'text/csv']

const knownOfProducts = new Remembered<readonly Issue[]>()

/** Lists the issues of one product document that its schema cannot express. */
function productIssues(draft: Draft, schemas: Schemas): Issue[] {
  const issues: Issue[] = []
  const report: Report = (pointer, rule, message) => issues.push({ file: draft.file, pointer, rule, message })
  checkSource(draft, report)
  for (const operation of draft.operations) {
    const at: Report = (pointer, rule, message) => report(operation.pointer + pointer, rule, message)
    checkAccess(operation, at)
    checkFamily(draft, operation, at)
    checkInput(operation, schemas, at)
    checkUpstreamFields(draft, operation, schemas, at)
    checkAnswer(draft, operation, schemas, at)
    checkFresh(draft, operation, at)
    for (const [part, schema] of schemaParts(operation))
      for (const ref of references(schema, schemas).broken)
        at(
          pointerOf(part),
          'reference',
          `There is no schema at ${ref}. Write a file of the schemas folder and a pointer into it.`,
        )
  }
  return issues
}

function checkSource({ content, operations }: Draft, report: Report): void {
  const { plugin, upstream } = content
  if (plugin === undefined && upstream === undefined)
    report('', 'maker', 'Names neither plugin nor upstream. Write one of them.')
  if (plugin !== undefined && upstream !== undefined)
    report('/upstream', 'maker', 'Names a plugin and an upstream. Keep one of them.')
  if (upstream !== undefined && isObject(upstream)) checkUpstream(textOf(upstream['url']), operations, report)
  else
    for (const { pointer, fields } of operations)
      [fields['body_media'] ?? []].flat().forEach((media: unknown, index) => {
        const at = pointer + pointerOf('body_media', ...(Array.isArray(fields['body_media']) ? [index] : []))
        if (typeof media === 'string' && !READ_MEDIA.includes(media))
          report(at, 'media', `A plugin can receive ${READ_MEDIA.join(', ')}. Write one of these.`)
      })
}

/** The catalog decides which host is called. A caller can fill in parts of the path and the query, and nothing else. */
function checkUpstream(product: string, operations: readonly OperationDraft[], report: Report): void {
  checkAddress(product, '/upstream/url', report)
  for (const { pointer, fields, route, isInternal } of operations) {
    if (isInternal) report(`${pointer}/internal`, 'maker', 'An upstream has no internal operations. Remove it.')
    const called = isObject(fields['upstream']) ? fields['upstream'] : {}
    const own = typeof called['url'] === 'string' ? called['url'] : null
    const at = own === null ? '/upstream/url' : `${pointer}/upstream/url`
    const url = upstreamAddress(product, own)
    if (own !== null) checkAddress(url, at, report)
    for (const name of paramsOf(url))
      if (route && !route.params.includes(name))
        report(at, 'parameters', `{${name}} is not in the route ${route.method} ${route.path}. Add it there.`)
  }
}

function checkAddress(url: string, pointer: string, report: Report): void {
  const [, authority = ''] = /^https?:\/\/([^/?#]*)/.exec(url) ?? []
  if (!URL.canParse(url.replace(/[{}]/g, '')) || url.includes('#') || authority.includes('@'))
    report(
      pointer,
      'address',
      'Is not an address that can be called. Write "http://host/path", and credentials as a header.',
    )
  if (authority.includes('{'))
    report(pointer, 'address', 'Lets the caller choose the host. Write the host, and use parameters in the path only.')
}

/** Checks that a product without an upstream maps nothing, and that each mapped field is one of the operation. */
function checkUpstreamFields({ content }: Draft, { fields }: OperationDraft, schemas: Schemas, at: Report): void {
  const { upstream } = fields
  if (!isObject(upstream)) return
  if (content['upstream'] === undefined) at('/upstream', 'maker', 'The product has no upstream. Remove this field.')
  const known = new Set(
    ['params', 'query'].flatMap((part) => {
      const schema = fields[part]
      return isObject(schema) ? Object.keys(fieldsOf(schema, schemas)) : []
    }),
  )
  const parameters = Array.isArray(upstream['parameters']) ? upstream['parameters'].filter(isObject) : []
  parameters.forEach(({ name, field = name }, index) => {
    if (typeof field === 'string' && !known.has(field))
      at(
        pointerOf('upstream', 'parameters', index),
        'parameters',
        `${field} is neither in params nor in query. Describe it there, or remove it here.`,
      )
  })
}

/** Checks route, price, view and retirement of an operation, and that an internal operation has none of them. */
function checkAccess({ fields, routeText, route, isPriced, isInternal, isRetired }: OperationDraft, at: Report): void {
  if (isInternal) {
    for (const field of ['route', 'price', 'tool', 'view', 'form', 'retired'])
      if (fields[field] !== undefined)
        at(pointerOf(field), 'internal', 'Only other products can call an internal operation. Remove this field.')
    return
  }
  if (routeText === '') at('', 'route', 'Has no route. Write "GET /path", or mark it internal.')
  else if (!route)
    at(
      '/route',
      'route',
      `Is ${JSON.stringify(routeText)}. Write "METHOD /path/{param}" without query or trailing slash.`,
    )
  else if (RESERVED.test(route.path))
    at('/route', 'route-taken', `${route.path} belongs to the gateway. Write another path.`)
  const { price } = fields
  if (price === undefined) at('', 'price', 'Has no price. Write "free" or US dollars, e.g. "0.005".')
  else if (typeof price === 'string' && isPriced && /^[0.]+$/.test(price) && parsePrice(price) === null)
    at('/price', 'price', `Is ${JSON.stringify(price)}. Write "free" if nothing is charged.`)
  if (isPriced && fields['view'] !== undefined)
    at('/view', 'view', 'Pages are free. Write "price": "free", or answer with data.')
  if (isRetired && fields['replacement'] === undefined)
    at('', 'retired', 'Is retired without a replacement. Write the route that callers should use instead.')
  if (!isRetired && fields['replacement'] !== undefined)
    at('/replacement', 'retired', 'Only a retired operation has a replacement. Write "retired": true, or remove it.')
}

function checkFamily({ content }: Draft, { route }: OperationDraft, at: Report): void {
  const { family } = content
  if (typeof family !== 'string' || !route || `${route.path}/`.startsWith(`/v1/${family}/`)) return
  at(
    '/route',
    'family',
    `A product of the family ${family} is served below /v1/${family}. Write "${route.method} /v1/${family}/...".`,
  )
}

/** Checks that params match the route, that only methods with a body have one, and that arguments of a tool are distinct. */
function checkInput({ fields, route, routeText, tool, isPriced }: OperationDraft, schemas: Schemas, at: Report): void {
  const [params, query, body] = ['params', 'query', 'body'].map((part) => {
    const schema = fields[part]
    return isObject(schema) ? Object.keys(fieldsOf(schema, schemas)) : []
  }) as [string[], string[], string[]]
  const wanted = route?.params ?? (routeText === '' ? [] : params)
  for (const name of wanted)
    if (!params.includes(name))
      at('/params', 'parameters', `{${name}} of the route is not described. Add it to the properties of params.`)
    else if (wanted.indexOf(name) !== wanted.lastIndexOf(name))
      at('/route', 'parameters', `The route has {${name}} twice. Give each parameter its own name.`)
  for (const name of params)
    if (routeText !== '' && !wanted.includes(name))
      at(
        pointerOf('params', 'properties', name),
        'parameters',
        `{${name}} is not in the route. Add it there, or remove it here.`,
      )
  const { body_media: media } = fields
  const medias = [media ?? []].flat() as string[]
  if (fields['body'] !== undefined && (route?.method === 'GET' || route?.method === 'DELETE'))
    at('/body', 'body', `${route.method} has no body. Write POST, or use query.`)
  if (media !== undefined && fields['body'] === undefined)
    at('/body_media', 'body', 'There is no body. Describe one in body, or remove this field.')
  if (fields['form'] !== undefined && !medias.some(isForm))
    at('/form', 'form', `Browsers send a form as ${FORM_MEDIA.join(' or ')}. Add one of them to body_media.`)
  if (tool === null) return
  const names = [...params, ...query, ...body, ...(isPriced ? ['payment_signature'] : [])]
  for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index)))
    at('/tool', 'tool-arguments', `Two arguments of the tool ${tool} are called ${name}. Rename one of them.`)
}

function checkAnswer(
  { content }: Draft,
  { fields, isPriced, isInternal, isRetired, tool }: OperationDraft,
  schemas: Schemas,
  at: Report,
): void {
  const streams = isObject(content['upstream']) && content['upstream']['stream'] === true
  if ((streams || isEventStream(fields['response'])) && tool !== null)
    at('/tool', 'stream', 'A stream cannot be a tool. Remove this field.')
  if (fields['response'] !== undefined && fields['view'] !== undefined)
    at('/view', 'answer', 'Has a response and a view. Keep one of them.')
  if (fields['view'] !== undefined && tool !== null)
    at('/tool', 'answer', 'A page cannot be a tool. Remove this field.')
  const rows = fields['rows']
  const response = isObject(fields['response']) ? fields['response'] : null
  if (typeof rows === 'string' && (streams || !listSchema(response, rows, schemas)))
    at('/rows', 'answer', `The response has no list ${rows}. Write the name of one, or remove this field.`)
  const chart = isObject(fields['chart']) ? fields['chart'] : {}
  if (chart['y'] !== undefined && rows === undefined)
    at('/chart/y', 'answer', 'Draws columns of rows, and the answer has none. Write rows, or remove this field.')
  if (typeof chart['parts'] === 'string' && fieldsOf(response, schemas)[chart['parts']] === undefined)
    at('/chart/parts', 'answer', `The response has no field ${chart['parts']}. Write the name of one.`)
  const needsResponse =
    (isPriced || tool !== null) && !isInternal && !isRetired && !streams && fields['view'] === undefined
  if (needsResponse && fields['response'] === undefined)
    at('', 'answer', 'Has no response. Write the JSON Schema of the answer, so that buyers know what they get.')
}

/** Checks that only what is sold has conditions for its sale, and freshness only what a plugin answers. */
function checkFresh({ content }: Draft, { fields, isPriced }: OperationDraft, at: Report): void {
  const own = fields['fresh']
  if (own !== undefined && !isPriced)
    at('/fresh', 'fresh', 'Says when an answer is sold, but nothing is charged for it. Remove this field.')
  else if (content['upstream'] !== undefined && isObject(own ?? content['fresh']))
    at(
      own === undefined ? '' : '/fresh',
      'fresh',
      'An upstream does not report how fresh its data are. Remove this field, or write false.',
    )
  if (fields['sell_empty'] !== undefined && !isPriced)
    at('/sell_empty', 'fresh', 'Says which answers are sold, but nothing is charged for it. Remove this field.')
  for (const field of ['trial', 'limit'])
    if (fields[field] !== undefined && !isPriced)
      at(
        pointerOf(field),
        'sale',
        'Says how often a sold answer may be called, but nothing is charged for it. Remove this field.',
      )
}

/** True for the schema of an answer in server-sent events, which OpenAPI shows with its media type. */
export function isEventStream(response: unknown): boolean {
  return isObject(response) && response['contentMediaType'] === 'text/event-stream'
}

/** Reports the service, and each operation, if payments are taken on none of the networks it names. */
function acceptsIssues(
  service: CatalogDocument | undefined,
  drafts: readonly Draft[],
  taken: ReadonlySet<string> | undefined,
): Issue[] {
  if (!taken) return []
  const named = [
    ...(service ? [{ file: service.file, pointer: '', fields: service.content }] : []),
    ...drafts.flatMap(({ operations }) => operations),
  ]
  return named.flatMap(({ file, pointer, fields }) => {
    const accepts = strings(fields['accepts'])
    if (accepts.length === 0 || accepts.some((name) => taken.has(name))) return []
    const message = `No payments are taken on ${accepts.join(' or ')}. Write a network of NETWORK: ${[...taken].join(', ')}.`
    return [{ file, pointer: pointer + pointerOf('accepts'), rule: 'accepts', message }]
  })
}

const folder = join(PROJECT_ROOT, 'schemas', 'catalog')

/** The texts of the schema of a document, and of those that it refers to. */
const schemaTexts = new Map<CatalogDocument['kind'], readonly string[]>()

function schemaTextsOf(kind: CatalogDocument['kind']): readonly string[] {
  // A plan demands of data what an operation does.
  const names = kind === 'plans' ? ['plans.json', 'product.json'] : [`${kind}.json`]
  const texts = schemaTexts.get(kind) ?? names.map((name) => readFileSync(join(folder, name), 'utf8'))
  schemaTexts.set(kind, texts)
  return texts
}

const validators = new Map<CatalogDocument['kind'], ValidateFunction>()

function validatorOf(kind: CatalogDocument['kind']): ValidateFunction {
  const compiled = validators.get(kind)
  if (compiled) return compiled
  const [own, product] = schemaTextsOf(kind).map((text) => JSON.parse(text) as JsonSchema)
  const validate = compileOwn(own as JsonSchema, undefined, new Map(product ? [['catalog/product.json', product]] : []))
  validators.set(kind, validate)
  return validate
}

/** Identifies the content of a document with its schema. */
export function documentKeyOf({ kind, content }: CatalogDocument): string {
  return createHash('sha256')
    .update(JSON.stringify([schemaTextsOf(kind), content]))
    .digest('base64url')
}

const knownOfSchemas = new Remembered<readonly Issue[]>()

/** Lists the ways in which a document breaks its schema. */
function schemaIssuesOf({ file, kind, content }: CatalogDocument): Issue[] {
  return kind === 'networks' ? networksFileIssues(content) : schemaIssues(validatorOf(kind), file, content)
}
