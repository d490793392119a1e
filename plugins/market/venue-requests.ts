/** Asks venues for minutes: at their pace, not while they are in quarantine, and never for longer than a few seconds. */
import { type PluginContext, timeoutSignal } from 'tollgate/plugin'
import { RequestError } from '../lib/feeds/requests.ts'
import { SourceHealth } from '../lib/feeds/source-health.ts'
import type { VenueAnswer } from './agreed-minutes.ts'
import { type Columns, createColumns } from './bars.ts'
import type { BarStore } from './bar-store.ts'
import type { Pace, VenuePaces } from './venue-pace.ts'
import type { Venue } from './venues/bar-venue.ts'
import type { VenueName } from './venues/bar-venues.ts'

/** A symbol at one venue. */
export interface Listing {
  readonly venue: Venue
  readonly name: VenueName
  /** The symbol, and the venue's own name of it. */
  readonly symbol: string
  readonly code: string
  readonly pace: Pace
}

export interface VenueRequestsOptions {
  readonly context: Pick<PluginContext, 'log'>
  readonly store: BarStore
  /** The turns of the process, which other requests to the same venues take too. */
  readonly paces: VenuePaces
  /** Epoch seconds. */
  readonly now: () => number
  /** A request that takes longer counts as failed. */
  readonly requestSeconds: number
}

/** Requests to all venues of a process. */
export class VenueRequests {
  readonly health: SourceHealth
  readonly #options: VenueRequestsOptions

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
   * before the symbol was listed: then it is `empty`. With `maxWaitMs`, null if the venue cannot be asked that soon.
   */
  async minutes(
    listing: Listing,
    from: number,
    to: number,
    signal: AbortSignal,
    { mayBeEmpty = false, maxWaitMs = Infinity }: { readonly mayBeEmpty?: boolean; readonly maxWaitMs?: number } = {},
  ): Promise<VenueAnswer | 'empty' | null> {
    const { name, symbol, venue } = listing
    if (!this.isUsable(listing)) return null
    const rejected = new Set<number>()
    const parts: Columns[] = []
    try {
      const size = venue.windowMinutes * 60
      for (let at = from; at < to; at += size) {
        if (!(await this.#options.paces.turn(name, listing.pace, maxWaitMs, signal))) return null
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

  async #request({ venue, name, code }: Listing, from: number, to: number, signal: AbortSignal) {
    const limit = timeoutSignal(this.#options.requestSeconds * 1000)
    try {
      return await venue.minutes(code, from, to, AbortSignal.any([signal, limit]))
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error
      throw new RequestError(`${name} did not answer within ${this.#options.requestSeconds} seconds`, 0, null, error)
    }
  }
}

function joined(parts: readonly Columns[]): Columns {
  if (parts.length === 1) return parts[0]!
  const out = createColumns()
  for (const { count, time, open, high, low, close, volume, state } of parts)
    for (let i = 0; i < count; i += 1) out.add(time[i]!, open[i]!, high[i]!, low[i]!, close[i]!, volume[i]!, state[i]!)
  return out.end()
}
