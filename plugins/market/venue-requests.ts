/** Asks venues for minutes: at their pace, not while they are in quarantine, and never for longer than a few seconds. */
import { setTimeout as pause } from 'node:timers/promises'
import type { PluginContext } from 'tollgate/plugin'
import { RequestError } from '../lib/feeds/requests.ts'
import { SourceHealth } from '../lib/feeds/source-health.ts'
import type { VenueAnswer } from './agreed-minutes.ts'
import { type Columns, createColumns } from './bars.ts'
import type { BarStore } from './bar-store.ts'
import type { Venue } from './venues/bar-venue.ts'
import type { VenueName } from './venues/bar-venues.ts'

/** A symbol at one venue. */
export interface Listing {
  readonly venue: Venue
  readonly name: VenueName
  /** The symbol, and the venue's own name of it. */
  readonly symbol: string
  readonly code: string
  /** Time between two requests to the venue. */
  readonly pauseMs: number
}

export interface VenueRequestsOptions {
  readonly context: Pick<PluginContext, 'log'>
  readonly store: BarStore
  /** Epoch seconds. */
  readonly now: () => number
  /** A request that takes longer counts as failed. */
  readonly requestSeconds: number
}

/** Requests to all venues of a process. */
export class VenueRequests {
  readonly health: SourceHealth
  readonly #options: VenueRequestsOptions
  /** When each venue may be asked again, by performance.now(). */
  readonly #nextAt = new Map<VenueName, number>()

  constructor(options: VenueRequestsOptions) {
    this.#options = options
    this.health = new SourceHealth({ now: options.now, save: (record) => options.store.keepHealth(record) })
  }

  /** Reads what other processes, or an earlier start, know of the venues. */
  async loadHealth(): Promise<void> {
    this.health.load(await this.#options.store.health())
  }

  isUsable({ name, symbol }: Listing): boolean {
    return this.health.isUsable(name, symbol)
  }

  /**
   * The minutes of a listing that open in [from, to), in as many requests as it takes; null if the venue is in quarantine
   * or fails. Bad rows are stored apart. An answer without a single bar is a failure too, unless it may be empty, as
   * before the symbol was listed: then it is `empty`.
   */
  async minutes(
    listing: Listing,
    from: number,
    to: number,
    signal: AbortSignal,
    { mayBeEmpty = false }: { readonly mayBeEmpty?: boolean } = {},
  ): Promise<VenueAnswer | 'empty' | null> {
    const { name, symbol, venue } = listing
    if (!this.isUsable(listing)) return null
    const rejected = new Set<number>()
    const parts: Columns[] = []
    try {
      const size = venue.windowMinutes * 60
      for (let at = from; at < to; at += size) {
        const found = await this.#request(listing, at, Math.min(at + size, to), signal)
        parts.push(found.bars)
        for (const { time } of found.rejected) if (time !== null) rejected.add(time)
        await this.#options.store.noteRejected(name, symbol, found.rejected, this.#options.now())
      }
      const bars = joined(parts)
      if (bars.count === 0 && mayBeEmpty) return 'empty'
      if (bars.count === 0) throw new RequestError(`${name} answered without a single bar`, 200)
      await this.health.answered(name, symbol)
      return { venue: name, from, to, bars, rejected }
    } catch (error) {
      if (signal.aborted || !(error instanceof RequestError)) throw error
      const seconds = await this.health.failed(name, symbol, error)
      this.#options.context.log.warn(
        { venue: name, symbol, status: error.status, asked_again_after_seconds: seconds },
        error.message,
      )
      return null
    }
  }

  async #request({ venue, name, code, pauseMs }: Listing, from: number, to: number, signal: AbortSignal) {
    await this.#turn(name, pauseMs, signal)
    const limit = AbortSignal.timeout(this.#options.requestSeconds * 1000)
    try {
      return await venue.minutes(code, from, to, AbortSignal.any([signal, limit]))
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error
      throw new RequestError(`${name} did not answer within ${this.#options.requestSeconds} seconds`, 0, null, error)
    }
  }

  /** Waits until the venue may be asked. Requests of several symbols queue. */
  async #turn(name: VenueName, pauseMs: number, signal: AbortSignal): Promise<void> {
    const now = performance.now()
    const at = Math.max(now, this.#nextAt.get(name) ?? 0)
    this.#nextAt.set(name, at + pauseMs * (0.75 + Math.random() / 2))
    if (at > now) await pause(at - now, undefined, { signal })
  }
}

function joined(parts: readonly Columns[]): Columns {
  if (parts.length === 1) return parts[0]!
  const out = createColumns()
  for (const { count, time, open, high, low, close, volume, state } of parts)
    for (let i = 0; i < count; i += 1) out.add(time[i]!, open[i]!, high[i]!, low[i]!, close[i]!, volume[i]!, state[i]!)
  return out.end()
}
