/**
 * The plugin API, imported as `tollgate/plugin`. A plugin imports this module, the types generated from the schemas, npm
 * packages, Node and its own files. It never imports other modules of the gateway or another plugin; to use another
 * product it calls `ask`. Our own plugins share pure code in `plugins/lib` besides.
 */
import type { Catalog, JsonSchema, Operation, OperationId } from './catalog.ts'
import type { Database } from './database.ts'
import type { Deployment } from './deployment.ts'
import type { ErrorCode } from '../errors.ts'
import type { FromSchema } from './from-schema.ts'
import type { Reply } from './reply.ts'

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
export type { Chart, ChartAxis, ChartSeries, ChartTable, ChartTone, WaterfallStep } from './chart.ts'
export type { DataMode, Deployment, ReplayShift } from './deployment.ts'
export type { FromSchema } from './from-schema.ts'
export { readCursor, writeCursor, type Place } from './cursor.ts'
export { once } from '../once.ts'
export { JsonReply, Reply, type ReplyInit, type ServerEvent } from './reply.ts'
export { timeoutSignal } from './timeout-signal.ts'
export { transfer } from './transfer.ts'
export { hasUnreadBody } from './unread-body.ts'
export {
  InvalidInput,
  NotFound,
  NotHeld,
  RateLimited,
  ServiceError,
  Unavailable,
  type ValidationItem,
  type Window,
} from '../errors.ts'

/** The version of this API: docs/plugins.md lists what each one changed. */
export const API_VERSION = 2

/** A file that a caller sent, in a form or as text in a JSON body. */
export interface Upload {
  /** The name that the caller gave the file, or the name of the field. Do not use it as a path. */
  readonly filename: string
  /** The media type that the caller named, e.g. "text/csv". It is not checked against the content. */
  readonly mediaType: string
  /** The memory of a large file is shared: `context.work` passes it to a thread without a copy. */
  readonly bytes: Buffer
}

/**
 * The types of every plugin, filled in by schemas/types.d.ts (`npm run types`): plugin name → handler name →
 * `{ input, output }`. If the input has defaults, `asked` is the input in which they may be left out.
 */
export interface Plugins {}

/** The operations of all typed plugins, by id. */
type Operations = UnionToIntersection<Plugins[keyof Plugins]>
type UnionToIntersection<Union> = (Union extends unknown ? (value: Union) => void : never) extends (
  value: infer Both,
) => void
  ? Both
  : never

/**
 * The `{ params, query, body }` to call an operation with through `ask`. It is exact for operations with generated types
 * and any `Input` for all others. Fields with a default may be left out, and so may a part that needs no field.
 */
export type InputOf<Id extends OperationId> = Id extends keyof Operations
  ? Operations[Id] extends { asked: infer Asked }
    ? WithoutEmpty<Asked>
    : Operations[Id] extends { input: infer In }
      ? WithoutEmpty<In>
      : Partial<Input>
  : Partial<Input>
type WithoutEmpty<In> = { readonly [Part in keyof In as Omissible<In[Part]> extends true ? never : Part]: In[Part] } & {
  readonly [Part in keyof In as Omissible<In[Part]> extends true ? Part : never]?: In[Part]
}
type Omissible<Part> = {} extends Part ? true : undefined extends Part ? true : false
/** The second argument of `ask`, which an operation without required input does not need. */
export type Asked<Id extends OperationId> = {} extends InputOf<Id> ? [input?: InputOf<Id>] : [input: InputOf<Id>]
/** What an operation answers. It is exact for operations with generated types and `unknown` for all others. */
export type OutputOf<Id extends OperationId> = Id extends keyof Operations
  ? Operations[Id] extends { output: infer Output }
    ? Output
    : unknown
  : unknown

/** The call of a handler with generated types, for a function of your own: `CallOf<'getTides'>`. */
export type CallOf<Handler extends keyof Operations> = Call<
  Operations[Handler] extends { input: infer In } ? In : never
>

/** The input of a call. Handlers of typed plugins get the generated type instead. */
export interface Input {
  /** The parameters of the path, e.g. `{ day: '2026-06-01' }` for "/v1/x/gold/{day}". */
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  /** The decoded body. Undefined if the operation takes none. */
  readonly body: unknown
}

/** Changes the tables of a plugin. Must work on SQLite and on PostgreSQL. */
export type Migration = (db: Database) => Promise<void>

/** The code behind one or more products. The default export of `<plugins folder>/<name>/index.ts`. */
export interface Plugin<
  Name extends string = string,
  Schema extends JsonSchema = JsonSchema,
  Own extends SomeHandlers<Name> = Handlers<Name>,
  OwnFacts extends Facts = Facts,
> {
  /** The name of the plugin's folder. Catalog documents name it in `plugin`, where `@version` may follow. */
  readonly name: Name
  /**
   * The version of the plugin API that the plugin was written for, see API_VERSION. A gateway with another one does not load
   * it. Without it, the plugin is loaded by any.
   */
  readonly apiVersion?: number
  /**
   * Steps that create and change the plugin's tables. Each runs once per database, in order, before `setup`. Add new
   * steps at the end; never change or remove one that was released.
   */
  readonly migrations?: readonly Migration[]
  /**
   * JSON Schemas that come with the plugin. Each has an `$id` such as "gold.json", by which documents refer to it. A file
   * of that name in the schemas folder takes precedence.
   */
  readonly schemas?: readonly JsonSchema[]
  /**
   * JSON Schema of `settings` in the product's document. Settings are checked and get their defaults before `setup`.
   * Without it, the product can have no settings. `context.settings` has the type that it describes, if it is written in
   * place or ends in `as const`.
   */
  readonly settings?: Schema
  /** Folder of Pug views that come with the plugin, e.g. `new URL('./views', import.meta.url)`. */
  readonly views?: URL
  /**
   * Prepares a product. Called once for each product that names this plugin, and again after a change of the plugin's
   * code or of the product's settings or handlers. If it throws or exceeds its timeout, the product keeps its previous
   * version, or is disabled if it has none.
   */
  setup(
    context: PluginContext<SettingsOf<Schema>>,
  ): Registration<Name, Own, OwnFacts> | Promise<Registration<Name, Own, OwnFacts>>
}

/** A plugin with the types that `openTestProduct` needs of it. */
export interface DefinedPlugin<
  Name extends string = string,
  Schema extends JsonSchema = JsonSchema,
  OwnFacts extends Facts = Facts,
> extends Plugin {
  readonly name: Name
  readonly settings?: Schema
  setup(context: PluginContext): WithFacts<OwnFacts> | Promise<WithFacts<OwnFacts>>
}
type WithFacts<OwnFacts extends Facts> = Registration<string, Handlers<string>, OwnFacts>

/** The settings that a schema describes. */
export type SettingsOf<Schema> =
  unknown extends FromSchema<Schema> ? Readonly<Record<string, unknown>> : FromSchema<Schema>

/** One handler per handler name of the catalog. Those of typed plugins have their exact input and output. */
export type Handlers<Name extends string> = TypedHandlers<Name> & AnyHandlers
/** Handlers whose names definePlugin has still to check. */
type SomeHandlers<Name extends string> = Partial<TypedHandlers<Name>> & AnyHandlers
type TypedHandlers<Name extends string> = Name extends keyof Plugins
  ? {
      readonly [Id in keyof Plugins[Name]]: Plugins[Name][Id] extends { input: infer In; output: infer Out }
        ? Handler<In, Out>
        : never
    }
  : {}
/** Any function fits, whatever input it expects; one that does not say gets Input. */
type AnyHandlers = Readonly<Record<string, Handler | CallableFunction>>

/** The input of `freshness`: that of a handler, and the operation that it belongs to. */
export type FreshnessInput<Name extends string = string> = Name extends keyof Plugins
  ? {
      [Id in keyof Plugins[Name]]: Plugins[Name][Id] extends { input: infer In }
        ? In & { readonly operation: Plugins[Name][Id] extends { operation: infer Operation } ? Operation : Id }
        : never
    }[keyof Plugins[Name]]
  : Input & { readonly operation: OperationId }

/** What `setup` returns: how a product answers, and what it does on its own. */
export interface Registration<
  Name extends string = string,
  Own extends SomeHandlers<Name> = Handlers<Name>,
  OwnFacts extends Facts = Facts,
> {
  /**
   * The handlers by name. The name is the operation's id, or its `handler` in the document. Every operation needs one
   * (except retired ones), and every handler must belong to an operation.
   */
  readonly handlers: Own
  /** Work that is repeated at intervals. */
  readonly jobs?: readonly Job[]
  /**
   * Returns a few numbers and short texts about the product. /v1/stats shows them and reads them at most once a second. If
   * this throws or takes longer than two seconds, the last facts are shown.
   */
  facts?(): Promise<OwnFacts>
  /**
   * Reports how fresh the data are that an answer to this input would use, or null if it would use none. The gateway
   * compares it with `fresh` of the operation before it accepts a payment. `asOf` is the newest moment the caller may see,
   * as in a call, and `input` is validated, as a handler gets it. It is called at most once a second for each operation and
   * input, so it may read a database, but has five seconds at most. It may throw a ServiceError to refuse the call.
   *
   * Both tools reach operations of other products that the document names in `uses`, at the same asOf: `ask` as in a call, and
   * `freshnessOf` resolves with what the other product reports; null if it reports nothing.
   */
  freshness?(
    input: FreshnessInput<Name>,
    asOf: Date,
    tools: FreshnessTools,
  ): Freshness | null | Promise<Freshness | null>
  /**
   * Lists the inputs of an operation whose data can fail by themselves, such as one for each symbol: `{ query: { symbol } }`.
   * /health, the alarm `data.stale` and the 402 of a call whose path or query names one then say how fresh it is. Without it,
   * they are about an ordinary call only, and another input shows that its data are missing when it is paid for.
   *
   * It is called for operations with `fresh`, at most once a minute. Fields that an input leaves out are those of an ordinary
   * call: the defaults, or the example of the document.
   */
  watched?(operation: OperationId, tools: FreshnessTools): readonly WatchedInput[] | Promise<readonly WatchedInput[]>
  /** Releases what `setup` opened. Called when no call and no edition uses the product any more. */
  stop?(): Promise<void>
}

/** Facts by name. Values are JSON. */
export type Facts = Readonly<Record<string, unknown>>

/** How fresh the data behind an answer are, on the clock of the data: frozen recordings stay as fresh as they were. */
export interface Freshness {
  /** The newest moment that the data cover, or null if there are no data yet. */
  readonly newest: Date | null
  /** How many sources deliver data at present. Null if there is nothing to count, as with made-up or recorded data. */
  readonly sources: number | null
  /** The part of the expected data that is there, from 0 to 1. */
  readonly coverage: number
}

/** The fields that identify a watched input. All others take their defaults. */
export interface WatchedInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean>>
  /** Fields of a JSON object. */
  readonly body?: Readonly<Record<string, unknown>>
}

/** What `freshness` and `watched` may ask of other products. */
export interface FreshnessTools {
  readonly ask: Ask
  readonly freshnessOf: FreshnessOf
}

/** Asks another product how fresh the data of an operation are. */
export type FreshnessOf = <Id extends OperationId>(operation: Id, ...input: Asked<Id>) => Promise<Freshness | null>

/** What `setup` receives: the product's settings, and the services of the gateway. */
export interface PluginContext<Settings = Readonly<Record<string, unknown>>> {
  /** The id of the product that is set up. */
  readonly product: string
  /** The `settings` of the product's document, checked, with defaults applied and `env:NAME` replaced by the secret. */
  readonly settings: Settings
  /**
   * The database that all plugins share. Begin the names of your tables with the plugin's name ("gold_prices"). The same
   * code runs on SQLite and PostgreSQL.
   */
  readonly db: Database
  /** A cache of this product's own. Entries may vanish at any time. */
  readonly kv: KeyValueStore
  /** The global `fetch` with the gateway's user agent and a timeout of 15 seconds. */
  readonly fetch: typeof fetch
  /** A log whose lines name the product. */
  readonly log: Logger
  /** Settings of the whole deployment. */
  readonly deployment: Deployment
  /**
   * Runs a pure function in a worker thread, so that long computations do not delay other calls. `module` is the address of
   * a module of the plugin whose default export is the function, e.g. `new URL('./fit.ts', import.meta.url)`. The function
   * gets a structured clone of `input` and WorkTools. It must use nothing but its arguments, and sees no environment
   * variables. Its result is cloned too, except for buffers marked with `transfer`. A copy takes time on the event loop,
   * so call the function directly if the input is small.
   *
   * An error that the function throws rejects the promise; a ServiceError keeps its class and fields. The thread is ended,
   * and the promise rejects, when a signal aborts (with its reason), after the timeout (product_timeout), or when the
   * function needs more than 1 GB of JavaScript heap.
   *
   * Functions wait for a thread in the queue of their call's operation, `paid` or `free`; without the option `call`, in that of
   * free work. Paid work goes first, and free work never has the last thread. The wait does not count towards the timeout
   * of the operation. Rejects with Unavailable after 23 seconds of waiting, or if 64 functions wait in the queue.
   */
  work<Out = unknown>(module: URL, input: unknown, options?: WorkOptions): Promise<Out>
  /** Shows the progress of long work: on a terminal as one line, otherwise as a log line for each tenth. */
  progress(label: string, total: number): Progress
  /** Signs what this product states, with keys that the plugin never sees. */
  readonly attest: Attester
  /**
   * What became of calls that were paid for one by one, by `Call.id`: true if the call was charged, false if it never will be,
   * no entry while that is open. A handler runs before its payment is settled, so a product that keeps something of a paid call
   * asks later, in a job, and deletes it if the call was not charged. A buyer who left may come back with the same payment
   * until it expires, so this can take an hour and a half. Calls that are free or use a token are never charged. Rejects while
   * the journal cannot be read.
   */
  charged(callIds: readonly string[]): Promise<ReadonlyMap<string, boolean>>
  /** The present on the clock of the data, which replay mode shifts or freezes. Use it in place of `Date.now()`. */
  now(): Date
}

/**
 * Signs what a product states. Its keys are held by the signer, and are the same in all processes with the same TOKEN_KEYS.
 * There is one for each serial number, so that a product replaces its key by taking the next number.
 */
export interface Attester {
  /** The address and the uncompressed public key of a serial number. */
  key(serial: number): Promise<{ readonly address: `0x${string}`; readonly publicKey: `0x${string}` }>
  /**
   * Signs a JSON object as EIP-191 "personal sign". It must have `issued_at` and `expires_at`, ISO 8601, less than a day
   * apart; otherwise the signer refuses, and this rejects.
   */
  sign(serial: number, json: string): Promise<`0x${string}`>
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
  /** Returns undefined if there is no entry, or none any more. */
  get<Value = unknown>(key: string): Promise<Value | undefined>
  /** Stores a JSON value. Without `ttlSeconds`, the entry stays until it is evicted. */
  set(key: string, value: unknown, options?: { readonly ttlSeconds: number }): Promise<void>
  /** Returns true if there was an entry. */
  delete(key: string): Promise<boolean>
}

export interface WorkOptions {
  /** Buffers of the input to move instead of copying. They are empty for the caller afterwards. */
  readonly transfer?: readonly ArrayBuffer[]
  /** Ends the function when it aborts. */
  readonly signal?: AbortSignal
  /** The call that the function works for. Its signal ends the function, which may use its `ask`. */
  readonly call?: Pick<Call, 'id' | 'signal' | 'ask'>
  /** Seconds that the function may run. The default is 60. */
  readonly timeoutSeconds?: number
}

/** The second argument of a function that `context.work` runs. */
export interface WorkTools {
  /** The `ask` of the option `call`. Other products answer on the event loop. Input and answer are cloned. */
  readonly ask: Ask
}

/** Progress of long work. */
export interface Progress {
  /** Adds to the amount that is done. */
  advance(count: number): void
  /** Reports the work as done. */
  end(): void
}

/**
 * Answers a call. It returns the body, or a Reply for another status, headers or a stream. Throw a ServiceError to refuse
 * the call; any other error is answered as `product_failed`. A buyer is charged only for an answer with a 2xx status.
 * Answers are checked against their schema: in the sandbox each one, elsewhere the first of an operation and then one in a
 * hundred. One that breaks it is `product_failed`, and nothing is charged.
 */
export type Handler<In = Input, Out = unknown> = (call: Call<In>) => Out | Reply<Out> | Promise<Out | Reply<Out>>

/** How a call is paid for. */
export type Access =
  | {
      /** Nothing is paid: the operation is free, or the call is a trial call. */
      readonly kind: 'free'
    }
  | {
      /** An access token, which a plan sells. */
      readonly kind: 'token'
      readonly plan: string
      /** The wallet that bought the plan. */
      readonly subject: string
      readonly expiresAt: Date
    }
  | {
      /** A payment for this call. */
      readonly kind: 'payment'
      /** The wallet that pays. */
      readonly payer: string
      /** Atomic units of USDC (6 decimals): 5000n is 0.005 USD. */
      readonly amount: bigint
      /** When the gateway accepted the payment for processing. */
      readonly at?: Date
    }

/**
 * Calls an operation of another product, free of charge and with the caller's asOf. The document of the asking product
 * names the operation in `uses`. Input is validated and gets its defaults. Throws Unavailable if the operation is disabled
 * or paused, and the ServiceError that the operation throws.
 */
export type Ask = <Id extends OperationId>(operation: Id, ...input: Asked<Id>) => Promise<OutputOf<Id>>

/** A call that a handler answers. */
export interface Call<In = Input> {
  /** The id of the call. The caller receives it as X-CALL-ID, and logs and errors name it. */
  readonly id: string
  /** The operation that is called. */
  readonly operation: Operation
  /** The catalog that serves this call. It does not change during the call. */
  readonly catalog: Catalog
  /** `{ params, query, body }`, validated, with defaults applied. */
  readonly input: In
  readonly access: Access
  /**
   * Where the call comes from: an opaque text of at most 22 characters, the same for all calls from one IPv4 address or IPv6
   * /64. It is a keyed hash, so a table may hold it where an address would not belong. Callers behind a proxy that
   * TRUSTED_PROXIES does not name share one. A product that is asked gets that of the asking call, and `gateway` if a job
   * asks.
   */
  readonly client: string
  /** The newest moment of data that this caller may see. Never answer with anything newer. */
  readonly asOf: Date
  /**
   * Aborts when the operation's timeout has passed or the caller has left. Pass it to `fetch` and other slow work.
   * Waiting for a thread of `context.work` does not count towards the timeout, which ends with the answer. The signal
   * of a stream aborts when the stream ends, for whatever reason.
   */
  readonly signal: AbortSignal
  readonly ask: Ask
  /** Present if the caller accepts server-sent events. Answer with `Reply.events` then. */
  readonly stream?: StreamRequest
}

export interface StreamRequest {
  /** The last event that the caller received before, from which to go on. Null for a new stream. */
  readonly lastEventId: string | null
}

/**
 * Work that is repeated. Runs of one job never overlap, in any process. A run that throws is logged and counted, and the
 * job runs again after its interval.
 */
export interface Job {
  /** Unique within the product. */
  readonly name: string
  /** Seconds from the start of one run to the start of the next. The first run begins when the gateway starts. */
  readonly everySeconds: number
  /** Does one run. `signal` aborts when the job is stopped. The asOf of `ask` is the moment the run began. */
  run(job: { readonly signal: AbortSignal; readonly ask: Ask }): Promise<void>
}

/**
 * Defines a plugin. It returns the plugin unchanged; its purpose is that handlers and `freshness` get their types from the
 * name, and `context.settings` from the schema of the settings. `openTestProduct` takes its types from the result.
 *
 * @example
 * export default definePlugin({
 *   name: 'gold',
 *   setup: () => ({ handlers: { getGold: ({ asOf }) => ({ as_of: asOf.toISOString(), price: 1900 }) } }),
 * })
 */
export function definePlugin<
  const Name extends string,
  const Schema extends JsonSchema,
  Own extends SomeHandlers<Name>,
  OwnFacts extends Facts,
>(plugin: Plugin<Name, Schema, Own, OwnFacts> & NamesChecked<Name, Own>): DefinedPlugin<Name, Schema, OwnFacts>
export function definePlugin(plugin: Plugin): Plugin {
  return plugin
}

/** Code that decides who may buy, or is told of payments. The default export of `<plugins folder>/<name>/index.ts`. */
export interface Hook<Schema extends JsonSchema = JsonSchema> extends Pick<
  Plugin<string, Schema>,
  'name' | 'apiVersion' | 'migrations' | 'settings'
> {
  /**
   * Prepares the hook. Called once for each entry of hooks.json that names it, and again after a change of its code or its
   * settings. If it throws or exceeds its timeout, all that is served stays as it was; a gateway that starts stops.
   */
  setup(context: HookContext<SettingsOf<Schema>>): HookRegistration | Promise<HookRegistration>
}

/** What `setup` of a hook receives. `log` names the hook. */
export type HookContext<Settings = Readonly<Record<string, unknown>>> = Pick<
  PluginContext<Settings>,
  'settings' | 'db' | 'kv' | 'fetch' | 'log' | 'deployment' | 'now'
>

/** What `setup` of a hook returns: at least one of `screen`, `settled` and `refused`. */
export interface HookRegistration {
  /**
   * Decides whether a payment is taken. Called once the payment is known to be good, before it is reserved and before the
   * product is called, for calls and plans alike. `refuse` is a sentence that the caller gets: it must give away nothing that
   * the payer should not know. If this throws, exceeds its timeout or answers anything else, `on_failure` decides.
   */
  screen?(payment: ScreenedPayment): Screened | Promise<Screened>
  /** Is told of each payment that was settled, after its answer. It may miss some if the gateway stops; a webhook does not. */
  settled?(sale: Sale, signal: AbortSignal): unknown
  /** Is told of each call with a payment that was refused, after its answer. It may miss some if there are many. */
  refused?(refusal: Refusal, signal: AbortSignal): unknown
  /** Releases what `setup` opened. Called when no call and no edition uses the hook any more. */
  stop?(): Promise<void>
}

/** The answer of `screen`. */
export type Screened = { readonly allow: true } | { readonly refuse: string }

/** A payment that may be taken. */
export interface ScreenedPayment {
  /** The id of the call. */
  readonly call: string
  readonly operation: Operation
  /** The wallet that signed the payment. */
  readonly payer: `0x${string}`
  /** Atomic units. */
  readonly amount: bigint
  /** CAIP-2, e.g. "eip155:8453". */
  readonly network: string
  /** Aborts when the timeout has passed. */
  readonly signal: AbortSignal
}

/** A payment that was settled. */
export interface Sale extends Omit<ScreenedPayment, 'operation' | 'signal'> {
  /** The id of the operation, which the catalog may not have any more. */
  readonly operation: OperationId
  readonly transaction: `0x${string}`
}

/** A call with a payment that was refused. Nothing was charged, unless the code says otherwise. */
export interface Refusal {
  readonly call: string
  readonly operation: OperationId
  /** The wallet that the payment names, which may not have signed it; null if the payment cannot be read. */
  readonly payer: `0x${string}` | null
  /** The code of the error, and its x402 reason if it has one. */
  readonly code: ErrorCode
  readonly reason: string | null
}

/**
 * Defines a hook. It returns the hook unchanged; its purpose is that `context.settings` gets its type from the schema of the
 * settings.
 *
 * @example
 * export default defineHook({
 *   name: 'weekdays',
 *   setup: ({ now }) => ({
 *     screen: () => (now().getUTCDay() % 6 === 0 ? { refuse: 'Closed at the weekend.' } : { allow: true }),
 *   }),
 * })
 */
export function defineHook<const Schema extends JsonSchema>(hook: Hook<Schema>): Hook<Schema> {
  return hook
}

/** Puts the names of missing and misspelt handlers in the type of `name`, where the compiler reports them in one line. */
interface NamesChecked<Name extends string, Own> {
  readonly name: [WrongNames<Name, Own>] extends [never] ? unknown : { readonly error: WrongNames<Name, Own> }
}
type WrongNames<Name extends string, Own> = Name extends keyof Plugins
  ? string extends keyof Own
    ? never
    : | `setup returns no handler ${Exclude<keyof Plugins[Name], keyof Own> & string}`
      | `no operation has the handler ${Exclude<keyof Own, keyof Plugins[Name]> & string}`
  : never
