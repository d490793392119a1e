/** Limits of what a buyer spends: in a call, at a host in a day, and in a day. */

import { formatUnits } from 'viem/utils'

/** Limits in atomic units of USDC: 100000n is 0.10 USDC. Days are of UTC. */
export interface Limits {
  readonly perCall?: bigint
  readonly perHostAndDay?: bigint
  readonly perDay?: bigint
}

/** A payment that counts towards the limits, until it is given back. */
export interface Spending {
  /** Call it once the payment cannot be settled any more. */
  giveBack(): void
  /** As `giveBack` at a moment, milliseconds since the epoch. */
  giveBackAfter(moment: number): void
}

const DAY_MS = 86_400_000

/** Adds up what was spent today. */
export class Budget {
  readonly #limits: Limits
  readonly #now: () => number
  #day = NaN
  /** Atomic units of the day, in all and by host. */
  #total = 0n
  #byHost = new Map<string, bigint>()
  #returning: { readonly after: number; readonly giveBack: () => void }[] = []

  constructor(limits: Limits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  /** The limit that an amount would exceed, in words; null if it exceeds none. */
  exceeded(amount: bigint, host: string): string | null {
    this.#catchUp()
    const { perCall, perHostAndDay, perDay } = this.#limits
    if (perCall !== undefined && amount > perCall) return `the limit of ${dollars(perCall)} USDC a call`
    if (perHostAndDay !== undefined && this.#of(host) + amount > perHostAndDay)
      return `the limit of ${dollars(perHostAndDay)} USDC a day at ${host}`
    if (perDay !== undefined && this.#total + amount > perDay) return `the limit of ${dollars(perDay)} USDC a day`
    return null
  }

  /** Counts an amount, whether or not it exceeds a limit. */
  spend(amount: bigint, host: string): Spending {
    this.#catchUp()
    const day = this.#day
    this.#add(amount, host)
    let isCounted = true
    const giveBack = (): void => {
      if (isCounted && day === this.#day) this.#add(-amount, host)
      isCounted = false
    }
    return { giveBack, giveBackAfter: (after) => void this.#returning.push({ after, giveBack }) }
  }

  #of(host: string): bigint {
    return this.#byHost.get(host) ?? 0n
  }

  #add(amount: bigint, host: string): void {
    this.#total += amount
    this.#byHost.set(host, this.#of(host) + amount)
  }

  #catchUp(): void {
    const now = this.#now()
    for (const { after, giveBack } of this.#returning) if (now > after) giveBack()
    this.#returning = this.#returning.filter(({ after }) => now <= after)
    const day = Math.floor(now / DAY_MS)
    if (day === this.#day) return
    this.#day = day
    this.#total = 0n
    this.#byHost = new Map()
  }
}

/**
 * Atomic units of USDC as dollars.
 *
 * @example dollars(5_000n) // "0.005"
 */
export function dollars(atomic: bigint): string {
  return formatUnits(atomic, 6)
}
