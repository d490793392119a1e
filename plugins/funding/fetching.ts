/** One request to a venue, bounded in time by the caller's fetch and in size here. */
import type { VenueRequest } from './venues/venue.ts'

/** The largest answer, all Binance contracts, is under one megabyte. */
const MOST_BYTES = 16 * 1024 * 1024
const PATIENCE_SECONDS = 30
const REFUSED_SECONDS = 3600

/** The venue did not answer as it should. */
export class VenueError extends Error {
  override readonly name = 'VenueError'
  /** Seconds to leave the venue alone. */
  readonly pauseSeconds: number

  constructor(message: string, pauseSeconds: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.pauseSeconds = pauseSeconds
  }
}

/**
 * The JSON of a request. Throws VenueError for any other answer: Retry-After is obeyed, a refusal (403, 418, 451) means
 * an hour of rest, a redirect is not followed.
 */
export async function fetchJson(
  url: string,
  { path, body }: VenueRequest,
  get: typeof fetch,
  signal: AbortSignal,
): Promise<unknown> {
  try {
    const response = await get(url + path, {
      signal,
      redirect: 'manual',
      headers: { accept: 'application/json', ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    })
    if (response.ok) return JSON.parse(await bounded(response)) as unknown
    await response.body?.cancel()
    throw new VenueError(`${path} answered ${response.status}`, pauseAfter(response))
  } catch (error) {
    if (error instanceof VenueError || signal.aborted) throw error
    const reason = error instanceof SyntaxError ? 'answered something that is not JSON' : `did not answer`
    throw new VenueError(`${path} ${reason}`, PATIENCE_SECONDS, error)
  }
}

function pauseAfter({ status, headers }: Response): number {
  if (status === 403 || status === 418 || status === 451) return REFUSED_SECONDS
  const asked = Number(headers.get('retry-after') ?? NaN)
  return Number.isFinite(asked) ? Math.min(REFUSED_SECONDS, Math.max(1, asked)) : PATIENCE_SECONDS
}

async function bounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += (chunk as Uint8Array).length
    if (size > MOST_BYTES) throw new VenueError(`an answer above ${MOST_BYTES} bytes`, PATIENCE_SECONDS)
    chunks.push(chunk as Uint8Array)
  }
  return Buffer.concat(chunks).toString('utf8')
}
