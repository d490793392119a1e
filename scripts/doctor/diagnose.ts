/** Looks a service over from outside: as an indexer, and as a buyer without money. Nothing is paid, nothing changed. */
import { checkRoute, type Place } from './challenge.ts'
import { checkContract, checkTools } from './contract.ts'
import { checkAgreement, checkWords, readDocuments } from './documents.ts'
import { collectFindings, type Finding } from './finding.ts'
import { operationsOf } from './listing.ts'
import { createWire } from './wire.ts'

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

/** Throws where nothing answers at the address. */
export async function diagnose(address: string): Promise<Diagnosis> {
  const url = new URL(address)
  const baseUrl = url.href.replace(/\/+$/, '')
  const wire = createWire(baseUrl)
  const place: Place = { wire, baseUrl }
  const findings = collectFindings()
  if (url.protocol !== 'https:' && !LOOPBACK.test(url.hostname))
    findings.at(baseUrl)('https', 'Is not https.', 'Payments travel in headers: put TLS in front and set BASE_URL.')

  const documents = await readDocuments(wire, findings)
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
  const tools = await checkTools(baseUrl, listed, findings)

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

function linksIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => (match[1] as string).replace(/#.*$/, '').replaceAll('&amp;', '&'))
}
