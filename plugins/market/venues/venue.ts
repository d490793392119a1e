import type { Columns } from '../bars.ts'
import type { VenueName } from '../symbols.ts'

/** A public source of minute bars. */
export interface Venue {
  readonly name: VenueName
  /** Most minutes one request returns. */
  readonly windowMinutes: number
  /**
   * Closed minutes of the venue's symbol that open in [from, to), epoch seconds, at most `windowMinutes` of them.
   * Minutes without a trade may be missing. Throws VenueError.
   */
  minutes(symbol: string, from: number, to: number, signal: AbortSignal): Promise<Columns>
}

export interface VenueOptions {
  /** Address of the interface, without a trailing slash. */
  readonly url: string
  readonly fetch: typeof fetch
}

/** The venue did not answer with bars. */
export class VenueError extends Error {
  readonly status: number
  /** Seconds to wait before the next request. */
  readonly retryAfter: number
  /** True where asking again would make it worse: banned (418) or not allowed from here (451). */
  readonly refused: boolean

  constructor(venue: string, status: number, retryAfter: number, cause?: unknown) {
    super(`${venue} answered ${status === 0 ? 'nothing' : status}`, cause === undefined ? undefined : { cause })
    this.name = 'VenueError'
    this.status = status
    this.retryAfter = retryAfter
    this.refused = status === 418 || status === 451
  }
}

const PATIENCE_SECONDS = 10

/** GETs a JSON array. Throws VenueError for any other answer, with the wait that Retry-After asks for. */
export async function getRows(
  venue: VenueName,
  address: URL,
  options: VenueOptions,
  signal: AbortSignal,
): Promise<unknown[][]> {
  let response: Response
  try {
    response = await options.fetch(address, { signal, headers: { accept: 'application/json' } })
    if (response.ok) {
      const rows: unknown = await response.json()
      if (Array.isArray(rows) && rows.every(Array.isArray)) return rows as unknown[][]
    }
  } catch (error) {
    if (signal.aborted) throw error
    throw new VenueError(venue, 0, PATIENCE_SECONDS, error)
  }
  const asked = Number(response.headers.get('retry-after') ?? NaN)
  throw new VenueError(venue, response.status, Number.isFinite(asked) ? Math.max(1, asked) : PATIENCE_SECONDS)
}
