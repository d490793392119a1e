/** /openapi.json: OpenAPI 3.1 of every listed operation, with prices as indexers read them (`x-payment-info`). */
import { asText, dereference, fieldsOf, isFileSchema } from '../catalog/schemas.ts'
import { callLimitSentences } from '../catalog/call-limits.ts'
import { promisesFreshData, writtenFreshData } from '../catalog/fresh-data.ts'
import { type Catalog, type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import { ROW_FORMATS, ROW_MEDIA } from '../calls/rows/asked-format.ts'
import { WHOLE_ANSWER } from '../catalog/table.ts'
import { type Bundle, createBundle } from './schema-bundle.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import type { Schemas } from '../validation/json-schema.ts'
import { dollars } from '../dollars.ts'
import { freshSentence, groups, hasInput, isPriced, type PricedOperation } from './listed-operations.ts'
import type { DocumentContext } from './document.ts'
import { capNotes, CURRENCY, howToPay, MCP_NOTE, networkNames, recipientsFor, tokenNotes } from './how-to-pay.ts'

const VERSION = '3.1.1'

/** Returns the document. Prices are in `x-payment-info`, the catalog version is in `info.x-catalog-version`. */
export function openapi(catalog: Catalog, context: DocumentContext) {
  const { service } = catalog
  const bundle = createBundle(catalog.schemas, '#/components/schemas/')
  const tagged = groups(catalog)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { title, operations } of tagged)
    for (const operation of operations)
      (paths[operation.path] ??= {})[operation.method.toLowerCase()] = describeOperation(operation, title, {
        bundle,
        schemas: catalog.schemas,
        context,
        plans: plansFor(operation, catalog),
      })
  const description = [
    service.description,
    ...service.notes,
    howToPay(context),
    ...capNotes(catalog),
    ...tokenNotes(catalog),
    MCP_NOTE,
  ]
  return {
    openapi: VERSION,
    info: {
      title: `${service.name}: ${service.title}`,
      summary: service.summary,
      description: description.join('\n\n'),
      version: service.version,
      contact: { name: service.name, ...contactOf(service.contact ?? context.baseUrl) },
      ...(service.license === undefined ? {} : { license: { name: service.license } }),
      'x-catalog-version': catalog.version,
      'x-guidance': [howToPay(context), ...capNotes(catalog)].join(' '),
    },
    servers: [{ url: context.baseUrl }],
    tags: tagsOf(tagged),
    paths,
    components: components(bundle),
  }
}

/** Tag names must be unique in OpenAPI, but two products may have the same title. */
function tagsOf(tagged: ReturnType<typeof groups>): { readonly name: string; readonly description: string }[] {
  const names = new Map(tagged.toReversed().map(({ title, summary }) => [title, summary]))
  return [...names].toReversed().map(([name, description]) => ({ name, description }))
}

/** Returns the plans whose token covers the operation. */
function plansFor(operation: Operation, { plans }: Catalog): readonly string[] {
  return plans.plans.filter(({ authorizes }) => authorizes.includes(operation.id)).map(({ plan }) => plan)
}

function contactOf(contact: string): Record<string, string> {
  return contact.includes('@') ? { email: contact.replace(/^mailto:/, '') } : { url: contact }
}

const header = (description: string) => ({ description, schema: { type: 'string', contentEncoding: 'base64' } })
const key = (name: string, description: string) => ({ type: 'apiKey', in: 'header', name, description })

function components(bundle: Bundle) {
  const json = (definition: string) => ({
    'application/json': { schema: bundle.add({ $ref: `common.json#/$defs/${definition}` }, 'openapi') },
  })
  const responses = {
    PaymentRequired: {
      description: 'Payment is required, or the payment or token was refused; `code` says which. Nothing was charged.',
      headers: { 'PAYMENT-REQUIRED': { $ref: '#/components/headers/PaymentRequired' } },
      content: json('PaymentRequired'),
    },
    ValidationError: {
      description: 'A parameter or the body is invalid. Nothing was charged.',
      content: json('ValidationError'),
    },
    Error: {
      description:
        'Any other refusal or failure; `retry` says what to do next. Nothing was charged, unless `retry` is same_payment.',
      content: json('Error'),
    },
  }
  return {
    schemas: bundle.schemas,
    responses,
    headers: {
      PaymentRequired: header('x402 v2 PaymentRequired object, base64 of JSON.'),
      PaymentResponse: header('Receipt: x402 SettlementResponse object, base64 of JSON.'),
    },
    securitySchemes: {
      paymentSignature: key('PAYMENT-SIGNATURE', 'x402 v2 PaymentPayload, base64 of JSON.'),
      payment: key('X-PAYMENT', 'x402 v1 PaymentPayload, base64 of JSON.'),
      serviceToken: key(TOKEN_HEADER, 'Access token of a plan, as the purchase returned it.'),
    },
  }
}

interface OperationContext {
  readonly bundle: Bundle
  readonly schemas: Schemas
  readonly context: DocumentContext
  /** Plans whose token covers the operation. */
  readonly plans: readonly string[]
}

/** Returns an OpenAPI 3.1 Operation Object with one tag. */
function describeOperation(operation: Operation, tag: string, { bundle, schemas, context, plans }: OperationContext) {
  const parameters = [
    ...parametersIn('path', operation, bundle),
    ...parametersIn('query', operation, bundle),
    ...formatParameter(operation, schemas),
  ]
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: describe(operation, context, plans),
    tags: [tag],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...bodyOf(operation, { bundle, schemas }),
    responses: responses(operation, bundle),
    security: isPriced(operation) ? securityOf(plans) : [],
    ...(isPriced(operation) ? { 'x-payment-info': paymentInfo(operation, context) } : {}),
    ...(operation.tool === null ? {} : { 'x-mcp-tool': operation.tool }),
    ...(operation.maxFreshnessSeconds > 0 ? { 'x-max-freshness-seconds': operation.maxFreshnessSeconds } : {}),
    ...(promisesFreshData(operation) ? { 'x-fresh': writtenFreshData(operation.fresh) } : {}),
    ...(operation.sellEmpty ? {} : { 'x-sell-empty': false }),
    ...(operation.trial ? { 'x-trial': operation.trial } : {}),
    ...(operation.limit ? { 'x-limit': operation.limit } : {}),
  }
}

function describe(operation: Operation, context: DocumentContext, plans: readonly string[]): string {
  const price = isPriced(operation)
    ? `Price: $${dollars(operation.price)} in ${CURRENCY} on ${networkNames(recipientsFor(operation, context))}.`
    : 'Free.'
  const covered = plans.length > 0 ? `Unmetered with a token of ${plans.join(', ')}.` : ''
  const age =
    operation.maxFreshnessSeconds > 0 ? `Data are at least ${operation.maxFreshnessSeconds / 3600} hours old.` : ''
  const empty = operation.sellEmpty ? '' : 'An answer without a match is refused with 404 and not charged.'
  const limits = callLimitSentences(operation)
  return [operation.description, price, limits, covered, age, freshSentence(operation), empty].filter(Boolean).join(' ')
}

/** The query field by which a caller chooses the format, unless the operation has one of this name. */
function formatParameter({ rows, query }: Operation, schemas: Schemas): readonly object[] {
  if (rows === null || 'format' in fieldsOf(query, schemas)) return []
  const list = rows === WHOLE_ANSWER ? 'the list' : `the list \`${rows}\` alone`
  const description = `csv, ndjson or parquet: ${list} in this format, as Accept can ask, too. Other fields are in X-ANSWER-FIELDS.`
  return [{ name: 'format', in: 'query', required: false, description, schema: { enum: ['json', ...ROW_FORMATS] } }]
}

function parametersIn(location: 'path' | 'query', operation: Operation, bundle: Bundle): readonly object[] {
  const schema = location === 'path' ? operation.params : operation.query
  const examples = operation.example?.request[location === 'path' ? 'params' : 'query'] ?? {}
  if (schema === null) return []
  return bundle.properties(schema, operation.id).map(({ name, required, schema }) => ({
    name,
    in: location,
    required: location === 'path' || required,
    ...(typeof schema['description'] === 'string' ? { description: schema['description'] } : {}),
    ...(schema['deprecated'] === true ? { deprecated: true } : {}),
    schema,
    ...(name in examples ? { example: examples[name] } : {}),
  }))
}

/** Validators of indexers expect a body wherever a priced route could take one: it may be an empty object, and left out. */
const EMPTY = { schema: { type: 'object', maxProperties: 0 }, example: {} }
const NO_BODY = { required: false, content: { 'application/json': EMPTY } }

function bodyOf(operation: Operation, parts: Pick<OperationContext, 'bundle' | 'schemas'>): object {
  if (operation.body !== null) return { requestBody: requestBody(operation, operation.body, parts) }
  return isPriced(operation) && !['GET', 'DELETE'].includes(operation.method) ? { requestBody: NO_BODY } : {}
}

/** The example is shown for the first media type. The other media types have the same fields; in JSON, files are text. */
function requestBody(
  operation: Operation,
  body: JsonSchema,
  { bundle, schemas }: Pick<OperationContext, 'bundle' | 'schemas'>,
): object {
  const hasFiles = Object.values(fieldsOf(body, schemas)).some(isFileSchema)
  const schemaFor = (media: string): JsonSchema =>
    bundle.add(hasFiles && media.endsWith('json') ? withFilesAsText(body, schemas) : body, operation.id)
  const example = operation.example?.request.body
  const content = operation.bodyMedia.map((media, index) => [
    media,
    isRaw(media)
      ? { schema: rawSchema(media), ...(typeof example === 'string' ? { example } : {}) }
      : { schema: schemaFor(media), ...(index === 0 && example !== undefined ? { example } : {}) },
  ])
  return { required: true, content: Object.fromEntries(content) as object }
}

/** A generated client would put a file into JSON as an object without content. */
function withFilesAsText(body: JsonSchema, schemas: Schemas): JsonSchema {
  const fields = Object.entries(fieldsOf(body, schemas)).map(([name, field]) => [name, asText(field)])
  // Two schemas with one title would be one type.
  const { title: _, ...whole } = dereference(body, schemas)
  return { ...whole, properties: Object.fromEntries(fields) as object }
}

/** True for a media type without fields, such as text/csv. */
const isRaw = (media: string): boolean => !/json$|^multipart\/|form-urlencoded$/.test(media)

const rawSchema = (media: string): object =>
  media.startsWith('text/') ? { type: 'string' } : { type: 'string', contentMediaType: media }

function responses(operation: Operation, bundle: Bundle): object {
  const { response, view, example } = operation
  const media = response?.['contentMediaType']
  const [type, schema]: [string, JsonSchema] =
    view === null
      ? [typeof media === 'string' ? media : 'application/json', response ?? { type: 'object' }]
      : ['text/html', { type: 'string' }]
  return {
    '200': {
      description: operation.summary,
      ...(isPriced(operation)
        ? { headers: { 'PAYMENT-RESPONSE': { $ref: '#/components/headers/PaymentResponse' } } }
        : {}),
      content: {
        [type]: {
          schema: bundle.add(schema, operation.id),
          ...(example?.response === undefined ? {} : { example: example.response }),
        },
        ...(operation.rows === null ? {} : ROWS_CONTENT),
      },
    },
    ...(operation.form === null ? {} : { '303': REDIRECT }),
    ...(isPriced(operation) ? { '402': shown('PaymentRequired') } : {}),
    ...(isPriced(operation) || hasInput(operation) ? { '422': shown('ValidationError') } : {}),
    '429': shown('Error'),
    default: shown('Error'),
  }
}

/** The rows of an answer, which the caller chooses by Accept or `?format=`. */
const ROWS_CONTENT = Object.fromEntries(
  Object.values(ROW_MEDIA).map((media) => [
    media,
    { schema: media.startsWith('text/') ? { type: 'string' } : { type: 'string', contentMediaType: media } },
  ]),
)

/** The answer of a form to a browser, whether it was accepted or not. */
const REDIRECT = {
  description: 'To a caller that prefers text/html: the page to go on to, also for a form that was not accepted.',
  headers: { Location: { description: 'Path of the page.', schema: { type: 'string', format: 'uri-reference' } } },
}

const shown = (response: string) => ({ $ref: `#/components/responses/${response}` })

/** Each entry suffices on its own: a v2 payment, a v1 payment, or the token of a plan. */
function securityOf(plans: readonly string[]): readonly object[] {
  return [{ paymentSignature: [] }, { payment: [] }, ...(plans.length > 0 ? [{ serviceToken: [] }] : [])]
}

/** The price in dollars, and in atomic units in `offers`. */
function paymentInfo(operation: PricedOperation, context: DocumentContext): object {
  return {
    protocols: [{ x402: {} }],
    price: { mode: 'fixed', currency: 'USD', amount: dollars(operation.price) },
    offers: recipientsFor(operation, context).map(({ network, payTo }) => ({
      method: 'x402',
      intent: 'charge',
      scheme: 'exact',
      network: network.caip2,
      currency: network.asset,
      amount: operation.price.toString(),
      payTo,
      description: operation.summary,
    })),
  }
}
