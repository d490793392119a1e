/** Checks every document of a service: it exists, is well formed, and agrees with the prices that the routes ask. */
import type { Findings, Report } from './findings.ts'
import { type Answer, type Client, type Fields, fieldsOf, itemsOf, type Place } from './client.ts'

export const DOCUMENTS = [
  '/openapi.json',
  '/.well-known/x402',
  '/pricing.json',
  '/llms.txt',
  '/sitemap.xml',
  '/robots.txt',
  '/health',
  '/.well-known/api-catalog',
  '/.well-known/jwks.json',
] as const

export type DocumentPath = (typeof DOCUMENTS)[number]
export type Documents = ReadonlyMap<DocumentPath, Answer>

/** Reads every document, and reports those that are missing or have the wrong media type. */
export async function readDocuments(client: Client, findings: Findings): Promise<Documents> {
  const read = new Map<DocumentPath, Answer>()
  await client.forEach(DOCUMENTS, async (path) => {
    const answer = await client.request(path)
    const report = findings.at(path)
    const type = answer.headers.get('content-type') ?? ''
    if (answer.status !== 200) report('document', `Answers ${answer.status}.`, 'Serve it free, without a redirect.')
    else if (!expected(path).test(type))
      report('document', `Is sent as ${type || 'nothing'}.`, `Send it as ${path.slice(path.lastIndexOf('.') + 1)}.`)
    else if (expected(path) === JSON_TYPE && answer.json === undefined) report('document', 'Is not JSON.', 'Fix it.')
    read.set(path, answer)
  })
  return read
}

const JSON_TYPE = /^application\/([\w.-]+\+)?json\b/

function expected(path: DocumentPath): RegExp {
  if (path.endsWith('.txt')) return /^text\/plain\b/
  return path.endsWith('.xml') ? /^(application|text)\/xml\b/ : JSON_TYPE
}

/** Checks the contents of each document on its own. */
export function checkContents(documents: Documents, { baseUrl }: Place, findings: Findings): void {
  const openapi = fieldsOf(documents.get('/openapi.json')?.json)
  const x402 = fieldsOf(documents.get('/.well-known/x402')?.json)
  const textOf = (path: DocumentPath): string => documents.get(path)?.text ?? ''
  if (!String(openapi['openapi']).startsWith('3.1.'))
    findings.at('/openapi.json')('openapi', 'Is not OpenAPI 3.1.', 'Write "openapi": "3.1.1".')
  const server = itemsOf(openapi['servers'])[0]?.['url']
  if (server !== baseUrl)
    findings.at('/openapi.json')(
      'address',
      `Names the server ${String(server)}.`,
      `Set BASE_URL to ${baseUrl}. If BASE_URL is right and you run the doctor from inside, add --as ${String(server)}.`,
    )
  if (x402['version'] !== 1)
    findings.at('/.well-known/x402')(
      'discovery',
      'Has no "version": 1.',
      'Add it: indexers use it to recognise the format.',
    )
  if (!/^# \S/.test(textOf('/llms.txt')) || !/^> \S/m.test(textOf('/llms.txt')))
    findings.at('/llms.txt')(
      'llms',
      'Does not begin with a title and a summary.',
      'Begin with "# Name" and "> Summary".',
    )
  for (const path of ['/openapi.json', '/.well-known/', '/pricing.json', '/llms.txt', '/v1/'])
    if (
      textOf('/robots.txt')
        .split('\n')
        .some((line) => /^disallow:\s*\S/i.test(line) && path.startsWith(line.replace(/^disallow:\s*/i, '').trim()))
    )
      findings.at('/robots.txt')('robots', `Disallows ${path} for crawlers.`, 'Remove that line.')
  if (itemsOf(fieldsOf(documents.get('/.well-known/jwks.json')?.json)['keys']).length === 0)
    findings.at('/.well-known/jwks.json')('keys', 'Has no key.', 'Publish the public keys of the access tokens.')
  if (itemsOf(fieldsOf(documents.get('/.well-known/api-catalog')?.json)['linkset']).length === 0)
    findings.at('/.well-known/api-catalog')('catalog', 'Has no linkset.', 'See RFC 9727.')
  checkHealth(fieldsOf(documents.get('/health')?.json), findings)
}

/** Reports the settings that the service itself warns of. */
export function checkWarnings({ warnings }: ReturnType<typeof fieldsOf>, findings: Findings): void {
  for (const { code, message } of itemsOf(warnings))
    findings.advise('/health', 'warning', `Warns of ${String(code)}.`, String(message))
}

function checkHealth(
  { status, products, mistakes, settler, journal, freshness }: ReturnType<typeof fieldsOf>,
  findings: Findings,
): void {
  if (status === 'ok') return
  const before = findings.list.length
  const report = findings.at('/health')
  for (const { product, status, reason } of itemsOf(products))
    if (status !== 'ok') report('health', `${String(product)} is ${String(status)}.`, String(reason))
  for (const stale of itemsOf(freshness)) if (stale['status'] === 'stale') reportStale(stale, report)
  for (const { file, pointer, message } of itemsOf(mistakes))
    report('health', `${String(file)}#${String(pointer)} has an error.`, String(message))
  const { ready, reason } = fieldsOf(settler)
  if (ready !== true)
    report('health', 'Payments cannot be settled.', typeof reason === 'string' ? reason : 'Check the settler.')
  if (fieldsOf(journal)['ready'] === false)
    report(
      'health',
      'Payments cannot be recorded, so none is taken.',
      'The log of the gateway says why: a full or read-only disk, or a damaged file (docs/operations.md, A full disk).',
    )
  if (findings.list.length === before)
    report('health', `Reports the status ${String(status)}.`, 'It should report "ok".')
}

/** Reports an operation that is not sold because of its data: what they lack, since when, and what to do. */
function reportStale({ operation, route, request, missing, required, found, reason }: Fields, report: Report): void {
  const { newest, sources } = fieldsOf(found)
  const needed = fieldsOf(required)['sources']
  const lacking = Array.isArray(missing) ? missing.map(String) : []
  const since = typeof newest === 'string' ? ` Its newest data are from ${newest}.` : ''
  const delivering =
    typeof sources === 'number'
      ? ` ${sources} ${sources === 1 ? 'source delivers' : 'sources deliver'} data, ${typeof needed === 'number' ? needed : 1} must.`
      : ''
  const isDown = lacking.includes('sources') || lacking.includes('newest')
  report(
    'stale',
    `${String(request ?? route)} is not sold, because its data are not fresh enough: ${String(reason)}${since}${delivering}`,
    isDown
      ? `Find the source that fails in the log of the gateway: it names sources with their product. Check that this machine reaches it, and its settings in the product's document. Sales of ${String(operation)} go on by themselves when it delivers.`
      : `The log of the gateway has what the product of ${String(operation)} reports. Sales go on by themselves when its data are there.`,
  )
}

/** Reports the alarms that only the operator may read, such as operations whose settlement costs more than their price allows. */
export async function checkAlarms(client: Client, token: string, findings: Findings): Promise<void> {
  const { status, json } = await client.request('/operator', {
    headers: { accept: 'application/json', authorization: `Bearer ${token}` },
  })
  if (status !== 200) {
    findings.at('/operator')('alarm', `Answers ${status} to OPERATOR_TOKEN.`, 'Use the OPERATOR_TOKEN of the service.')
    return
  }
  for (const { name, message } of itemsOf(fieldsOf(json)['alarms']))
    findings.at('/operator')(
      'alarm',
      `The alarm ${String(name)} is raised: ${String(message)}`,
      name === 'gas.above_price'
        ? 'They are sold all the same. Raise their prices, settle on a cheaper network ("accepts"), or raise GAS_MAX_PERCENT.'
        : 'docs/operations.md, Alarms, says what it means.',
    )
}

/** Checks that every document lists the same routes, at the prices that the routes really ask. */
export function checkAgreement(
  documents: Documents,
  live: ReadonlyMap<string, string | null>,
  place: Place,
  findings: Findings,
): void {
  const priced = operationsOf(documents.get('/openapi.json')?.json).filter(({ price }) => price !== null)
  const lists: readonly (readonly [DocumentPath, ReadonlyMap<string, string>])[] = [
    ['/openapi.json', new Map(priced.map(({ route, price }) => [route, price as string]))],
    ['/pricing.json', pricesOf(fieldsOf(documents.get('/pricing.json')?.json)['prices_usd'])],
    ['/.well-known/x402', pricesOf(fieldsOf(documents.get('/.well-known/x402')?.json)['paid_endpoints'])],
    ['/llms.txt', pricesInText(documents.get('/llms.txt')?.text ?? '')],
  ]
  const routes = new Set(lists.flatMap(([, prices]) => [...prices.keys()]))
  for (const [path, prices] of lists)
    for (const route of routes) {
      const [documented, asked] = [prices.get(route), live.get(route)]
      if (documented === undefined)
        findings.at(path)('agreement', `Does not list ${route}.`, 'List every priced route.')
      else if (typeof asked === 'string' && documented !== asked)
        findings.at(path)(
          'price',
          `Gives the price of ${route} as ${documented}, but it asks ${asked}.`,
          'Generate it from the catalog.',
        )
    }
  checkResources(documents, priced, place, findings)
}

/** Checks the absolute addresses that indexers call. */
function checkResources(
  documents: Documents,
  priced: readonly ListedOperation[],
  { baseUrl }: Place,
  findings: Findings,
): void {
  const report = findings.at('/.well-known/x402')
  const resources = fieldsOf(documents.get('/.well-known/x402')?.json)['resources']
  const listed = new Set(Array.isArray(resources) ? resources.map(String) : [])
  for (const { address, route } of priced)
    if (address !== null && !listed.delete(baseUrl + address))
      report('resources', `Has no resource for ${route}.`, `Add ${baseUrl}${address}.`)
  for (const resource of listed)
    report(
      'resources',
      `Lists ${resource}, which is not a priced route.`,
      'Remove it, or describe it in /openapi.json.',
    )
}

/** An operation as /openapi.json lists it. */
export interface ListedOperation {
  readonly id: string
  readonly method: string
  /** "/v1/x/gold/{day}". */
  readonly path: string
  /** "GET /v1/x/gold/*". */
  readonly route: string
  /** An address below the base that can be called, filled with examples; null if an example is missing. */
  readonly address: string | null
  /** Atomic units, or null if it is free. */
  readonly price: string | null
  readonly tool: string | null
  readonly operation: Fields
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** Returns the operations of an OpenAPI document in order. */
export function operationsOf(openapi: unknown): ListedOperation[] {
  return Object.entries(fieldsOf(fieldsOf(openapi)['paths'])).flatMap(([path, methods]) =>
    METHODS.flatMap((verb): ListedOperation[] => {
      const operation = fieldsOf(fieldsOf(methods)[verb])
      if (Object.keys(operation).length === 0) return []
      const method = verb.toUpperCase()
      const { 'x-payment-info': payment, 'x-mcp-tool': tool } = operation
      const [offer] = itemsOf(fieldsOf(payment)['offers'])
      return [
        {
          id: String(operation['operationId']),
          method,
          path,
          route: `${method} ${path.replace(/\{[^}]+\}/g, '*')}`,
          address: addressOf(path, operation),
          price: payment === undefined ? null : String(offer?.['amount']),
          tool: typeof tool === 'string' ? tool : null,
          operation,
        },
      ]
    }),
  )
}

function addressOf(path: string, operation: Fields): string | null {
  const examples = new Map(itemsOf(operation['parameters']).map(({ name, example }) => [name, example]))
  const filled = path.replace(/\{([^}]+)\}/g, (braces, name: string) => {
    const example = examples.get(name)
    return typeof example === 'string' || typeof example === 'number' ? encodeURIComponent(example) : braces
  })
  return filled.includes('{') ? null : filled
}

/**
 * Converts a price in dollars to atomic units. Returns any other text unchanged, so that a comparison reports it.
 *
 * @example atomic('$0.005') // '5000'
 */
export function atomic(dollars: unknown): string {
  const text = typeof dollars === 'number' ? dollars.toFixed(6) : String(dollars).replace(/^\$/, '')
  const [whole = '', fraction = ''] = text.split('.')
  return /^\d+$/.test(whole) && /^\d{0,6}0*$/.test(fraction)
    ? String(BigInt(whole + fraction.slice(0, 6).padEnd(6, '0')))
    : text
}

/** Returns the prices of a document by route, in atomic units. */
function pricesOf(list: unknown): ReadonlyMap<string, string> {
  return new Map(Object.entries(fieldsOf(list)).map(([route, price]) => [route, atomic(price)]))
}

/** Returns the prices in an llms.txt by route: `- [GET /v1/a](...): $0.005. Summary.` */
function pricesInText(text: string): ReadonlyMap<string, string> {
  return new Map(
    [...text.matchAll(/^- \[([A-Z]+ \/[^\]]*)\]\([^)]*\): \$([\d.]*\d)/gm)].map((match) => [
      match[1] as string,
      atomic(match[2]),
    ]),
  )
}
