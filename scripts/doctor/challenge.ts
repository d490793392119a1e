/** The 402 of one route, as an indexer and a buyer without money see it. */
import type { Report } from './finding.ts'
import type { Listed } from './listing.ts'
import { wrongBy, wrongV1, wrongV2 } from './shapes.ts'
import { type Fields, fieldsOf, type Heard, itemsOf, parsed, type Wire } from './wire.ts'

/** Common proxies allow 8 KB for all headers of an answer, and some 4 KB for one. */
const HEADER_BYTES = 4096
const EXPOSED = ['payment-required', 'payment-response', 'x-payment-response']
const SENT = ['content-type', 'x-payment', 'payment-signature', 'x-service-token', 'idempotency-key']

export interface Place {
  readonly wire: Wire
  /** Without a trailing slash. */
  readonly baseUrl: string
}

/** Looks at a priced route from all sides. Returns what it really asks, in atomic units, or null where it asks nothing. */
export async function checkRoute(listed: Listed, { wire, baseUrl }: Place, report: Report): Promise<string | null> {
  const { method, address } = listed
  if (address === null) {
    report('example', 'Its path has a parameter without an example.', 'Write an example with params into the catalog.')
    return null
  }
  const json = { 'content-type': 'application/json' }
  const probes = [
    ['a bare call', await wire.ask(address, { method })],
    ...(method === 'GET' || method === 'DELETE'
      ? []
      : [['a call with {}', await wire.ask(address, { method, body: '{}', headers: json })] as const]),
    ['a call with an unknown query', await wire.ask(`${address}?probe=`, { method })],
  ] as const
  for (const [what, { status }] of probes)
    if (status !== 402) {
      const fix = 'A priced route answers 402 to whoever brings no payment, before it looks at anything else.'
      report('402', `Answers ${status} to ${what}.`, fix)
    }
  const [[, heard]] = probes
  if (heard.status !== 402) return null
  checkHeaders(heard, report)
  await checkOptions(listed, address, wire, report)
  return checkOffers(heard, listed, baseUrl, report)
}

function checkHeaders({ headers }: Heard, report: Report): void {
  const length = headers.get('payment-required')?.length ?? 0
  if (length > HEADER_BYTES)
    report(
      'header-size',
      `Its PAYMENT-REQUIRED header is ${length} characters long.`,
      `Shorten summary, description or schemas: proxies drop headers above ${HEADER_BYTES}.`,
    )
  if (!/\bno-store\b/.test(headers.get('cache-control') ?? ''))
    report('cache', 'Its 402 may be cached.', 'Send cache-control: no-store with every 402.')
  if (headers.get('access-control-allow-origin') === null)
    report(
      'cors',
      'Its 402 cannot be read by a page in a browser.',
      'Send access-control-allow-origin with the 402 too.',
    )
  const exposed = words(headers.get('access-control-expose-headers'))
  const hidden = EXPOSED.filter((name) => !exposed.includes(name))
  if (hidden.length > 0)
    report('cors', `Its 402 hides ${hidden.join(', ')} from pages.`, 'Name them in access-control-expose-headers.')
}

async function checkOptions({ method }: Listed, address: string, wire: Wire, report: Report): Promise<void> {
  const asked = { origin: 'https://buyer.example', 'access-control-request-method': method }
  const { status, headers } = await wire.ask(address, {
    method: 'OPTIONS',
    headers: { ...asked, 'access-control-request-headers': SENT.join(',') },
  })
  const allowed = words(headers.get('access-control-allow-headers'))
  const methods = words(headers.get('access-control-allow-methods'))
  const isOpen = headers.get('access-control-allow-origin') !== null
  const missing = SENT.filter((name) => !allowed.includes(name))
  if (status >= 300 || !isOpen || missing.length > 0 || !methods.includes(method.toLowerCase()))
    report(
      'cors',
      `OPTIONS answers ${status} and does not allow ${[method, ...missing].join(', ')} from elsewhere.`,
      'Answer OPTIONS with 204 and the access-control-allow-* headers.',
    )
}

const words = (list: string | null): string[] => (list ?? '').toLowerCase().split(/\s*,\s*/)

/** Both versions of the offer: their shape, that they say the same, and what they say of themselves. */
function checkOffers({ headers, json }: Heard, { method }: Listed, baseUrl: string, report: Report): string | null {
  const header = headers.get('payment-required')
  const v2 = header === null ? undefined : parsed(Buffer.from(header, 'base64').toString('utf8'))
  if (v2 === undefined)
    report('v2', 'Has no PAYMENT-REQUIRED header with base64 of JSON.', 'Send the x402 v2 object in it.')
  const [wrong2, wrong1] = [v2 === undefined ? null : wrongV2(v2), wrongV1(json)]
  if (wrong2)
    report(
      'v2',
      `Its v2 offer is wrong: ${wrong2}.`,
      'See the x402 specification v2; descriptions have at most 500 characters.',
    )
  if (wrong1)
    report(
      'v1',
      `Its v1 offer is wrong: ${wrong1}.`,
      'See the x402 specification v1; descriptions have at most 500 characters.',
    )
  const [all2, all1] = [itemsOf(fieldsOf(v2)['accepts']), itemsOf(fieldsOf(json)['accepts'])]
  const [[first2], [first1]] = [all2, all1]
  // A v1 offer of one network stands beside the v2 offer of the same token; networks without a v1 name have only that.
  for (const one of all1) {
    const twin = all2.find(({ asset }) => asset === one['asset']) ?? first2
    for (const [field, other] of [
      ['asset', 'asset'],
      ['amount', 'maxAmountRequired'],
      ['payTo', 'payTo'],
    ] as const)
      if (twin?.[field] !== one[other])
        report('offers', `The two offers differ in ${field}.`, 'Make both of one set of requirements.')
  }
  if (all2.some(({ amount }) => amount !== first2?.['amount']))
    report('offers', 'The price is another one on another network.', 'Ask one price on every network.')
  checkResource(fieldsOf(fieldsOf(v2)['resource'])['url'] ?? first1?.['resource'], baseUrl, report)
  checkDiscovery(fieldsOf(fieldsOf(fieldsOf(v2)['extensions'])['bazaar']), method, report)
  const amount = first2?.['amount'] ?? first1?.['maxAmountRequired']
  return typeof amount === 'string' ? amount : null
}

function checkResource(url: unknown, baseUrl: string, report: Report): void {
  if (typeof url !== 'string' || !URL.canParse(url)) return
  if (!url.startsWith(`${baseUrl}/`))
    report('address', `Says it is at ${url}.`, `Set BASE_URL to the address buyers use: ${baseUrl}.`)
}

/** What an indexer lists: the example call must hold against its own schema. */
function checkDiscovery({ info, schema }: Fields, method: string, report: Report): void {
  if (typeof schema !== 'object' || schema === null) return
  const wrong = wrongBy(schema, info)
  if (wrong) report('discovery', `Its example call breaks its own schema: ${wrong}.`, 'Mend the example or the schema.')
  const named = fieldsOf(fieldsOf(info)['input'])['method']
  if (named !== method) report('discovery', `Is described as ${String(named)}.`, `Describe it as ${method}.`)
}
