/**
 * The log as people read it on a terminal: one line per sale, refusal or problem, with its time in UTC. Lines are made of the
 * fields of the log, never of its messages. Calls that are free and succeed have no line, and neither have assets.
 */
import { dollars } from '../dollars.ts'

/** The fields that are logged when a payment is settled. */
export interface SaleFields {
  readonly call: string
  readonly operation: string
  /** Atomic units. */
  readonly amount: string
  readonly payer: string
  readonly network: string
  readonly transaction: string
}

/** The fields that are logged when a call brings a payment, before it is known what becomes of it. */
export interface PresentedFields {
  readonly call: string
  readonly operation: string
  readonly payment: string
}

/** The fields that are logged, at the level `debug`, when a call with a payment or a token is refused. */
export interface RefusalFields {
  readonly call: string
  readonly operation: string
  readonly code: string
  /** The x402 reason. */
  readonly reason?: string
}

/** The fields that are logged when a request has been answered. */
export interface RequestFields {
  readonly call: string
  readonly method: string | undefined
  readonly route: string | null
  readonly status: number
  readonly ms: number
}

/** The fields that are logged when a tool has answered. */
export interface ToolFields {
  readonly call: string
  readonly tool: string
  readonly status: number
}

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

/** A line of the log, parsed. */
interface Line extends Readonly<Record<string, unknown>> {
  readonly level: Level
  readonly time: string
  readonly msg?: string
  readonly err?: unknown
  readonly code?: string
  readonly reason?: string
  /** The name of an alarm. */
  readonly event?: string
}
type Named = Line & { readonly call: string; readonly operation: string }
type Sale = Line & SaleFields
type Answered = Line & (RequestFields | ToolFields)

const isNamed = (line: Line): line is Named => typeof line['call'] === 'string' && typeof line['operation'] === 'string'
const isSale = (line: Named): line is Named & Sale => 'amount' in line && 'payer' in line && 'transaction' in line
const isPresented = (line: Named): boolean => line.level === 'info' && 'payment' in line
const isRefusal = (line: Named): boolean => line.level === 'debug' && 'code' in line
const isFailure = (line: Named): boolean => line.level === 'error' || (line.level === 'warn' && 'code' in line)
const isAnswered = (line: Line): line is Answered => 'status' in line && ('route' in line || 'tool' in line)

/** What is known of a call that brought a payment or failed. */
interface OpenCall {
  answered: Answered | null
  /** What has not been written yet, by what it is about. */
  readonly waiting: Map<string, Named>
  timer?: NodeJS.Timeout
}

/** How long a sale or a failure waits for the end of its call, which says how long the call took. Streams may last for hours. */
const WAIT_MS = 1_000
/** A payment may settle after its answer has left. Older calls are forgotten. */
const MAX_CALLS = 1_000
/** So many quotes have a line of their own in each stretch of time. The others are counted. */
const QUOTES = { shown: 3, seconds: 10 } as const
const STACK_LINES = 6
const MAX_VALUE_LENGTH = 200
const COLOURS = { faint: 2, green: 32, yellow: 33, red: 31 } as const
const LABELS: Readonly<Record<Level, readonly [label: string, colour: keyof typeof COLOURS]>> = {
  trace: ['trace', 'faint'],
  debug: ['debug', 'faint'],
  info: ['', 'faint'],
  warn: ['warning', 'yellow'],
  error: ['error', 'red'],
  fatal: ['fatal', 'red'],
}

export interface TerminalOptions {
  readonly write: (text: string) => void
  /** Whether the text may contain colours. */
  readonly colour: boolean
  /** Whether lines below the level `info` are shown. */
  readonly isVerbose: boolean
}

/** Turns lines of JSON into lines for people. */
export class TerminalLog {
  readonly #options: TerminalOptions
  readonly #calls = new Map<string, OpenCall>()
  #quotes = 0
  #quoteTimer: NodeJS.Timeout | null = null

  constructor(options: TerminalOptions) {
    this.#options = options
  }

  /** Takes one line of the log. */
  write(json: string): void {
    const line = JSON.parse(json) as Line
    // What a plugin logs may have any fields.
    if (line['product'] === undefined && this.#isOfCall(line)) return
    const isShown = this.#options.isVerbose || !['trace', 'debug'].includes(line.level)
    if (isShown) this.#writeLine(line, ...otherText(line))
  }

  /** Writes at once what waits. */
  flush(): void {
    for (const [id, call] of this.#calls) this.#release(id, call)
    this.#countQuotes()
  }

  /** Returns true if a line is a part of what is said about a call, or nothing is said about it. */
  #isOfCall(line: Line): boolean {
    if (isAnswered(line)) this.#end(line)
    else if (!isNamed(line)) return false
    else if (isPresented(line)) this.#open(line.call)
    else if (isSale(line) || isRefusal(line) || isFailure(line)) this.#add(line)
    else return false
    return true
  }

  #open(id: string): OpenCall {
    const known = this.#calls.get(id)
    if (known) return known
    for (const [oldest, call] of this.#calls) {
      if (this.#calls.size < MAX_CALLS) break
      this.#release(oldest, call)
      this.#calls.delete(oldest)
    }
    const call: OpenCall = { answered: null, waiting: new Map() }
    this.#calls.set(id, call)
    return call
  }

  #add(line: Named): void {
    const call = this.#open(line.call)
    const about = isFailure(line) ? `failure of ${line.operation}` : line.level
    // The product says why it failed, and the call what was answered.
    call.waiting.set(about, { ...call.waiting.get(about), ...line })
    if (call.answered) this.#release(line.call, call)
    else call.timer ??= setTimeout(() => this.#release(line.call, call), WAIT_MS).unref()
  }

  #end(answered: Answered): void {
    const call = this.#calls.get(answered.call)
    if (call) {
      call.answered = answered
      this.#release(answered.call, call)
    } else if (answered.status === 402) this.#quote(answered)
  }

  #release(id: string, call: OpenCall): void {
    clearTimeout(call.timer)
    if (call.waiting.size === 0) return
    for (const line of call.waiting.values()) this.#writeLine(line, ...callText(line, call.answered))
    call.waiting.clear()
    this.#calls.delete(id)
  }

  /** A caller asks for the price by calling without a payment. Crawlers do it by the thousand. */
  #quote(answered: Answered): void {
    this.#quotes += 1
    this.#quoteTimer ??= setTimeout(() => this.#countQuotes(), QUOTES.seconds * 1000).unref()
    if (this.#quotes > QUOTES.shown) return
    const { route = null, tool = '' } = answered as Partial<RequestFields & ToolFields>
    this.#writeLine(answered, 'quoted', 'faint', route ?? tool)
  }

  #countQuotes(): void {
    if (this.#quoteTimer) clearTimeout(this.#quoteTimer)
    this.#quoteTimer = null
    const more = this.#quotes - QUOTES.shown
    this.#quotes = 0
    const line: Line = { level: 'info', time: new Date().toISOString() }
    if (more > 0) this.#writeLine(line, 'quoted', 'faint', `${more} more prices within ${QUOTES.seconds} seconds`)
  }

  #writeLine(line: Line, label: string, colour: keyof typeof COLOURS, text: string): void {
    const paint = (name: keyof typeof COLOURS, painted: string): string =>
      this.#options.colour && painted !== '' ? `\u001b[${COLOURS[name]}m${painted}\u001b[0m` : painted
    const words = [paint('faint', line.time.slice(11, 19)), paint(colour, label), printable(text)]
    const stack = stackOf(line).map((each) => `         ${printable(each)}\n`)
    this.#options.write(`${words.filter((word) => word !== '').join(' ')}\n${stack.join('')}`)
  }
}

type Text = readonly [label: string, colour: keyof typeof COLOURS, text: string]

/** @example ['sold', 'green', 'getGoldPrice $0.005 to 0x12…ab, 84 ms'] */
function callText(line: Named, answered: Answered | null): Text {
  const { ms } = (answered ?? {}) as Partial<RequestFields>
  const took = ms === undefined ? '' : `, ${Math.round(ms)} ms`
  if (isSale(line)) {
    const payer = `${line.payer.slice(0, 4)}…${line.payer.slice(-2)}`
    return ['sold', 'green', `${line.operation} $${dollars(BigInt(line.amount))} to ${payer}${took}`]
  }
  const codes = [line.code, line.reason].filter((code) => code !== undefined).join(', ')
  const text = `${line.operation}${took}: ${line.msg ?? ''}${codes === '' ? '' : ` (${codes})`}`
  return isRefusal(line) ? ['refused', 'yellow', text] : ['failed', 'red', text]
}

/** Any other line: its message, and its fields as they are. */
function otherText({ level, time: _, msg = '', err, call: _call, event, ...fields }: Line): Text {
  const shown = Object.entries(fields).map(([name, value]) => ` ${name}=${valueText(value)}`)
  const [label, colour] = LABELS[level]
  const { message } = (err ?? {}) as { readonly message?: unknown }
  const cause = typeof message === 'string' && level === 'warn' ? `: ${message}` : ''
  const name = event === undefined ? '' : `${event}: `
  return [event !== undefined && level === 'warn' ? 'alarm' : label, colour, `${name}${msg}${cause}${shown.join('')}`]
}

function valueText(value: unknown): string {
  const text = typeof value === 'string' && !/[\s"=]/.test(value) ? value : JSON.stringify(value)
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text
}

/** The first lines of the stack of an error, without those of Node. A warning has none. */
function stackOf({ level, err }: Line): readonly string[] {
  const { stack } = (err ?? {}) as { readonly stack?: unknown }
  if (typeof stack !== 'string' || level === 'warn') return []
  const lines = stack.split('\n').filter((line) => !/^ {4}at .*\bnode:/.test(line))
  return lines.slice(0, STACK_LINES)
}

/** Shows characters that would control the terminal as a question mark: a text may come from a caller. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '?')
}
