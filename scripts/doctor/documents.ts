/** Every document of a service: there, well formed, and in agreement with what the routes really ask. */
import type { Findings } from './finding.ts'
import { type Listed, operationsOf, pricesInText, pricesOf } from './listing.ts'
import { fieldsOf, type Heard, itemsOf, type Wire } from './wire.ts'
import type { Place } from './challenge.ts'

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
export type Documents = ReadonlyMap<DocumentPath, Heard>

/** Reads them all; what is not there, or of another media type than it should be, is reported. */
export async function readDocuments(wire: Wire, findings: Findings): Promise<Documents> {
  const read = new Map<DocumentPath, Heard>()
  await wire.each(DOCUMENTS, async (path) => {
    const heard = await wire.ask(path)
    const report = findings.at(path)
    const type = heard.headers.get('content-type') ?? ''
    if (heard.status !== 200) report('document', `Answers ${heard.status}.`, 'Serve it free, without a redirect.')
    else if (!expected(path).test(type))
      report('document', `Is sent as ${type || 'nothing'}.`, `Send it as ${path.slice(path.lastIndexOf('.') + 1)}.`)
    else if (expected(path) === JSON_TYPE && heard.json === undefined) report('document', 'Is not JSON.', 'Mend it.')
    read.set(path, heard)
  })
  return read
}

const JSON_TYPE = /^application\/([\w.-]+\+)?json\b/

function expected(path: DocumentPath): RegExp {
  if (path.endsWith('.txt')) return /^text\/plain\b/
  return path.endsWith('.xml') ? /^(application|text)\/xml\b/ : JSON_TYPE
}

/** The words of each document, where they are for themselves. */
export function checkWords(documents: Documents, { baseUrl }: Place, findings: Findings): void {
  const openapi = fieldsOf(documents.get('/openapi.json')?.json)
  const x402 = fieldsOf(documents.get('/.well-known/x402')?.json)
  const said = (path: DocumentPath): string => documents.get(path)?.text ?? ''
  if (!String(openapi['openapi']).startsWith('3.1.'))
    findings.at('/openapi.json')('openapi', 'Is not OpenAPI 3.1.', 'Write "openapi": "3.1.1".')
  const server = itemsOf(openapi['servers'])[0]?.['url']
  if (server !== baseUrl)
    findings.at('/openapi.json')(
      'address',
      `Names the server ${String(server)}.`,
      `Set BASE_URL to ${baseUrl}; or, where that is right and you look from inside, add --as ${String(server)}.`,
    )
  if (x402['version'] !== 1)
    findings.at('/.well-known/x402')('discovery', 'Has no "version": 1.', 'Indexers read the format by it: add it.')
  if (!/^# \S/.test(said('/llms.txt')) || !/^> \S/m.test(said('/llms.txt')))
    findings.at('/llms.txt')('llms', 'Does not begin with a title and a summary.', 'Write "# Name", then "> Summary".')
  for (const path of ['/openapi.json', '/.well-known/', '/pricing.json', '/llms.txt', '/v1/'])
    if (
      said('/robots.txt')
        .split('\n')
        .some((line) => /^disallow:\s*\S/i.test(line) && path.startsWith(line.replace(/^disallow:\s*/i, '').trim()))
    )
      findings.at('/robots.txt')('robots', `Keeps crawlers from ${path}.`, 'Remove that line.')
  if (itemsOf(fieldsOf(documents.get('/.well-known/jwks.json')?.json)['keys']).length === 0)
    findings.at('/.well-known/jwks.json')('keys', 'Has no key.', 'Publish the public keys of the access tokens.')
  if (itemsOf(fieldsOf(documents.get('/.well-known/api-catalog')?.json)['linkset']).length === 0)
    findings.at('/.well-known/api-catalog')('catalog', 'Has no linkset.', 'See RFC 9727.')
  checkHealth(fieldsOf(documents.get('/health')?.json), findings)
}

function checkHealth({ status, products, mistakes, settler }: ReturnType<typeof fieldsOf>, findings: Findings): void {
  if (status === 'ok') return
  const report = findings.at('/health')
  const ill = itemsOf(products).filter((product) => product['status'] !== 'ok')
  for (const product of ill)
    report('health', `${String(product['product'])} is ${String(product['status'])}.`, String(product['reason']))
  for (const { file, pointer, message } of itemsOf(mistakes))
    report('health', `${String(file)}#${String(pointer)} has a mistake.`, String(message))
  const { ready, reason } = fieldsOf(settler)
  if (ready !== true)
    report('health', 'Payments cannot be settled.', typeof reason === 'string' ? reason : 'Look at the settler.')
  if (ill.length === 0 && itemsOf(mistakes).length === 0 && ready === true)
    report('health', `Says ${String(status)}.`, 'It should say "ok".')
}

/** Every document against every route: the same routes everywhere, at the price that is really asked. */
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
      const [said, asked] = [prices.get(route), live.get(route)]
      if (said === undefined) findings.at(path)('agreement', `Does not list ${route}.`, 'List every priced route.')
      else if (typeof asked === 'string' && said !== asked)
        findings.at(path)('price', `Says ${said} for ${route}, which asks ${asked}.`, 'Make it from the catalog.')
    }
  checkResources(documents, priced, place, findings)
}

/** The absolute addresses that indexers call. */
function checkResources(documents: Documents, priced: readonly Listed[], { baseUrl }: Place, findings: Findings): void {
  const report = findings.at('/.well-known/x402')
  const resources = fieldsOf(documents.get('/.well-known/x402')?.json)['resources']
  const listed = new Set(Array.isArray(resources) ? resources.map(String) : [])
  for (const { address, route } of priced)
    if (address !== null && !listed.delete(baseUrl + address))
      report('resources', `Has no resource for ${route}.`, `Add ${baseUrl}${address}.`)
  for (const resource of listed)
    report('resources', `Lists ${resource}, which is no priced route.`, 'Remove it, or describe it in /openapi.json.')
}
