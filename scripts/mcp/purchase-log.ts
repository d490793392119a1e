/**
 * The purchases of the bridge: a file for each day of UTC, with a line of JSON whenever something becomes known of one. It
 * outlives the process, and other processes append to the same files. So the limits of a day hold for all of them, and a
 * payment whose outcome is unknown is sent again in place of another one.
 */
import { createHash, randomUUID } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseUnits } from 'viem/utils'
import { dollars } from '../../gateway/client/budget.ts'
import type { Payment, Requirement } from '../../gateway/client/payment.ts'

/** A call of a tool that is to be bought. */
export interface ToolCall {
  /** The address of the MCP endpoint. */
  readonly url: URL
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Money that counts towards a limit, in atomic units. */
export interface Counted {
  readonly host: string
  readonly amount: bigint
}

/** A purchase whose payment may still be settled. */
export interface OpenPurchase {
  readonly id: string
  readonly payment: Payment
}

/** What one line says. `refused`: the service charged nothing, but could still settle the payment while it is valid. */
type Line =
  | {
      readonly event: 'reserved'
      readonly id: string
      readonly at: string
      readonly host: string
      readonly tool: string
      readonly usdc: string
      readonly network: string
      readonly request: string
    }
  | { readonly event: 'signed'; readonly id: string; readonly at: string; readonly payment: Payment }
  | { readonly event: 'settled'; readonly id: string; readonly at: string; readonly transaction?: string }
  | { readonly event: 'refused' | 'released'; readonly id: string; readonly at: string }

/** What the lines of one purchase say together. */
interface Purchase {
  readonly id: string
  readonly at: number
  readonly host: string
  readonly request: string
  readonly amount: bigint
  payment: Payment | null
  state: Line['event']
}

const DAY_MS = 86_400_000
/** A process that has not signed by then has ended before it could. Somebody may have to be asked meanwhile. */
const UNSIGNED_MS = 900_000
/** A block may carry an earlier time than our clock. */
const MARGIN_MS = 30_000

export class PurchaseLog {
  readonly #folder: string
  readonly #now: () => number

  /** @param now milliseconds since the epoch */
  constructor(folder: string, now: () => number = Date.now) {
    this.#folder = folder
    this.#now = now
  }

  /** Reserves the price of a call and returns the id of the purchase. Throws if it cannot be written down. */
  reserve({ url, tool, ...call }: ToolCall, { amount, network }: Pick<Requirement, 'amount' | 'network'>): string {
    const id = `${dayOf(this.#now())}-${randomUUID()}`
    const request = hashOf({ url, tool, ...call })
    this.#append({
      event: 'reserved',
      id,
      at: this.#at(),
      host: url.host,
      tool,
      usdc: dollars(amount),
      network: network.name,
      request,
    })
    return id
  }

  /**
   * What counts towards the limits before a purchase: what was reserved today by an earlier line. So of two processes that
   * reserve at once, one sees the other.
   */
  countedBefore(id: string): readonly Counted[] {
    const all = this.#read(dayOf(this.#now()))
    const mine = all.findIndex((one) => one.id === id)
    return all.slice(0, mine === -1 ? all.length : mine).filter((one) => this.#counts(one))
  }

  /** What counts today, in atomic units. */
  spentToday(): bigint {
    return this.countedBefore('').reduce((sum, { amount }) => sum + amount, 0n)
  }

  /** The last purchase of the same call whose payment may still be settled; null if there is none. */
  openFor(call: ToolCall): OpenPurchase | null {
    const request = hashOf(call)
    const today = this.#now()
    for (const day of [today, today - DAY_MS]) {
      const found = this.#read(dayOf(day)).findLast((one) => one.request === request && this.#mayBeSettled(one))
      if (found) return { id: found.id, payment: found.payment as Payment }
    }
    return null
  }

  signed(id: string, payment: Payment): void {
    this.#append({ event: 'signed', id, at: this.#at(), payment })
  }

  settled(id: string, transaction?: string): void {
    this.#append({ event: 'settled', id, at: this.#at(), ...(transaction === undefined ? {} : { transaction }) })
  }

  /** Nothing was charged: the purchase counts until its payment ends. */
  refused(id: string): void {
    this.#append({ event: 'refused', id, at: this.#at() })
  }

  /** Nothing was charged and nothing will be: the purchase counts no more. */
  released(id: string): void {
    this.#append({ event: 'released', id, at: this.#at() })
  }

  #counts({ state, at, payment }: Purchase): boolean {
    if (state === 'reserved') return this.#now() <= at + UNSIGNED_MS
    if (state === 'refused') return this.#now() <= endOf(payment)
    // What was signed may have been settled, whether or not anybody learnt of it.
    return state !== 'released'
  }

  #mayBeSettled({ state, payment }: Purchase): boolean {
    return (state === 'signed' || state === 'refused') && this.#now() <= endOf(payment)
  }

  #at(): string {
    return new Date(this.#now()).toISOString()
  }

  /** The purchases of a day, in the order in which they were reserved. */
  #read(day: string): readonly Purchase[] {
    const purchases = new Map<string, Purchase>()
    for (const line of linesOf(this.#fileOf(day))) {
      const known = purchases.get(line.id)
      if (line.event === 'reserved') {
        const { id, at, host, request, usdc } = line
        const amount = parseUnits(usdc, 6)
        purchases.set(id, { id, at: Date.parse(at), host, request, amount, payment: null, state: 'reserved' })
      } else if (known) {
        known.state = line.event
        if (line.event === 'signed') known.payment = line.payment
      }
    }
    return [...purchases.values()]
  }

  #append(line: Line): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    // A line that a crash has cut short ends before the next one.
    appendFileSync(this.#fileOf(line.id.slice(0, 10)), `\n${JSON.stringify(line)}\n`, { mode: 0o600 })
  }

  #fileOf(day: string): string {
    return join(this.#folder, `${day}.jsonl`)
  }
}

const dayOf = (moment: number): string => new Date(moment).toISOString().slice(0, 10)

const endOf = (payment: Payment | null): number => (payment ? payment.validBefore * 1000 + MARGIN_MS : 0)

const hashOf = ({ url, tool, arguments: given }: ToolCall): string =>
  createHash('sha256')
    .update(JSON.stringify([url.href, tool, given]))
    .digest('hex')

function linesOf(file: string): readonly Line[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  return text.split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as Line]
    } catch {
      return []
    }
  })
}
