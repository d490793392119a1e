/**
 * Everything a plugin may know, imported as `tollgate/plugin`. Plugins import this module, `plugins/quant`, generated types,
 * npm packages and Node; never the gateway's inside and never another plugin.
 */
import type { Catalog, JsonSchema, Operation, OperationId } from './catalog.ts'
import type { Database } from './database.ts'

export {
  isPostgres,
  type Column,
  type Database,
  type Insertion,
  type JoinClause,
  type Query,
  type Raw,
  type Schema,
  type TableBuilder,
} from './database.ts'
export type { Catalog, JsonSchema, Operation, OperationId, Plan, Product } from './catalog.ts'
export { readCursor, writeCursor, type Place } from './cursor.ts'
export { InvalidInput, NotFound, ServiceError, Unavailable, type ValidationItem } from '../errors.ts'

/** A file that a caller sent. */
export interface Upload {
  readonly filename: string
  readonly mediaType: string
  readonly bytes: Buffer
}

/** Filled by schemas/types.d.ts: plugin name → operation id → { input, output }, and `asked` where defaults make a difference. */
export interface Plugins {}

/** All operations of all typed plugins, by id. */
type Operations = UnionToIntersection<Plugins[keyof Plugins]>
type UnionToIntersection<Union> = (Union extends unknown ? (value: Union) => void : never) extends (
  value: infer Both,
) => void
  ? Both
  : never

/**
 * The `{ params, query, body }` that an operation is asked with: exact where generated types know it, open where they do
 * not. What has a default may be left out.
 */
export type InputOf<Id extends OperationId> = Id extends keyof Operations
  ? Operations[Id] extends { asked: infer Asked }
    ? Asked
    : Operations[Id] extends { input: infer Input }
      ? Input
      : Input
  : Input
export type OutputOf<Id extends OperationId> = Id extends keyof Operations
  ? Operations[Id] extends { output: infer Output }
    ? Output
    : unknown
  : unknown

/** What a call brings when no generated type says more. */
export interface Input {
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
}

export type Migration = (db: Database) => Promise<void>

export interface Plugin<Name extends string = string> {
  /** The word in a product's `plugin` field, before any `@version`. */
  readonly name: Name
  /** Steps run once each, in order, before setup, on SQLite and PostgreSQL alike. Append only. */
  readonly migrations?: readonly Migration[]
  /** JSON Schemas with an `$id`, for a plugin that travels on its own. First-party ones live in schemas/. */
  readonly schemas?: readonly JsonSchema[]
  /** JSON Schema of the `settings` object in the product's catalog document. */
  readonly settings?: JsonSchema
  /** Folder of Pug views, for a plugin that travels on its own. */
  readonly views?: URL
  /** Called once per product that names this plugin. */
  setup(context: PluginContext): Registration<Name> | Promise<Registration<Name>>
}

export type Handlers<Name extends string> = Name extends keyof Plugins
  ? {
      readonly [Id in keyof Plugins[Name]]: Plugins[Name][Id] extends { input: infer In; output: infer Out }
        ? Handler<In, Out>
        : never
    }
  : Readonly<Record<string, Handler<never>>>

export interface Registration<Name extends string = string> {
  /** One handler per operation id the catalog assigns: no fewer, no more. */
  readonly handlers: Handlers<Name>
  /** Work on a clock. Runs never overlap; a failure is logged and counted, never thrown. */
  readonly jobs?: readonly Job[]
  /** Small numbers and words for /v1/stats and /health. */
  facts?(): Promise<Facts>
  /**
   * Reports how current the data are that an answer to this input would use. `asOf` is the newest moment the caller may
   * see, as in a call. `input` is validated, as a handler gets it.
   */
  freshness?(input: Input & { readonly operation: OperationId }, asOf: Date): Freshness | Promise<Freshness>
  stop?(): Promise<void>
}

export type Facts = Readonly<Record<string, unknown>>

/** How current the data behind an answer are, on the clock of the data. */
export interface Freshness {
  /** The newest moment that the data cover, or null if there are no data yet. */
  readonly newest: Date | null
  /** How many sources deliver data at present. */
  readonly sources: number
  /** The part of the expected data that is there, from 0 to 1. */
  readonly coverage: number
}

export interface PluginContext {
  /** The product this instance serves. */
  readonly product: string
  readonly settings: Readonly<Record<string, unknown>>
  /** Tables prefixed by the plugin's name; the same code on SQLite and PostgreSQL. */
  readonly db: Database
  /** Namespaced; may be emptied at any time. */
  readonly kv: KeyValueStore
  /** Outbound, with a timeout and our user agent. */
  readonly fetch: typeof fetch
  readonly log: Logger
  /**
   * Settings of the whole deployment, by name. The gateway passes them on and does not read them for a plugin:
   * `data_mode` is "sample", "replay" or "online". `replay_dir` is the folder of recordings, absent without one.
   * `replay_shift` is REPLAY_SHIFT as it was configured; `replay_shift_seconds` is its meaning: the seconds to add to
   * every recorded time, "0" to keep them. It is absent if the plugin moves its recording so that it goes on now.
   */
  readonly deployment: Readonly<Record<string, string>>
  /**
   * Runs a pure function off the event loop, so that long computations do not delay other calls. `module` is the address
   * of a module of the plugin whose default export is the function, e.g. `new URL('./fit.ts', import.meta.url)`. The
   * function gets a structured clone of `input`; buffers in `transfer` move instead of being copied. It must use nothing
   * but its argument. An error it throws rejects the promise. Rejects with the signal's reason when the signal aborts.
   */
  work<In, Out>(module: URL, input: In, options?: WorkOptions): Promise<Out>
  /** Reports long work: one line on a terminal, or one log line for each tenth. */
  progress(label: string, total: number): Progress
  /** The clock of the data: shifted or frozen in replay mode. Never read Date.now() in a plugin. */
  now(): Date
}

/** A structured log. The object's fields become fields of the log line; `err` takes an error. */
export interface Logger {
  debug: LogMethod
  info: LogMethod
  warn: LogMethod
  error: LogMethod
  /** A log whose lines all carry these fields. */
  child(fields: object): Logger
}

export interface LogMethod {
  (fields: object, message?: string): void
  (message: string): void
}

/** A cache. Entries may vanish at any time, and with Redis they are shared by all processes. */
export interface KeyValueStore {
  get<Value = unknown>(key: string): Promise<Value | undefined>
  /** `ttl` in milliseconds; without it the entry stays until it is evicted. */
  set(key: string, value: unknown, ttl?: number): Promise<unknown>
  delete(key: string): Promise<boolean>
}

export interface WorkOptions {
  readonly transfer?: readonly ArrayBuffer[]
  readonly signal?: AbortSignal
}

export interface Progress {
  /** Adds to what is done. */
  advance(count: number): void
  end(): void
}

export type Handler<In = Input, Out = unknown> = (call: Call<In>) => Out | Reply<Out> | Promise<Out | Reply<Out>>

export type Access =
  | { readonly kind: 'free' }
  | { readonly kind: 'token'; readonly plan: string; readonly subject: string; readonly expiresAt: Date }
  | {
      readonly kind: 'payment'
      readonly payer: string
      readonly amount: bigint
      /** When the payment was taken into work. */
      readonly at?: Date
    }

/** Runs another product's operation in this edition, at this asOf, free of charge. Named in the catalog's `uses`. */
export type Ask = <Id extends OperationId>(operation: Id, input: InputOf<Id>) => Promise<OutputOf<Id>>

export interface Call<In = Input> {
  /** Shown to the caller, in logs and in errors. */
  readonly id: string
  readonly operation: Operation
  /** The edition serving this call. */
  readonly catalog: Catalog
  /** `{ params, query, body }`: validated, defaults applied. */
  readonly input: In
  readonly access: Access
  /** Newest moment of data this caller may see. */
  readonly asOf: Date
  /** The time budget is spent, or the caller is gone. */
  readonly signal: AbortSignal
  readonly ask: Ask
  /** Set where the caller would take server-sent events; `lastEventId` is the last one it had before. */
  readonly stream?: StreamWish
}

export interface StreamWish {
  readonly lastEventId: string | null
}

export interface Job {
  readonly name: string
  readonly everySeconds: number
  /** `ask` works at the asOf of the moment the run began. */
  run(job: { readonly signal: AbortSignal; readonly ask: Ask }): Promise<void>
}

/** Returns the plugin unchanged; the name is kept as a literal so that its handlers are typed. */
export function definePlugin<const Name extends string>(plugin: Plugin<Name>): Plugin<Name> {
  return plugin
}

export interface ReplyInit {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface ServerEvent {
  readonly id: string
  readonly data: unknown
}

/** A handler's answer when the plain value is not enough: another status, headers, or a stream of events. */
export class Reply<Body = unknown> {
  readonly body: Body
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly source: AsyncIterable<ServerEvent> | undefined

  constructor(body: Body, init: ReplyInit = {}, source?: AsyncIterable<ServerEvent>) {
    this.body = body
    this.status = init.status ?? 200
    this.headers = init.headers ?? {}
    this.source = source
  }

  /**
   * Server-sent events for token holders; each event has an id to resume from. The stream ends with the token, a
   * revocation or an edition swap.
   */
  static events(source: AsyncIterable<ServerEvent>): Reply<never> {
    return new Reply(undefined as never, {}, source)
  }
}
