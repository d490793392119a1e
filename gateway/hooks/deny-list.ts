/** The built-in hook `deny-list`: refuses payers whose address is in a file, or in a list on the web. */
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { defineHook, type HookContext, timeoutSignal } from '../plugin/plugin.ts'

const SETTINGS = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    file: { type: 'string', minLength: 1 },
    url: { type: 'string', pattern: '^(https://|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])[:/])' },
    refresh_seconds: { type: 'integer', minimum: 1, maximum: 86_400, default: 300 },
    message: { type: 'string', minLength: 1, default: 'The seller does not sell to this payer.' },
  },
} as const

type Denied = ReadonlySet<string>

/** Some 100,000 addresses. */
const MAX_BYTES = 5_000_000
const FETCH_MS = 10_000
/** How often a file is looked at, at most. */
const LOOK_MS = 500
const ADDRESS = /^0x[0-9a-f]{40}$/

/** Creates the hook. */
export const denyListHook = defineHook({
  name: 'deny-list',
  settings: SETTINGS,
  setup({ settings, fetch, log }) {
    const lists = [
      ...(settings.file === undefined ? [] : [listInFile(resolve(settings.file), log)]),
      ...(settings.url === undefined ? [] : [listOnWeb(settings.url, settings.refresh_seconds, { fetch, log })]),
    ]
    return {
      async screen({ payer }) {
        const denied = await Promise.all(lists.map((list) => list.read()))
        return denied.some((each) => each.has(payer.toLowerCase())) ? { refuse: settings.message } : { allow: true }
      },
      stop: async () => lists.forEach((list) => list.stop()),
    }
  },
})

interface List {
  /** The last good list. Throws while there is none. */
  read(): Promise<Denied>
  stop(): void
}

/** Reads a file again whenever it has changed. */
function listInFile(path: string, log: HookContext['log']): List {
  let last: { readonly denied: Denied; readonly stamp: string } | null = null
  let failed = ''
  let lookedAt = -Infinity
  let looking: Promise<void> = Promise.resolve()

  async function look(): Promise<void> {
    try {
      const { mtimeMs, ctimeMs, size, ino } = await stat(path)
      const stamp = [mtimeMs, ctimeMs, size, ino].join()
      if (last?.stamp === stamp) return
      if (size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
      last = { denied: addressesIn(await readFile(path, 'utf8')), stamp }
      failed = ''
      log.info({ file: path, addresses: last.denied.size }, 'a deny list was read')
    } catch (error) {
      const { message } = error as Error
      if (last && message !== failed)
        log.error({ file: path, err: error }, 'a deny list could not be read: the last good one counts')
      failed = message
    }
  }

  return {
    async read() {
      if (performance.now() - lookedAt > LOOK_MS || last === null) {
        lookedAt = performance.now()
        looking = look()
      }
      await looking
      if (last) return last.denied
      throw new Error(`The deny list ${path} cannot be read: ${failed}`)
    },
    stop() {},
  }
}

/** Fetches a list at intervals. */
function listOnWeb(url: string, seconds: number, { fetch, log }: Pick<HookContext, 'fetch' | 'log'>): List {
  let denied: Denied | null = null
  let failed: unknown
  let loading: Promise<void> | null = null

  async function load(): Promise<void> {
    try {
      const response = await fetch(url, { redirect: 'error', signal: timeoutSignal(FETCH_MS) })
      if (!response.ok) throw new Error(`it answers ${response.status}`)
      const isFirst = denied === null
      denied = addressesIn(await textOf(response))
      if (isFirst || failed !== undefined) log.info({ url, addresses: denied.size }, 'a deny list was fetched')
      failed = undefined
    } catch (error) {
      failed = error
      const outcome = denied ? 'the last good one counts' : 'there is none to go by'
      log.error({ url, err: error }, `a deny list could not be fetched: ${outcome}`)
    }
  }
  const loadOnce = (): Promise<void> => (loading ??= load().finally(() => (loading = null)))

  void loadOnce()
  const timer = setInterval(() => void loadOnce(), seconds * 1000).unref()
  return {
    async read() {
      if (denied === null) await loadOnce()
      if (denied) return denied
      throw new Error(`The deny list at ${url} cannot be fetched.`, { cause: failed })
    },
    stop: () => clearInterval(timer),
  }
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/**
 * Reads addresses, one a line or as a JSON array of strings; what follows a # is a comment. Throws if there is anything else,
 * or nothing: a page of an error, or a file that is being written, must not pass for a list.
 */
export function addressesIn(text: string): Denied {
  if (text.trim() === '') throw new Error('it is empty; a list without addresses needs a comment')
  const lines = text.trimStart().startsWith('[')
    ? arrayIn(text)
    : text.split('\n').map((line) => line.replace(/#.*/, ''))
  const addresses = lines.map((line) => line.trim().toLowerCase()).filter(Boolean)
  const wrong = addresses.find((address) => !ADDRESS.test(address))
  if (wrong !== undefined) throw new Error(`"${wrong.slice(0, 60)}" in it is no address`)
  return new Set(addresses)
}

function arrayIn(text: string): readonly string[] {
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
  throw new Error('it is no array of strings')
}
