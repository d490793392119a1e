/** Runs one command line of `npm run pay`: from the price to the receipt. */
import { STATUS_CODES } from 'node:http'
import { createPublicClient, erc20Abi, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { createBuyer, OutcomeUnknown, type Receipt, request, type Step } from '../../gateway/client/buyer.ts'
import { NotPaid, type Payment, type Requirement } from '../../gateway/client/payment.ts'
import { withoutCredentials } from '../../gateway/config/address-credentials.ts'
import type { Hex, Network } from '../../gateway/config/networks.ts'
import { findSandbox, isSandbox, type SandboxDescription } from '../sandbox-wallet.ts'
import { type Options, PayError, readOptions, USAGE } from './arguments.ts'
import { type Answer, contentOf, createScreen, excerpt, type Screen, shorten, usdc } from './terminal.ts'

/** Where the client runs: tests replace the folder and the output. */
export interface Environment {
  readonly dataDir: string
  readonly out: { write(text: string): unknown }
  readonly colour?: boolean
}

/** Price limits in atomic units: 100 USDC in the sandbox, 0.10 USDC elsewhere. */
const SANDBOX_MAX = 100_000_000n
const DEFAULT_MAX = 100_000n
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
    if (error instanceof DryRun) {
      screen.line('dry run', 'nothing was signed')
      if (asJson) write(`${JSON.stringify(report, null, 2)}\n`)
      return 0
    }
    const message = messageOf(error)
    write(asJson ? `${JSON.stringify({ ...report, error: message }, null, 2)}\n` : `${message}\n`)
    return 1
  }
}

/** Ends the call after the price was shown. */
class DryRun extends Error {}

/** The text of an error that is shown without a stack. Throws any other. */
function messageOf(error: unknown): string {
  if (error instanceof OutcomeUnknown) return `${error.message}\n${repeatWith(error.payment)}`
  if (error instanceof PayError || error instanceof NotPaid) return error.message
  throw error
}

/** The options that send a payment again. */
function repeatWith({ header, value, purchaseKey }: Payment): string {
  const key = purchaseKey === null ? '' : ` --header 'Idempotency-Key:${purchaseKey}'`
  return `--header '${header}:${value}'${key}`
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

interface Outgoing {
  readonly url: URL
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | Uint8Array<ArrayBuffer> | FormData | null
}

async function call(
  options: Options,
  sandbox: SandboxDescription | null,
  screen: Screen,
  report: Report,
): Promise<Answer> {
  const outgoing = outgoingOf(options, sandbox)
  const { url, method } = outgoing
  const home = isSandbox(url, sandbox) ? sandbox : null
  screen.title(`${method} ${url.href}`)
  report.request = { method, url: url.href }

  let began = 0
  const timed: typeof fetch = (...request) => {
    began = performance.now()
    return fetch(...request)
  }
  const unanswered = (error: unknown): never => {
    if (error instanceof Error && [NotPaid, OutcomeUnknown, DryRun].some((kind) => error instanceof kind)) throw error
    const advice = home || !sandbox ? ' Start the gateway with "npm start", or name another service with --url.' : ''
    throw new PayError(`Nothing answers at ${url.origin}.${advice}`, { cause: error })
  }
  if (hasHeader(outgoing, ...CREDENTIALS)) {
    const response = await request(url, outgoing, { send: timed }).catch(unanswered)
    return conclude(await answerOf(response, began), null, screen, report)
  }

  const key = options.key ?? home?.buyer.private_key ?? null
  let money: { readonly balances: Balances; readonly accounts: readonly Hex[]; readonly before: Read } | null = null
  const onStep = async (step: Step): Promise<void> => {
    if (step.step === 'offered') {
      showRequirement(step.requirement, screen, report)
      assertPayable(step.requirement, options, home, key)
    } else if (step.step === 'signed') {
      const { requirement, payment } = step
      showPayment(payment, screen, report)
      const balances = createBalances(options.rpc ?? home?.rpc_url ?? null, requirement.network)
      const accounts = [payment.from, requirement.payTo]
      money = { balances, accounts, before: await balances.read(accounts) }
    } else screen.line('wait', waitingFor(step))
  }
  const wallet = key === null ? {} : { account: privateKeyToAccount(key) }
  const buyer = createBuyer({ ...wallet, limits: {}, prefersV1: options.v1, onStep, fetch: timed })
  const { response, receipt } = await buyer.buy(url, outgoing).catch(unanswered)
  const answer = conclude(await answerOf(response, began), receipt, screen, report)
  if (!money) return answer
  const { balances, accounts, before } = money as { balances: Balances; accounts: readonly Hex[]; before: Read }
  if (receipt?.success && receipt.transaction) await balances.settle(receipt.transaction)
  showBalances(before, await balances.read(accounts), screen, report)
  return answer
}

/** Throws NotPaid if the price is above the limit or there is no wallet, and DryRun if nothing is to be signed. */
function assertPayable(
  { amount, network }: Requirement,
  options: Options,
  home: SandboxDescription | null,
  key: Hex | null,
): void {
  const max = options.max ?? (home?.chain_id === network.chainId ? SANDBOX_MAX : DEFAULT_MAX)
  if (amount > max)
    throw new NotPaid(
      `Not paid: the price of ${usdc(amount)} USDC is above the limit of ${usdc(max)}. Add --max ${usdc(amount)} to accept it.`,
    )
  if (options.dryRun) throw new DryRun()
  if (key === null)
    throw new NotPaid(
      'Not paid: give --key, a private key that holds USDC on this network. For a sandbox, set DATA_DIR to its folder.',
    )
}

const WAITING = {
  lost: 'the connection was lost',
  busy: 'the service is busy',
  pending: 'the settlement is pending',
} as const

const waitingFor = ({ reason, afterSeconds }: Extract<Step, { step: 'repeated' }>): string =>
  `${WAITING[reason]}; sending the same payment again${reason === 'lost' ? '' : ` in ${afterSeconds} s`}`

async function answerOf(response: Response, began: number): Promise<Answer> {
  const { status, headers } = response
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
  const body = isStream ? Buffer.alloc(0) : Buffer.from(await response.arrayBuffer())
  return { status, headers, body, events: isStream ? response.body : null, milliseconds: performance.now() - began }
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
function conclude(answer: Answer, receipt: Receipt | null, screen: Screen, report: Report): Answer {
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

/** Balances, or null if they cannot be read. */
type Read = readonly bigint[] | null

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
