/** Sets up plugins on a database of their own, without a gateway. */
import type { DataMode } from 'tollgate/plugin'
import { setMaxListeners } from 'node:events'
import {
  type Ask,
  type Call,
  type Logger,
  type OperationId,
  type OutputOf,
  type Plugin,
  type PluginContext,
  type Registration,
  Reply,
} from 'tollgate/plugin'
import { pino } from 'pino'
import { parseReplayShift } from '../../gateway/config/config.ts'
import { deploymentSettings } from '../../gateway/products/plugin-context.ts'
import { createWorkerPool } from '../../gateway/workers/pool.ts'
import { openDatabase, type DatabaseOptions, type OpenDatabase } from '../../gateway/stores/database.ts'
import { readSettings } from '../../gateway/products/settings.ts'
import { openKv } from '../../gateway/stores/kv.ts'
import { migrate } from '../../gateway/stores/migrations.ts'
import { openLocalKeys } from '../../gateway/tokens/statement-signer.ts'

export interface PluginHostOptions {
  readonly now: () => Date
  readonly dataMode?: DataMode
  readonly replayDir?: string
  readonly replayShift?: string
  readonly database?: DatabaseOptions
  readonly db?: OpenDatabase
  readonly fetch?: typeof fetch
  readonly log?: Logger
  /** Called when a plugin begins to show progress. */
  readonly onProgress?: () => void
}

export interface HostedPlugin {
  readonly plugin: Plugin
  readonly settings: Readonly<Record<string, unknown>>
}

export interface PluginHost {
  readonly db: OpenDatabase
  readonly registrations: readonly Registration[]
  /** Calls an operation as of `asOf`. Default: `maxFreshnessSeconds` before now. */
  call<Id extends OperationId>(
    operation: Id,
    query?: object,
    more?: { asOf?: Date; maxFreshnessSeconds?: number; body?: unknown },
  ): Promise<OutputOf<Id>>
  /** Runs every job with this name once. */
  run(job: string, signal?: AbortSignal): Promise<void>
  stop(): Promise<void>
}

/** The threads of all hosts of a process, as those of a gateway are of all products: a thread takes a second to start. */
const workers = createWorkerPool()

/** The keys of all hosts of a process. */
const keys = openLocalKeys(null, null)

/** Sets up the plugins in this order. Each of them may ask for every operation of all of them. */
export async function openPluginHost(
  plugins: readonly HostedPlugin[],
  options: PluginHostOptions,
): Promise<PluginHost> {
  const db = options.db ?? openDatabase(options.database ?? { file: ':memory:' })
  const kv = openKv(null)
  const stopping = new AbortController()
  const { attestations } = await keys
  const registrations: Registration[] = []
  const ask =
    (asOf: Date, signal: AbortSignal): Ask =>
    async (id, ...[input]) =>
      dispatch(id, { params: {}, query: {}, ...input }, asOf, signal, 0) as never
  const dispatch = async (id: string, input: object, asOf: Date, signal: AbortSignal, delaySeconds: number) => {
    const handlers = registrations.map(
      (registration) => registration.handlers as Record<string, (call: Call) => unknown>,
    )
    const handler = handlers.find((candidate) => id in candidate)?.[id]
    if (!handler) throw new Error(`no handler ${id}`)
    const operation = { id, maxFreshnessSeconds: delaySeconds }
    const call = {
      id: 'test',
      operation,
      input,
      asOf,
      client: 'test',
      signal,
      ask: ask(asOf, signal),
    } as unknown as Call
    const answer = await handler(call)
    return answer instanceof Reply ? answer.body : answer
  }
  const stop = async (): Promise<void> => {
    for (const registration of registrations) await registration.stop?.()
    stopping.abort(new Error('The gateway is closing.'))
    if (!options.db) await db.destroy()
  }
  const setUp = async ({ plugin, settings }: HostedPlugin): Promise<void> => {
    await migrate(db, plugin.name, plugin.migrations ?? [])
    const given = { file: plugin.name, settings }
    const context: PluginContext = {
      product: plugin.name,
      settings: readSettings(given, plugin.settings, { secret: () => null, isChecked: false }).settings,
      db,
      kv: kv(plugin.name),
      fetch: options.fetch ?? fetch,
      log: options.log ?? pino({ level: 'silent' }),
      deployment: deploymentSettings({
        dataMode: options.dataMode ?? 'sample',
        replayDir: options.replayDir ?? null,
        replayShift: parseReplayShift(options.replayShift ?? 'auto'),
      }),
      work: (module, input, work = {}) =>
        workers.work(module, input, {
          ...work,
          signal: AbortSignal.any([stopping.signal, ...(work.signal ? [work.signal] : [])]),
        }),
      progress() {
        options.onProgress?.()
        return { advance: () => undefined, end: () => undefined }
      },
      attest: {
        key: async (serial) => attestations.key(plugin.name, serial),
        sign: async (serial, json) => attestations.sign(plugin.name, serial, json),
      },
      charged: async () => new Map(),
      now: options.now,
    }
    registrations.push(await plugin.setup(context))
  }
  try {
    for (const hosted of plugins) await setUp(hosted)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    db,
    registrations,
    async call(operation, query = {}, { asOf, maxFreshnessSeconds = 0, body } = {}) {
      const at = asOf ?? new Date(options.now().getTime() - maxFreshnessSeconds * 1000)
      const input = { params: {}, query, body }
      return dispatch(operation, input, at, new AbortController().signal, maxFreshnessSeconds) as never
    },
    async run(name, signal = new AbortController().signal) {
      // As the gateway does: every pending request of a run listens to its signal.
      setMaxListeners(0, signal)
      for (const job of registrations.flatMap((registration) => registration.jobs ?? []))
        if (job.name === name) await job.run({ signal, ask: ask(options.now(), signal) })
    },
    stop,
  }
}
