/** The pages to photograph. Reports and a receipt are created first. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Hex } from '../../../gateway/config/networks.ts'
import { privateKeyToAccount } from 'viem/accounts'
import { createBuyer } from '../../../gateway/client/buyer.ts'

/** A page and the request that shows it. */
export interface PageRequest {
  /** Name of its picture. */
  readonly name: string
  readonly path: string
  /** The status that it must have. */
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

const ledgers = resolve(import.meta.dirname, '../../../views/assets/ledgers')
const sample = (name: string): string => readFileSync(join(ledgers, name), 'utf8')

const PAPER = 'sharpe=2.5&days=1250&trials=100&skew=-3&kurt=10&sr_variance=0.5&periods_per_year=250'

/** Returns the pages of a running service. `buyer` is the private key that pays for the receipt. */
export async function pagesOf(url: string, buyer: Hex): Promise<readonly PageRequest[]> {
  const [good, flawed, manyFindings, receipt] = await Promise.all([
    audited(url, { file: steadyLedger(), n_trials: '5' }),
    audited(url, { file: withImpossibleFills(sample('round-trips.csv')), bars: sample('bars.csv'), n_trials: '200' }),
    audited(url, { file: tradesOutsideBars(), bars: calmBars() }),
    receiptOf(url, buyer),
  ])
  return [
    ...okPages({
      home: '/',
      'home-err': '/?err=validation_failed',
      pricing: '/pricing',
      'founding-ok': '/pricing?ok=1',
      methodology: '/methodology',
      guard: '/guard',
      strategies: '/strategies',
      calculator: '/tools/deflated-sharpe-calculator',
      'calculator-result': `/tools/deflated-sharpe-calculator?${PAPER}`,
      'audit-tool': '/audit-tool',
      'audit-tool-err': '/audit-tool?err=validation_failed',
      'report-sample': '/report/sample',
      'report-good': good,
      'report-flawed': flawed,
      'report-many': manyFindings,
      docs: '/docs',
      'docs-operation': '/docs/getRegimeCurrent',
      'docs-operation-body': '/docs/checkBarQuality',
      receipt: '/receipt',
      'receipt-valid': `/receipt?jws=${receipt}`,
      'receipt-invalid': `/receipt?jws=${receipt.slice(0, -8)}AAAAAAAA`,
      'founding-leave': '/founding/leave/AAAAAAAAAAAAAAAAAAAAAAAA',
    }),
    { name: 'calculator-422', path: '/tools/deflated-sharpe-calculator?sharpe=high&days=1', status: 422 },
    { name: '402', path: '/v1/regime/current', status: 402 },
    { name: '402-refused', path: '/v1/regime/current', status: 402, headers: { 'x-payment': 'bm90IGEgcGF5bWVudA==' } },
    { name: '404', path: '/nowhere', status: 404 },
    { name: '410', path: '/v1/regime/now', status: 410 },
    { name: '413', path: '/faults/body_too_large', status: 413 },
    { name: '422', path: '/pricing?ok=many', status: 422 },
    { name: '500', path: '/broken', status: 500 },
    { name: '503', path: '/faults/product_suspended', status: 503 },
  ]
}

/** Returns the pages of the operator console, including the login page. */
export function consolePages(token: string): readonly PageRequest[] {
  const headers = { authorization: `Bearer ${token}` }
  const screens = ['', '/ledger', '/subscriptions', '/reconciliation', '/products', '/prices', '/catalog']
  const pages = screens.map((screen) => ({
    name: `operator${screen.replace('/', '-')}`,
    path: `/operator${screen}`,
    status: 200,
    headers,
  }))
  return [...pages, { name: 'operator-login', path: '/operator', status: 401 }]
}

/** Pages that answer 200. */
const okPages = (paths: Readonly<Record<string, string>>): PageRequest[] =>
  Object.entries(paths).map(([name, path]) => ({ name, path, status: 200 }))

/** Audits a ledger and returns the path of its report. */
async function audited(url: string, fields: Readonly<Record<string, string>>): Promise<string> {
  const form = new FormData()
  for (const [name, text] of Object.entries(fields))
    if (name === 'file' || name === 'bars') form.set(name, new Blob([text]), `${name}.csv`)
    else form.set(name, text)
  const answer = await fetch(`${url}/audit`, { method: 'POST', body: form })
  const { report_url: path } = (await answer.json()) as { report_url?: string }
  if (path === undefined) throw new Error(`The audit of the ledger failed with status ${answer.status}.`)
  return path
}

/** Buys the current regime and returns the signature of the receipt. */
async function receiptOf(base: string, buyer: Hex): Promise<string> {
  const { response } = await createBuyer({ account: privateKeyToAccount(buyer) }).buy(
    new URL('/v1/regime/current', base),
  )
  const settled = Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString()
  const { extensions } = JSON.parse(settled) as {
    extensions: { 'offer-receipt': { info: { receipt: { signature: string } } } }
  }
  return extensions['offer-receipt'].info.receipt.signature
}

/** Returns two years of one-day trades with a small profit. Every call returns the same trades. */
function steadyLedger(): string {
  const lines = ['symbol,side,qty,entry_time,entry_price,exit_time,exit_price']
  const first = Date.parse('2023-01-02T15:00:00Z')
  for (let trade = 0, price = 80; trade < 480; trade += 1) {
    const chance = Math.sin(trade * 12.9898) * 43758.5453
    const exit = price * (1 + 0.003 + 0.03 * (chance - Math.floor(chance) - 0.5))
    const at = (day: number): string => new Date(first + (trade * 1.5 + day) * 86_400_000).toISOString()
    lines.push(`ACME,long,10,${at(0)},${price.toFixed(2)},${at(1)},${exit.toFixed(2)}`)
    price = 80 + 40 * ((trade * 7) % 11) * 0.1
  }
  return lines.join('\n')
}

/** Moves every second entry price of a ledger below the low of its day. */
function withImpossibleFills(csv: string): string {
  const [head = '', ...rows] = csv.trim().split('\n')
  const moved = rows.map((row, index) => {
    const cells = row.split(',')
    if (index % 2 === 0) cells[4] = (Number(cells[4]) * 0.93).toFixed(2)
    return cells.join(',')
  })
  return [head, ...moved].join('\n')
}

const DAYS = 1500
const dayAt = (index: number): string => new Date(Date.UTC(2016, 0, 1 + index)).toISOString().slice(0, 10)

/** Bars of a stock that hardly moves. With `tradesOutsideBars` they give the maximum number of findings. */
function calmBars(): string {
  const rows = Array.from({ length: DAYS }, (_, day) => `ACME,${dayAt(day)},100,101,99,100,100000`)
  return ['symbol,date,open,high,low,close,volume', ...rows].join('\n')
}

/** Trades at prices outside the range of `calmBars`. */
function tradesOutsideBars(): string {
  const rows = Array.from(
    { length: DAYS - 1 },
    (_, day) => `ACME,long,10,${dayAt(day)},90,${dayAt(day + 1)},11${day % 7}`,
  )
  return ['symbol,side,qty,entry_time,entry_price,exit_time,exit_price', ...rows].join('\n')
}
