/** Runs one command line of `npm run pay`: from the price to the receipt. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import { createPublicClient, erc20Abi, http } from 'viem'
import { withoutCredentials } from '../../gateway/config/address-credentials.ts'
import type { Hex, Network } from '../../gateway/config/networks.ts'
import { type Options, PayError, readOptions, USAGE } from './arguments.ts'
import { exchange, type Exchange, exchangePaid, type Outgoing } from './exchange.ts'
import { contentOf, createScreen, excerpt, type Screen, shorten, usdc } from './terminal.ts'
import { type Payment, readRequirement, type Requirement, signPayment } from './payment.ts'

/** Where the client runs: tests replace the folder and the output. */
export interface Environment {
  readonly dataDir: string
  readonly out: { write(text: string): unknown }
  readonly colour?: boolean
}

/** Price limits in atomic units: 100 USDC in the sandbox, 0.10 USDC elsewhere. */
const SANDBOX_MAX = 100_000_000n
const DEFAULT_MAX = 100_000n
/** A larger body is only sent once the price is agreed. */
const SMALL_BODY = 65_536
const CREDENTIALS = ['payment-signature', 'x-payment', 'x-service-token'] as const

/** Runs one command line without prompting. Resolves with the exit code: 0 if the answer is a success, else 1. */
export async function run(argv: readonly string[], { dataDir, out, colour = false }: Environment): Promise<number> {
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
    const { status, events } = await call(options, findSandbox(dataDir), screen, report)
    if (asJson) write(`${JSON.stringify(report, null, 2)}\n`)
    if (events) await follow(events, screen, write)
    return status >= 200 && status < 300 ? 0 : 1
  } catch (error) {
    if (!(error instanceof PayError)) throw error
    write(asJson ? `${JSON.stringify({ ...report, error: error.message }, null, 2)}\n` : `${error.message}\n`)
    return 1
  }
}

/** The object that --json prints. */
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
): Promise<Pick<Exchange, 'status' | 'events'>> {
  const outgoing = outgoingOf(options, sandbox)
  const { url, method } = outgoing
  const home = isSandbox(url, sandbox) ? sandbox : null
  screen.title(`${method} ${url.href}`)
  report.request = { method, url: url.href }

  const first = await ask(outgoing).catch((error: unknown) => {
    const advice = home || !sandbox ? ' Start the gateway with "npm start", or name another service with --url.' : ''
    throw new PayError(`Nothing answers at ${url.origin}.${advice}`, { cause: error })
  })
  if (first.status !== 402 || hasHeader(outgoing, ...CREDENTIALS)) return conclude(first, null, screen, report)

  const requirement = readRequirement(first.headers.get('payment-required'), first.body.toString(), options.v1)
  showRequirement(requirement, screen, report)
  const max = options.max ?? (home?.chain_id === requirement.network.chainId ? SANDBOX_MAX : DEFAULT_MAX)
  if (requirement.amount > max)
    throw new PayError(
      `Not paid: the price of ${usdc(requirement.amount)} USDC is above the limit of ${usdc(max)}. Add --max ${usdc(requirement.amount)} to accept it.`,
    )
  if (options.dryRun) {
    screen.line('dry run', 'nothing was signed')
    return { status: 200, events: null }
  }
  const key = options.key ?? home?.buyer.private_key
  if (!key)
    throw new PayError(
      'Not paid: give --key, a private key that holds USDC on this network. For a sandbox, set DATA_DIR to its folder.',
    )

  const signed = await signPayment(requirement, key, Math.floor(Date.now() / 1000))
  const payment = hasHeader(outgoing, 'idempotency-key') ? { ...signed, purchaseKey: null } : signed
  showPayment(payment, screen, report)
  const balances = createBalances(options.rpc ?? home?.rpc_url ?? null, requirement.network)
  const accounts = [payment.from, requirement.payTo]
  const before = await balances.read(accounts)
  const answer = await exchangePaid(outgoing, payment, (message) => screen.line('wait', message))
  const receipt = receiptOf(answer)
  conclude(answer, receipt, screen, report)
  if (receipt?.success && receipt.transaction) await balances.settle(receipt.transaction)
  showBalances(before, await balances.read(accounts), screen, report)
  return answer
}

/** Writes the events of a stream as they come, until it ends or the user presses Ctrl-C. */
async function follow(
  events: AsyncIterable<Uint8Array>,
  screen: Screen,
  write: (text: string) => unknown,
): Promise<void> {
  screen.line('events', 'as they come; press Ctrl-C to leave')
  const decoder = new TextDecoder()
  for await (const part of events) write(decoder.decode(part, { stream: true }))
}

/** Makes the first, unpaid call. A large body is held back until the price is known. */
async function ask(outgoing: Outgoing): Promise<Exchange> {
  const { body } = outgoing
  if (body === null || (!(body instanceof FormData) && body.length <= SMALL_BODY)) return exchange(outgoing)
  const probe = await exchange({ ...outgoing, body: null })
  return probe.status === 402 && !hasHeader(outgoing, ...CREDENTIALS) ? probe : exchange(outgoing)
}

function outgoingOf(
  { target, url, query, method, headers, body }: Options,
  sandbox: SandboxDescription | null,
): Outgoing {
  const base = url ?? sandbox?.base_url
  if (!base && target.startsWith('/'))
    throw new PayError(
      'No sandbox was found. Start the gateway with "npm start", set DATA_DIR to the data folder of the gateway that runs, or name a service with --url.',
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

function hasHeader({ headers }: Outgoing, ...names: readonly string[]): boolean {
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

function showRequirement(requirement: Requirement, screen: Screen, report: Report): void {
  const { amount, network, payTo, version, description, maxTimeoutSeconds } = requirement
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

function showPayment(payment: Payment, screen: Screen, report: Report): void {
  const { from, nonce, validBefore, header, value, purchaseKey } = payment
  const until = new Date(validBefore * 1000).toISOString()
  screen.line('signed', `by ${from}, valid until ${until}\nnonce ${nonce}`)
  const named = purchaseKey === null ? {} : { idempotency_key: purchaseKey }
  report.payment = { from, nonce, valid_until: until, header, value, ...named }
}

/** Shows an answer and its receipt. Returns the answer. */
function conclude(answer: Exchange, receipt: Receipt | null, screen: Screen, report: Report): Exchange {
  const { status, milliseconds } = answer
  screen.line('status', `${status} ${STATUS_CODES[status] ?? ''} in ${milliseconds.toFixed(0)} ms`)
  if (!answer.events) screen.line('answer', excerpt(answer))
  if (receipt?.success) screen.line('receipt', receipt.transaction || 'settled without a transaction of its own')
  else if (receipt) screen.line('receipt', `not settled: ${receipt.errorReason ?? 'no reason given'}`)
  report.status = status
  report.answer = contentOf(answer)
  if (receipt) report.receipt = receipt
  return answer
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

export interface Balances {
  /** Returns atomic units in the order of the accounts, or null if the chain cannot be read. */
  read(accounts: readonly Hex[]): Promise<readonly bigint[] | null>
  /** Waits up to 20 seconds until a transaction is in a block. */
  settle(transaction: Hex): Promise<void>
}

const WAIT_MS = 20_000

/** Reads balances only from a node of this network: a balance on another chain would be misleading. */
function createBalances(rpcUrl: string | null, network: Network): Balances {
  if (rpcUrl === null) return { read: async () => null, settle: async () => undefined }
  const { address, headers } = withoutCredentials(rpcUrl)
  const client = createPublicClient({
    transport: http(address, { retryCount: 1, timeout: 5_000, fetchOptions: { headers } }),
    pollingInterval: 100,
  })
  return {
    async read(accounts) {
      try {
        if ((await client.getChainId()) !== network.chainId) return null
        const balanceOf = (account: Hex): Promise<bigint> =>
          client.readContract({ address: network.asset, abi: erc20Abi, functionName: 'balanceOf', args: [account] })
        return await Promise.all(accounts.map(balanceOf))
      } catch {
        return null
      }
    },
    async settle(transaction) {
      await client.waitForTransactionReceipt({ hash: transaction, timeout: WAIT_MS }).catch(() => undefined)
    },
  }
}

export interface SandboxDescription {
  readonly base_url: string
  readonly rpc_url: string
  readonly chain_id: number
  readonly buyer: { readonly address: Hex; readonly private_key: Hex }
}

/** Returns the newest DATA_DIR/<any>/sandbox.json, or null if there is none. */
function findSandbox(dataDir: string): SandboxDescription | null {
  const files = list(dataDir)
    .map((folder) => join(dataDir, folder, 'sandbox.json'))
    .map((file) => ({ file, modified: statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null }))
    .filter((found): found is { file: string; modified: number } => found.modified !== null)
    .toSorted((one, other) => other.modified - one.modified)
  return files[0] ? (JSON.parse(readFileSync(files[0].file, 'utf8')) as SandboxDescription) : null
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
  } catch {
    return []
  }
}

/** Returns true if the address is the sandbox's. All names of the loopback interface count as the same. */
function isSandbox(url: URL, sandbox: SandboxDescription | null): sandbox is SandboxDescription {
  return sandbox !== null && place(url) === place(new URL(sandbox.base_url))
}

function place({ protocol, hostname, port }: URL): string {
  return `${protocol}//${/^(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0)$/.test(hostname) ? 'loopback' : hostname}:${port}`
}
