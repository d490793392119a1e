/** Checks the 402 of one route, as an indexer and a buyer without money see it. */
import formats from 'ajv-formats'
import { Ajv2020, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import { COMPILED_SOON } from '../../gateway/validation/json-schema.ts'
import type { Report } from './findings.ts'
import type { ListedOperation } from './documents.ts'
import { type Answer, type Client, type Fields, fieldsOf, itemsOf, parseJson, type Place } from './client.ts'

/** Common proxies allow 8 KB for all headers of an answer, and some allow 4 KB for one header. */
const HEADER_BYTES = 4096
/** Indexers read no longer body of a 402. */
const BODY_BYTES = 16_384
/** Headers of a 402 or a paid answer that a page in a browser must be able to read. */
const EXPOSED = ['payment-required', 'payment-response', 'x-payment-response']
/** Headers that a buyer sends from a page in a browser. */
const SENT = ['content-type', 'x-payment', 'payment-signature', 'x-service-token', 'idempotency-key']

/** Checks the 402 of a priced route. Returns the amount it asks for in atomic units, or null if it asks for none. */
export async function checkRoute(
  listed: ListedOperation,
  { client, baseUrl }: Place,
  report: Report,
): Promise<string | null> {
  const { method, address } = listed
  if (address === null) {
    report('example', 'Its path has a parameter without an example.', 'Add an example with params to the catalog.')
    return null
  }
  const json = { 'content-type': 'application/json' }
  const probes = [
    ['a bare call', await client.request(address, { method })],
    ...(method === 'GET' || method === 'DELETE'
      ? []
      : [['a call with {}', await client.request(address, { method, body: '{}', headers: json })] as const]),
    ['a call with an unknown query', await client.request(`${address}?probe=`, { method })],
  ] as const
  for (const [what, { status }] of probes)
    if (status !== 402) {
      const fix = 'A priced route must answer 402 to every call without a payment, before it checks anything else.'
      report('402', `Answers ${status} to ${what}.`, fix)
    }
  const [[, answer]] = probes
  if (answer.status !== 402) return null
  checkSize(answer, report)
  checkHeaders(answer, report)
  await checkOptions(listed, address, client, report)
  return checkOffers(answer, listed, baseUrl, report)
}

function checkSize({ headers, text }: Answer, report: Report): void {
  const length = headers.get('payment-required')?.length ?? 0
  if (length > HEADER_BYTES)
    report(
      'header-size',
      `Its PAYMENT-REQUIRED header is ${length} characters long.`,
      `Shorten the summary, the description or the schemas: proxies drop headers above ${HEADER_BYTES} bytes.`,
    )
  const bytes = Buffer.byteLength(text)
  if (bytes > BODY_BYTES)
    report(
      'body-size',
      `The body of its 402 has ${bytes} bytes.`,
      `Shorten the example or the schemas: indexers read ${BODY_BYTES} bytes.`,
    )
}

function checkHeaders({ headers }: Answer, report: Report): void {
  if (!/\bno-store\b/.test(headers.get('cache-control') ?? ''))
    report('cache', 'Its 402 may be cached.', 'Send cache-control: no-store with every 402.')
  if (headers.get('access-control-allow-origin') === null)
    report('cors', 'A page in a browser cannot read its 402.', 'Send access-control-allow-origin with the 402, too.')
  const exposed = listOf(headers.get('access-control-expose-headers'))
  const hidden = EXPOSED.filter((name) => !exposed.includes(name))
  if (hidden.length > 0)
    report('cors', `Its 402 hides ${hidden.join(', ')} from pages.`, 'List them in access-control-expose-headers.')
}

async function checkOptions(
  { method }: ListedOperation,
  address: string,
  client: Client,
  report: Report,
): Promise<void> {
  const asked = { origin: 'https://buyer.example', 'access-control-request-method': method }
  const { status, headers } = await client.request(address, {
    method: 'OPTIONS',
    headers: { ...asked, 'access-control-request-headers': SENT.join(',') },
  })
  const allowed = listOf(headers.get('access-control-allow-headers'))
  const methods = listOf(headers.get('access-control-allow-methods'))
  const isOpen = headers.get('access-control-allow-origin') !== null
  const missing = SENT.filter((name) => !allowed.includes(name))
  if (status >= 300 || !isOpen || missing.length > 0 || !methods.includes(method.toLowerCase()))
    report(
      'cors',
      `OPTIONS answers ${status} and does not allow ${[method, ...missing].join(', ')} from other origins.`,
      'Answer OPTIONS with 204 and the access-control-allow-* headers.',
    )
}

const listOf = (list: string | null): string[] => (list ?? '').toLowerCase().split(/\s*,\s*/)

/** Checks both versions of the 402: their shape, that they agree, and what they tell an indexer. */
function checkOffers(
  { headers, json }: Answer,
  listed: ListedOperation,
  baseUrl: string,
  report: Report,
): string | null {
  const header = headers.get('payment-required')
  const v2 = header === null ? undefined : parseJson(Buffer.from(header, 'base64').toString('utf8'))
  if (v2 === undefined)
    report('v2', 'Has no PAYMENT-REQUIRED header with base64-encoded JSON.', 'Send the x402 v2 object in it.')
  const [invalid2, invalid1] = [v2 === undefined ? null : invalidV2(v2), invalidV1(json)]
  if (invalid2)
    report(
      'v2',
      `Its v2 object is invalid: ${invalid2}.`,
      'See the x402 specification v2. A description may have at most 500 characters.',
    )
  if (invalid1)
    report(
      'v1',
      `Its v1 object is invalid: ${invalid1}.`,
      'See the x402 specification v1. A description may have at most 500 characters.',
    )
  const [all2, all1] = [itemsOf(fieldsOf(v2)['accepts']), itemsOf(fieldsOf(json)['accepts'])]
  const [[first2], [first1]] = [all2, all1]
  // Each v1 entry has a v2 entry for the same token. Networks without a v1 name only have a v2 entry.
  for (const one of all1) {
    const counterpart = all2.find(({ asset }) => asset === one['asset']) ?? first2
    for (const [field, other] of [
      ['asset', 'asset'],
      ['amount', 'maxAmountRequired'],
      ['payTo', 'payTo'],
    ] as const)
      if (counterpart?.[field] !== one[other])
        report('offers', `Versions 1 and 2 differ in ${field}.`, 'Generate both from the same requirements.')
  }
  if (all2.some(({ amount }) => amount !== first2?.['amount']))
    report('offers', 'The price differs between networks.', 'Ask the same price on every network.')
  checkResource(fieldsOf(fieldsOf(v2)['resource'])['url'] ?? first1?.['resource'], baseUrl, report)
  if (v2 !== undefined) checkDiscovery(fieldsOf(fieldsOf(fieldsOf(v2)['extensions'])['bazaar']), listed, report)
  const amount = first2?.['amount'] ?? first1?.['maxAmountRequired']
  return typeof amount === 'string' ? amount : null
}

function checkResource(url: unknown, baseUrl: string, report: Report): void {
  if (typeof url !== 'string' || !URL.canParse(url)) return
  if (!url.startsWith(`${baseUrl}/`))
    report('address', `Gives its address as ${url}.`, `Set BASE_URL to the address buyers use: ${baseUrl}.`)
}

/** Checks what an indexer lists: how to call the route, what it answers, and that its example call matches its schema. */
function checkDiscovery(bazaar: Fields, { method, path, operation }: ListedOperation, report: Report): void {
  const { info, schema, routeTemplate } = bazaar
  if (typeof schema !== 'object' || schema === null)
    return report(
      'discovery',
      'Its PAYMENT-REQUIRED header has no bazaar extension, without which indexers do not list it.',
      'Add extensions.bazaar with info and schema.',
    )
  const wrong = violationOf(schema, info)
  if (wrong)
    report('discovery', `Its example call does not match its own schema: ${wrong}.`, 'Fix the example or the schema.')
  const { input, output } = fieldsOf(info)
  const named = fieldsOf(input)['method']
  if (named !== method) report('discovery', `Is described as ${String(named)}.`, `Describe it as ${method}.`)
  if (path.includes('{') && routeTemplate !== path.replace(/\{([^}]+)\}/g, ':$1'))
    report('discovery', `Has the route template ${String(routeTemplate)}.`, 'Name the parameters of its path in it.')
  const shapes = fieldsOf(fieldsOf(schema)['properties'])
  const { example: answer } = fieldsOf(fieldsOf(shapes['output'])['properties'])
  if (fieldsOf(output)['example'] === undefined && answer === undefined)
    report('discovery', 'Says nothing of its answer.', 'Give it an example with a response in the catalog.')
  const { body } = fieldsOf(fieldsOf(shapes['input'])['properties'])
  if (fieldsOf(operation['requestBody'])['required'] === true && body === undefined)
    report('discovery', 'Says nothing of the body that it needs.', 'Describe the body in the catalog.')
}

const address = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' }
const amount = { type: 'string', pattern: '^[1-9][0-9]{0,30}$' }
const description = { type: 'string', minLength: 1, maxLength: 500 }
const extra = {
  type: 'object',
  required: ['name', 'version'],
  properties: { name: { type: 'string', minLength: 1 }, version: { type: 'string', minLength: 1 } },
}
const seconds = { type: 'integer', minimum: 1 }

/** The object of PAYMENT-REQUIRED as x402 v2 clients and indexers require it. */
const V2 = {
  type: 'object',
  required: ['x402Version', 'resource', 'accepts'],
  properties: {
    x402Version: { const: 2 },
    error: { type: 'string' },
    resource: {
      type: 'object',
      required: ['url', 'description', 'mimeType'],
      properties: { url: { type: 'string', format: 'uri' }, description, mimeType: { type: 'string', minLength: 3 } },
    },
    accepts: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds'],
        properties: {
          scheme: { type: 'string', minLength: 1 },
          network: { type: 'string', pattern: '^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$' },
          amount,
          asset: address,
          payTo: address,
          maxTimeoutSeconds: seconds,
          extra,
        },
      },
    },
    extensions: {
      type: 'object',
      required: ['bazaar'],
      properties: {
        bazaar: {
          type: 'object',
          required: ['info', 'schema'],
          properties: { info: { type: 'object', required: ['input'] }, schema: { type: 'object' } },
        },
      },
    },
  },
}

/** The body of a 402 as x402 v1 clients and indexers require it. */
const V1 = {
  type: 'object',
  required: ['x402Version', 'error', 'accepts'],
  properties: {
    x402Version: { const: 1 },
    error: { type: 'string', minLength: 1 },
    accepts: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: [
          'scheme',
          'network',
          'maxAmountRequired',
          'resource',
          'description',
          'mimeType',
          'payTo',
          'maxTimeoutSeconds',
          'asset',
        ],
        properties: {
          scheme: { const: 'exact' },
          network: { type: 'string', pattern: '^[a-z0-9-]+$' },
          maxAmountRequired: amount,
          resource: { type: 'string', format: 'uri' },
          description,
          mimeType: { type: 'string' },
          payTo: address,
          maxTimeoutSeconds: seconds,
          asset: address,
          extra,
        },
      },
    },
  },
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
const [valid2, valid1] = [ajv.compile(V2), ajv.compile(V1)]

/** Returns what is wrong with the object of the PAYMENT-REQUIRED header, or null. */
const invalidV2 = (value: unknown): string | null => errorsOf(valid2, value)
/** Returns what is wrong with the body of a 402, or null. */
const invalidV1 = (value: unknown): string | null => errorsOf(valid1, value)

/** How schemas of the service are read. */
const FOREIGN: Options = { strict: false, allErrors: true, validateFormats: false, ...COMPILED_SOON }
/** Checks schemas by their meta-schema. It is shared, because compiling the meta-schema takes longer than most schemas. */
const metaSchema = new Ajv2020(FOREIGN)

/** Returns how a value violates a schema that the service sent, or null. */
function violationOf(schema: object, value: unknown): string | null {
  try {
    // An invalid schema throws.
    void metaSchema.validateSchema(schema, true)
    // An instance of its own, because two routes may send schemas with the same $id.
    return errorsOf(new Ajv2020({ ...FOREIGN, validateSchema: false }).compile(schema), value)
  } catch (error) {
    return `the schema itself: ${(error as Error).message}`
  }
}

function errorsOf(validate: ValidateFunction, value: unknown): string | null {
  if (validate(value)) return null
  return (validate.errors ?? [])
    .slice(0, 3)
    .map(({ instancePath, message }) => `${instancePath || 'the object'} ${message ?? 'is wrong'}`)
    .join('; ')
}
