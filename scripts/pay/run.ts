/** The call, from the price to the receipt. */
import { STATUS_CODES } from 'node:http'
import type { Hex } from '../../gateway/config/networks.ts'
import { type Options, PayError, readOptions, USAGE } from './arguments.ts'
import { createBalances } from './balances.ts'
import { type Offer, readOffer } from './offer.ts'
import { findSandbox, isSandbox, type SandboxDescription } from './sandbox.ts'
import { exchange, exchangePaid, type Exchange, type Outgoing } from './send.ts'
import { contentOf, createScreen, excerpt, type Screen, shorten, usdc } from './show.ts'
import { type Payment, signPayment } from './sign.ts'

export interface Surroundings {
  readonly dataDir: string
  readonly out: { write(text: string): unknown }
  readonly colour?: boolean
}

const SANDBOX_MAX = 100_000_000n
const DEFAULT_MAX = 100_000n
const SMALL_BODY = 65_536
const CREDENTIALS = ['payment-signature', 'x-payment', 'x-service-token'] as const

/** Runs one command line; resolves with the exit code: 0 where the answer is a success, else 1. Asks nothing. */
export async function run(argv: readonly string[], { dataDir, out, colour = false }: Surroundings): Promise<number> {
  const asJson = argv.includes('--json')
  const report: Report = {}
  const write = (text: string): unknown => out.write(text)
  const screen = createScreen(asJson ? () => undefined : write, colour)
  try {
    const options = readOptions(argv)
    if (!options) {
      write(USAGE)
      return 0
    }
    const succeeded = await call(options, findSandbox(dataDir), screen, report)
    if (asJson) write(`${JSON.stringify(report, null, 2)}\n`)
    return succeeded ? 0 : 1
  } catch (error) {
    if (!(error instanceof PayError)) throw error
    write(asJson ? `${JSON.stringify({ ...report, error: error.message }, null, 2)}\n` : `${error.message}\n`)
    return 1
  }
}

/** What --json prints. */
interface Report {
  request?: object
  offer?: object
  payment?: object
  status?: number
  answer?: unknown
  receipt?: unknown
  balances?: object
}

async function call(
  options: Options,
  sandbox: SandboxDescription | null,
  screen: Screen,
  report: Report,
): Promise<boolean> {
  const outgoing = outgoingOf(options, sandbox)
  const { url, method } = outgoing
  const home = isSandbox(url, sandbox) ? sandbox : null
  screen.title(`${method} ${url.href}`)
  report.request = { method, url: url.href }

  const first = await ask(outgoing).catch((error: unknown) => {
    const advice = home || !sandbox ? ' Start the gateway with "npm start", or name another service with --url.' : ''
    throw new PayError(`Nothing answers at ${url.origin}.${advice}`, { cause: error })
  })
  if (first.status !== 402 || brings(outgoing, ...CREDENTIALS)) return conclude(first, null, screen, report)

  const offer = readOffer(first.headers.get('payment-required'), first.body.toString(), options.v1)
  showOffer(offer, screen, report)
  const max = options.max ?? (home?.chain_id === offer.network.chainId ? SANDBOX_MAX : DEFAULT_MAX)
  if (offer.amount > max)
    throw new PayError(
      `Not paid: the price of ${usdc(offer.amount)} USDC is above the limit of ${usdc(max)}. Add --max ${usdc(offer.amount)} to agree to it.`,
    )
  if (options.dryRun) {
    screen.line('dry run', 'nothing was signed')
    return true
  }
  const key = options.key ?? home?.buyer.private_key
  if (!key) throw new PayError('Not paid: give --key, a private key that holds USDC on this network.')

  const payment = await signPayment(offer, key, Math.floor(Date.now() / 1000))
  showPayment(payment, screen, report)
  const balances = createBalances(options.rpc ?? home?.rpc_url ?? null, offer.network)
  const accounts = [payment.from, offer.payTo]
  const before = await balances.read(accounts)
  const answer = await exchangePaid(outgoing, payment, (sentence) => screen.line('wait', sentence))
  const receipt = receiptOf(answer)
  const succeeded = conclude(answer, receipt, screen, report)
  if (receipt?.success && receipt.transaction) await balances.settle(receipt.transaction)
  showBalances(before, await balances.read(accounts), screen, report)
  return succeeded
}

/** The first, unpaid call. A large body travels only once the price is agreed, or where there is none. */
async function ask(outgoing: Outgoing): Promise<Exchange> {
  const { body } = outgoing
  if (body === null || (!(body instanceof FormData) && body.length <= SMALL_BODY)) return exchange(outgoing)
  const probe = await exchange({ ...outgoing, body: null })
  return probe.status === 402 && !brings(outgoing, ...CREDENTIALS) ? probe : exchange(outgoing)
}

function outgoingOf(
  { target, url, query, method, headers, body }: Options,
  sandbox: SandboxDescription | null,
): Outgoing {
  const base = url ?? sandbox?.base_url
  if (!base && target.startsWith('/'))
    throw new PayError(
      'No sandbox was found in DATA_DIR: start the gateway with "npm start", or name a service with --url.',
    )
  let address: URL
  try {
    address = new URL(target.startsWith('/') ? (base as string).replace(/\/+$/, '') + target : target)
  } catch {
    throw new PayError(`${url ?? target} is not an address such as https://example.org.`)
  }
  for (const [name, value] of query) address.searchParams.append(name, value)
  return { url: address, method, headers, body }
}

function brings({ headers }: Outgoing, ...names: readonly string[]): boolean {
  return headers.some(([name]) => names.includes(name.toLowerCase()))
}

interface Receipt {
  readonly success?: boolean
  readonly transaction?: Hex
  readonly errorReason?: string
}

function receiptOf({ headers }: Exchange): Receipt | null {
  const header = headers.get('payment-response') ?? headers.get('x-payment-response')
  try {
    return header === null ? null : (JSON.parse(Buffer.from(header, 'base64').toString()) as Receipt)
  } catch {
    return null
  }
}

function showOffer(offer: Offer, screen: Screen, report: Report): void {
  const { amount, network, payTo, version, description, maxTimeoutSeconds } = offer
  const price = usdc(amount)
  screen.line('price', `${price} USDC on ${network.name} (402, x402 v${version})`)
  screen.line('payee', payTo)
  if (description) screen.line('for', shorten(description))
  report.offer = {
    price,
    network: network.name,
    pay_to: payTo,
    version,
    description,
    max_timeout_seconds: maxTimeoutSeconds,
  }
}

function showPayment({ from, nonce, validBefore, header, value }: Payment, screen: Screen, report: Report): void {
  const until = new Date(validBefore * 1000).toISOString()
  screen.line('signed', `by ${from}, valid until ${until}\nnonce ${nonce}`)
  report.payment = { from, nonce, valid_until: until, header, value }
}

function conclude(answer: Exchange, receipt: Receipt | null, screen: Screen, report: Report): boolean {
  const { status, milliseconds } = answer
  screen.line('status', `${status} ${STATUS_CODES[status] ?? ''} in ${milliseconds.toFixed(0)} ms`)
  screen.line('answer', excerpt(answer))
  if (receipt?.success) screen.line('receipt', receipt.transaction || 'settled, without a transaction of its own')
  else if (receipt) screen.line('receipt', `not settled: ${receipt.errorReason ?? 'no reason given'}`)
  report.status = status
  report.answer = contentOf(answer)
  if (receipt) report.receipt = receipt
  return status >= 200 && status < 300
}

function showBalances(
  before: readonly bigint[] | null,
  after: readonly bigint[] | null,
  screen: Screen,
  report: Report,
): void {
  const change = (row: number): string => {
    if (!before || !after) return 'unknown (give --rpc)'
    const [from, to] = [before[row] as bigint, after[row] as bigint]
    return from === to ? `${usdc(to)} USDC, unchanged` : `${usdc(from)} → ${usdc(to)} USDC`
  }
  screen.line('buyer', change(0))
  screen.line('payee', change(1))
  if (!before || !after) return
  const [buyer, payee] = before.map((atomic, row) => ({ before: usdc(atomic), after: usdc(after[row] as bigint) }))
  report.balances = { buyer, payee }
}
