/** Looks a service over from outside: as an indexer, and as a buyer without money. Nothing is paid, nothing changed. */
import { checkRoute, type Place } from './challenge.ts'
import { checkContract, checkTools } from './contract.ts'
import { checkAgreement, checkWords, type Documents, readDocuments } from './documents.ts'
import { collectFindings, type Finding } from './finding.ts'
import { operationsOf } from './listing.ts'
import { createWire, fieldsOf } from './wire.ts'

export interface Diagnosis {
  readonly baseUrl: string
  /** What was looked at. */
  readonly looked: {
    readonly routes: number
    readonly documents: number
    readonly tools: number
    readonly links: number
  }
  readonly findings: readonly Finding[]
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/**
 * Looks at the service that answers at an address; `as` is the address buyers use, where that is another one. Throws
 * where nothing answers.
 */
export async function diagnose(address: string, as: string = address): Promise<Diagnosis> {
  const url = new URL(as)
  const [asked, baseUrl] = [new URL(address), url].map(({ href }) => href.replace(/\/+$/, '')) as [string, string]
  const wire = createWire(asked, baseUrl)
  const place: Place = { wire, baseUrl }
  const findings = collectFindings()
  if (url.protocol !== 'https:' && !LOOPBACK.test(url.hostname))
    findings.at(baseUrl)('https', 'Is not https.', 'Payments travel in headers: put TLS in front and set BASE_URL.')

  const documents = await readDocuments(wire, findings)
  const none = { routes: 0, documents: documents.size, tools: 0, links: 0 }
  const stranger = strangerAt(asked, documents)
  if (stranger) return { baseUrl, looked: none, findings: [stranger] }
  checkWords(documents, place, findings)
  const listed = operationsOf(documents.get('/openapi.json')?.json)
  const priced = listed.filter(({ price }) => price !== null)
  if (priced.length === 0)
    findings.at('/openapi.json')('openapi', 'Has no priced operation.', 'Give priced ones x-payment-info.')
  const live = new Map<string, string | null>()
  await wire.each(priced, async (operation) => {
    checkContract(operation, findings)
    live.set(operation.route, await checkRoute(operation, place, findings.at(operation.route)))
  })
  checkAgreement(documents, live, place, findings)
  const tools = await checkTools(asked, listed, findings)

  const links = [
    ...new Set([
      ...linksIn(documents.get('/llms.txt')?.text ?? '', /\]\((https?:[^)\s]+)\)/g),
      ...linksIn(documents.get('/sitemap.xml')?.text ?? '', /<loc>([^<]+)<\/loc>/g),
    ]),
  ].filter((link) => link.startsWith(`${baseUrl}/`))
  await wire.each(links, async (link) => {
    const { status, headers } = await wire.ask(link)
    if (status >= 500 && headers.has('retry-after'))
      findings.advise(link, 'link', 'Asks to come back later.', 'Look again once its data are there.')
    else if (status !== 200 && status !== 402)
      findings.at(link)('link', `Is linked to and answers ${status}.`, 'Mend the link, or what it leads to.')
  })
  const looked = { routes: priced.length, documents: documents.size, tools, links: links.length }
  return { baseUrl, looked, findings: findings.list }
}

/** What to say where none of the documents that sellers have is there: the address is somebody else's. */
function strangerAt(asked: string, documents: Documents): Finding | null {
  const marks = [
    ['/openapi.json', 'openapi'],
    ['/.well-known/x402', 'resources'],
    ['/pricing.json', 'prices_usd'],
  ] as const
  if (marks.some(([path, field]) => field in fieldsOf(documents.get(path)?.json))) return null
  const status = documents.get('/openapi.json')?.status ?? 0
  return {
    rule: 'service',
    where: asked,
    problem: `Sells nothing over x402: ${marks.map(([path]) => path).join(', ')} are not there, or not JSON (status ${status}).`,
    fix: 'Something answers, and it is no Tollgate. Give the address that `npm start` prints, or the one of the proxy.',
    isFault: true,
  }
}

function linksIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => (match[1] as string).replace(/#.*$/, '').replaceAll('&amp;', '&'))
}
