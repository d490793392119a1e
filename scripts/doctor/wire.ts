/** The doctor's requests: bounded in number and time, redirects never followed. */

/** An answer read whole. */
export interface Heard {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; undefined where it is none. */
  readonly json: unknown
}

export interface Wire {
  /** `path` is below the base address, or absolute. Throws where nothing answers in time. */
  ask(path: string, init?: { method?: string; body?: string; headers?: Record<string, string> }): Promise<Heard>
  /** Runs work for every item, a few at a time. */
  each<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void>
}

const AT_ONCE = 8
const PATIENCE_MS = 15_000
const MOST_WAITS = 5

/** Asks at `baseUrl`, also for addresses that begin with `publicUrl`. */
export function createWire(baseUrl: string, publicUrl = baseUrl): Wire {
  async function once(path: string, init: RequestInit): Promise<Heard> {
    const here = path.startsWith(`${publicUrl}/`) ? path.slice(publicUrl.length) : path
    const response = await fetch(new URL(here, `${baseUrl}/`), {
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...init,
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parsed(text) }
  }

  return {
    async ask(path, init = {}) {
      for (let waits = 0; ; waits++) {
        const heard = await once(path, init)
        if (heard.status !== 429 || waits === MOST_WAITS) return heard
        const seconds = Number(heard.headers.get('retry-after') ?? 1)
        await new Promise((wake) => setTimeout(wake, Math.min(30, seconds) * 1000))
      }
    },
    async each(items, work) {
      const left = [...items]
      const worker = async (): Promise<void> => {
        for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
      }
      await Promise.all(Array.from({ length: AT_ONCE }, worker))
    },
  }
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export type Fields = Readonly<Record<string, unknown>>

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

/** The entries of a list or the values of an object, each as an object. */
export function itemsOf(value: unknown): readonly Fields[] {
  return (Array.isArray(value) ? value : Object.values(fieldsOf(value))).map(fieldsOf)
}
