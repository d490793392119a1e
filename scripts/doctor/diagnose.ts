/** Examines a service from outside, as an indexer and as a buyer without money. It pays nothing and changes nothing. */
import { checkAnchors } from './anchors.ts'
import { checkRoute } from './challenge.ts'
import { checkContract, checkTools } from './contract.ts'
import {
  checkAgreement,
  checkAlarms,
  checkContents,
  checkWarnings,
  type Documents,
  operationsOf,
  readDocuments,
} from './documents.ts'
import { collectFindings, type Finding } from './findings.ts'
import { createClient, fieldsOf, type Place } from './client.ts'

export interface Diagnosis {
  readonly baseUrl: string
  /** How many of each were examined. */
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
 * Examines the service at an address. `as` is the address that buyers use, if it differs. With the token of its operator, also
 * its alarms. Throws if nothing answers.
 */
export async function diagnose(
  address: string,
  as: string = address,
  operatorToken: string | null = null,
): Promise<Diagnosis> {
  const url = new URL(as)
  const [asked, baseUrl] = [new URL(address), url].map(({ href }) => href.replace(/\/+$/, '')) as [string, string]
  const client = createClient(asked, baseUrl)
  const place: Place = { client, baseUrl }
  const findings = collectFindings()
  if (url.protocol !== 'https:' && !LOOPBACK.test(url.hostname))
    findings.at(baseUrl)(
      'https',
      'Does not use HTTPS.',
      'Payments travel in headers: terminate TLS in front of it and set BASE_URL.',
    )

  const documents = await readDocuments(client, findings)
  const none = { routes: 0, documents: documents.size, tools: 0, links: 0 }
  const mismatch = notASeller(asked, documents)
  if (mismatch) return { baseUrl, looked: none, findings: [mismatch] }
  checkContents(documents, place, findings)
  const listed = operationsOf(documents.get('/openapi.json')?.json)
  const priced = listed.filter(({ price }) => price !== null)
  if (priced.length === 0)
    findings.at('/openapi.json')('openapi', 'Has no priced operation.', 'Add x-payment-info to the priced operations.')
  const live = new Map<string, string | null>()
  await client.forEach(priced, async (operation) => {
    checkContract(operation, findings)
    live.set(operation.route, await checkRoute(operation, place, findings.at(operation.route)))
  })
  checkAgreement(documents, live, place, findings)
  const tools = await checkTools(asked, listed, findings)

  const inText = linksIn(documents.get('/llms.txt')?.text ?? '', /\]\((https?:[^)\s]+)\)/g)
  const inSitemap = linksIn(documents.get('/sitemap.xml')?.text ?? '', /<loc>([^<]+)<\/loc>/g)
  const targets = [...new Set([...inText, ...inSitemap])].filter((link) => link.startsWith(`${baseUrl}/`))
  const links = [...new Set(targets.map((link) => link.replace(/#.*$/, '')))]
  await client.forEach(links, async (link) => {
    const { status, headers } = await client.request(link)
    if (status >= 500 && headers.has('retry-after'))
      findings.advise(
        link,
        'link',
        'Asks clients to come back later.',
        'Run the doctor again once its data has loaded.',
      )
    else if (status !== 200 && status !== 402)
      findings.at(link)('link', `Is linked, but answers ${status}.`, 'Fix the link or its target.')
  })
  await checkAnchors(targets, client, findings)
  // The service has seen enough of us by now to know whether our address is hidden from it.
  checkWarnings(fieldsOf((await client.request('/health')).json), findings)
  if (operatorToken !== null) await checkAlarms(client, operatorToken, findings)
  const looked = { routes: priced.length, documents: documents.size, tools, links: links.length }
  return { baseUrl, looked, findings: findings.list }
}

/** Returns one finding if the service has none of a seller's documents: it is probably the wrong address. */
function notASeller(asked: string, documents: Documents): Finding | null {
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
    problem: `Sells nothing over x402: ${marks.map(([path]) => path).join(', ')} are missing or not JSON (status ${status}).`,
    fix: 'Something answers, but it is not Tollgate. Use the address that `npm start` prints, or that of the proxy.',
    isFault: true,
  }
}

function linksIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => (match[1] as string).replaceAll('&amp;', '&'))
}
