/** Creates the context that `setup` of a plugin receives: settings, stores, outbound fetch, log and clock. */
import type { Config } from '../config/config.ts'
import type { Attestations } from '../tokens/attestation-keys.ts'
import type { KeyValueStore, Logger, PluginContext, Progress } from '../plugin/plugin.ts'
import { timeoutSignal } from '../plugin/timeout-signal.ts'
import { databaseOf } from '../stores/connection-use.ts'
import type { OpenDatabase } from '../stores/database.ts'

export interface ContextParts {
  readonly config: Pick<Config, 'dataMode' | 'replayDir' | 'replayShift'>
  /** Name of the plugin. Keys in the shared store begin with the names of plugin and product. */
  readonly plugin: string
  readonly product: string
  readonly settings: Readonly<Record<string, unknown>>
  readonly db: OpenDatabase
  readonly kv: (namespace: string) => KeyValueStore
  /** The default is the global one. */
  readonly fetch?: typeof fetch
  readonly work: PluginContext['work']
  readonly attestations: Attestations
  readonly charged: PluginContext['charged']
  readonly log: Logger
  /** The clock of the data. */
  readonly now: () => Date
}

const USER_AGENT = 'tollgate/0.1'
const FETCH_MS = 15_000
/** Share of the work per log line. */
const TENTH = 0.1

/** Creates the context of one product. */
export function createContext({
  config,
  plugin,
  product,
  settings,
  db,
  kv,
  fetch = globalThis.fetch,
  work,
  attestations,
  charged,
  log,
  now,
}: ContextParts): PluginContext {
  const own = log.child({ product })
  return {
    product,
    settings,
    db: databaseOf(db, product),
    kv: kv(`${plugin}/${product}`),
    fetch: outbound(fetch),
    log: own,
    deployment: deploymentSettings(config),
    work,
    progress: (label, total) => createProgress(own, label, total, process.stderr),
    attest: {
      key: async (serial) => attestations.key(product, serial),
      sign: async (serial, json) => attestations.sign(product, serial, json),
    },
    charged,
    now,
  }
}

/** The settings of the deployment, as plugins read them in `context.deployment`. */
export function deploymentSettings({
  dataMode,
  replayDir,
  replayShift,
}: ContextParts['config']): PluginContext['deployment'] {
  const { setting, seconds } = replayShift
  return Object.freeze({
    data_mode: dataMode,
    ...(replayDir === null ? {} : { replay_dir: replayDir }),
    replay_shift: setting,
    ...(seconds === null ? {} : { replay_shift_seconds: String(seconds) }),
  })
}

/** A `fetch` with our user agent and a timeout of 15 seconds, which a signal of the caller cannot extend. */
function outbound(send: typeof fetch): typeof fetch {
  return (input, init = {}) => {
    const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined))
    if (!headers.has('user-agent')) headers.set('user-agent', USER_AGENT)
    const signals = [timeoutSignal(FETCH_MS), init.signal, input instanceof Request ? input.signal : null]
    return send(input, { ...init, headers, signal: AbortSignal.any(signals.filter((signal) => signal != null)) })
  }
}

/** Reports progress: on a terminal in one line that is rewritten, otherwise with a log line for each tenth. */
export function createProgress(
  log: Pick<Logger, 'info'>,
  label: string,
  total: number,
  out: { readonly isTTY?: boolean | undefined; write(text: string): unknown },
): Progress {
  let done = 0
  let shown = -1
  const show = (): void => {
    const share = total > 0 ? Math.min(1, done / total) : 1
    const step = out.isTTY ? Math.floor(share * 100) : Math.floor(share / TENTH + 1e-9) * 10
    if (step === shown) return
    shown = step
    if (out.isTTY) out.write(`\r${label} ${step}%\u001b[K`)
    else log.info({ done: Math.round(done), total: Math.round(total) }, `${label} ${step}%`)
  }
  return {
    advance(count) {
      done += count
      show()
    },
    end() {
      done = total
      show()
      if (out.isTTY) out.write('\n')
    },
  }
}
