/** Polite requests to public data sources: bounded in size, and paused as the source asks. */

/** The largest JSON answer that is read. All contracts of Binance are under one megabyte. */
const MAX_BYTES = 16 * 1024 * 1024

/** A source did not answer with usable JSON. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  /** HTTP status; 0 if there was no answer or its body could not be read. */
  readonly status: number
  /** Seconds that the Retry-After header asks for, at least 1; null if there is none that can be read. */
  readonly retryAfterSeconds: number | null

  constructor(message: string, status: number, retryAfterSeconds: number | null = null, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export interface JsonRequest {
  readonly url: string | URL
  /** Names the source in error messages. */
  readonly label: string
  /** A JSON body makes it a POST. */
  readonly body?: object | undefined
  readonly fetch: typeof fetch
  readonly signal: AbortSignal
}

/**
 * Fetches JSON. Redirects are not followed, and an answer above 16 MiB is refused. Throws RequestError for everything
 * that is not a 2xx with JSON, and the signal's reason when it aborts.
 */
export async function requestJson(request: JsonRequest): Promise<unknown> {
  return (await requestDatedJson(request)).body
}

/** JSON, and when the source says that it was sent. */
export interface DatedJson {
  readonly body: unknown
  /** The `Date` header, epoch seconds; null if there is none that can be read. */
  readonly date: number | null
}

/** As `requestJson`, with the clock of the source. */
export async function requestDatedJson({ url, label, body, fetch, signal }: JsonRequest): Promise<DatedJson> {
  try {
    const response = await fetch(url, {
      signal,
      redirect: 'manual',
      headers: { accept: 'application/json', ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    })
    if (!response.ok) {
      await response.body?.cancel()
      throw new RequestError(`${label} answered ${response.status}`, response.status, retryAfter(response))
    }
    const text = await readBoundedText(response, MAX_BYTES)
    if (text === null) throw new RequestError(`${label} sent an answer above ${MAX_BYTES} bytes`, 0)
    return { body: JSON.parse(text) as unknown, date: dateOf(response) }
  } catch (error) {
    if (error instanceof RequestError || signal.aborted) throw error
    const reason = error instanceof SyntaxError ? 'answered something that is not JSON' : 'did not answer'
    throw new RequestError(`${label} ${reason}`, 0, null, error)
  }
}

function dateOf({ headers }: Response): number | null {
  const date = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(date) ? null : date / 1000
}

/** Retry-After as seconds: a number, or a date, which counts from the `Date` of the answer. */
function retryAfter(response: Response): number | null {
  const header = response.headers.get('retry-after') ?? ''
  const seconds = /^\d+$/.test(header) ? Number(header) : Date.parse(header) / 1000 - (dateOf(response) ?? NaN)
  return Number.isNaN(seconds) ? null : Math.max(1, seconds)
}

/** The body of a response as UTF-8 text; null, with the rest of the body cancelled, if it is longer than `maxBytes`. */
export async function readBoundedText(response: Response, maxBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += (chunk as Uint8Array).length
    if (size > maxBytes) return null
    chunks.push(chunk as Uint8Array)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Remembers which sources must not be asked, and until when. */
export interface Pauses<Name extends string> {
  isPaused(name: Name): boolean
  /** Pauses a source for so long. A longer pause that it has already stays. */
  pause(name: Name, seconds: number): Promise<void>
  /** Adds the pauses that an earlier start, or another process, has kept. */
  load(): Promise<void>
}

/** Keeps pauses beyond this process. Times are epoch seconds. */
export interface PauseStore<Name extends string> {
  keepPause(name: Name, until: number): Promise<void>
  /** When each pause that is kept ends. */
  pauses(): Promise<ReadonlyMap<Name, number>>
}

/** Creates pauses that end by the clock `now`, in epoch seconds. Without a store they end with the process. */
export function createPauses<Name extends string>(now: () => number, store?: PauseStore<Name>): Pauses<Name> {
  const ends = new Map<Name, number>()
  const extend = (name: Name, until: number): number => {
    const end = Math.max(ends.get(name) ?? 0, until)
    ends.set(name, end)
    return end
  }
  return {
    isPaused: (name) => now() < (ends.get(name) ?? 0),
    async pause(name, seconds) {
      const end = extend(name, now() + seconds)
      await store?.keepPause(name, end)
    },
    async load() {
      for (const [name, until] of (await store?.pauses()) ?? []) extend(name, until)
    },
  }
}
