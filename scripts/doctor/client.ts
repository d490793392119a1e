/** The doctor's HTTP client: limited in concurrency and time, and never following redirects. */

/** An answer that was read completely. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body parsed as JSON, or undefined. */
  readonly json: unknown
}

export interface Client {
  /** Sends a request to a path or an absolute address. Throws if nothing answers in time. */
  request(path: string, init?: { method?: string; body?: string; headers?: Record<string, string> }): Promise<Answer>
  /** Runs `work` for every item, a few at a time. */
  forEach<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void>
}

/** The service that is checked. */
export interface Place {
  readonly client: Client
  /** The address that buyers use, without a trailing slash. */
  readonly baseUrl: string
}

const CONCURRENCY = 8
const TIMEOUT_MS = 15_000
const MAX_RETRIES = 5

/** Creates a client of the service at `baseUrl`. Addresses that begin with `publicUrl` are requested there, too. */
export function createClient(baseUrl: string, publicUrl = baseUrl): Client {
  async function send(path: string, init: RequestInit): Promise<Answer> {
    const here = path.startsWith(`${publicUrl}/`) ? path.slice(publicUrl.length) : path
    const response = await fetch(new URL(here, `${baseUrl}/`), {
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...init,
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parseJson(text) }
  }

  return {
    async request(path, init = {}) {
      for (let retries = 0; ; retries++) {
        const answer = await send(path, init)
        if (answer.status !== 429 || retries === MAX_RETRIES) return answer
        const seconds = Number(answer.headers.get('retry-after') ?? 1)
        await new Promise((wake) => setTimeout(wake, Math.min(30, seconds) * 1000))
      }
    },
    async forEach(items, work) {
      const queue = [...items]
      const worker = async (): Promise<void> => {
        for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item)
      }
      await Promise.all(Array.from({ length: CONCURRENCY }, worker))
    },
  }
}

/** Parses JSON; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** Returns the value if it is an object, else an empty object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

/** Returns the entries of a list or the values of an object, each as an object. */
export function itemsOf(value: unknown): readonly Fields[] {
  return (Array.isArray(value) ? value : Object.values(fieldsOf(value))).map(fieldsOf)
}
