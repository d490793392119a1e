/**
 * The catalog as the gateway and its plugins see it: service, products, operations and plans. It is built once per
 * edition from the catalog documents and is frozen. The rest of the gateway reads this model and never the files.
 */

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = { readonly [key: string]: unknown }

/** The id of an operation: verb and noun in camelCase, unique in the catalog, e.g. "getGoldPrice". */
export type OperationId = string

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What service.json of the catalog says about the whole service. */
export interface Service {
  readonly name: string
  /** The headline. */
  readonly title: string
  /** What is sold, in one or two sentences. */
  readonly summary: string
  readonly description: string
  /** Version of the interface, e.g. "0.1.0". */
  readonly version: string
  /** An e-mail address or a URL. */
  readonly contact?: string
  /** The terms of use, or their URL. */
  readonly license?: string
  /** Networks to pay on, for operations that name none. Absent if the gateway offers all it takes payments on. */
  readonly accepts?: readonly string[]
  /** Additional paragraphs for llms.txt and openapi.json. */
  readonly notes: readonly string[]
  /** Further links for the foot of every page. */
  readonly links?: readonly { readonly label: string; readonly href: string }[]
  /** Path of the picture that previews of pages show. */
  readonly image?: string
  /** Path of the picture beside the name. */
  readonly logo?: string
  /** Path of the style sheet that every page loads last. */
  readonly style?: string
}

/** A product: one or more operations, answered by a plugin or by an upstream. */
export interface Product {
  /** E.g. "gold". */
  readonly id: string
  readonly title: string
  readonly summary: string
  /** What to use it for, and what not. Empty if the catalog does not say. */
  readonly whenToUse: string
  /** Products of a family are listed together at /v1/<family>. */
  readonly family: string | null
  readonly tags: readonly string[]
  /** The plugin that answers, or null for an upstream. `version` is the part after `@`. */
  readonly plugin: { readonly name: string; readonly version: string | null } | null
  /** The upstream that answers, or null for a plugin. */
  readonly upstream: Upstream | null
  /** `settings` as the document writes them, before defaults and secrets. */
  readonly settings: Readonly<Record<string, unknown>>
  /** Operations of other products that this product may call with `ask`. */
  readonly uses: readonly OperationId[]
  readonly operations: readonly Operation[]
  /** Path of the document inside the catalog folder, for messages. */
  readonly file: string
}

/** A service that answers the operations of a product. */
export interface Upstream {
  /** The address, with parameters of the route in braces: "http://gold.internal/{day}". */
  readonly url: string
  /** Headers to send. A value may be `env:NAME` in place of a secret. */
  readonly headers: Readonly<Record<string, string>>
  /** Fields to add to every query. A value may be `env:NAME` in place of a secret. */
  readonly query: Readonly<Record<string, string>>
  readonly timeoutSeconds: number
  /** Largest answer that is accepted. It does not limit streams. */
  readonly maxBytes: number
  /** True to pass the answer on while it arrives. */
  readonly stream: boolean
}

/** How the upstream of a product is called for one of its operations. */
export interface OperationUpstream {
  /** A path below the address of the product, or another address. Null for the address of the product itself. */
  readonly url: string | null
  /** Headers and query fields beside those of the product. */
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** Fields that the upstream does not get under their own name in the query, or by their text alone in the path. */
  readonly parameters: readonly UpstreamParameter[]
}

/** Where an upstream gets a field of the path or the query, as a Parameter Object of OpenAPI says it. */
export interface UpstreamParameter {
  /** The field of `params` or `query`. */
  readonly field: string
  /** The name that the upstream knows. */
  readonly name: string
  readonly in: 'path' | 'query' | 'header' | 'cookie'
  readonly style: 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject'
  /** True if each item of a list is sent by itself. */
  readonly explode: boolean
}

/** What must be true of the data behind an answer for it to be sold. */
export interface FreshData {
  /** The greatest age of the newest data, in seconds. */
  readonly newestSeconds?: number
  /** How many sources must deliver data. */
  readonly sources?: number
  /** The part of the expected data that must be there, above 0 and at most 1. */
  readonly coverage?: number
}

/** A number of calls in each minute, hour or day on the clock, in UTC. */
export interface CallLimit {
  readonly calls: number
  readonly per: 'minute' | 'hour' | 'day'
}

/** Calls that are answered without payment: of a wallet that signs in, or of a network address. */
export interface Trial extends CallLimit {
  readonly by: 'wallet' | 'ip'
}

/** Where heavy work waits for a thread. Paid work never waits for free work. */
export type Queue = 'paid' | 'free'

/** A method and path with its price and schemas. Quotes, payments, metrics and tools refer to an operation by its id. */
export interface Operation {
  readonly id: OperationId
  /** Id of the product. */
  readonly product: string
  readonly family: string | null
  readonly tags: readonly string[]
  readonly method: Method
  /** Path with `{name}` parameters, e.g. "/v1/x/gold/{day}". Empty for an internal operation. */
  readonly path: string
  /** Method and path: "GET /v1/x/gold/{day}". */
  readonly route: string
  /** The route as price list, discovery and plans show it: "GET /v1/x/gold/*". */
  readonly displayRoute: string
  /** What one call returns, in one sentence. */
  readonly summary: string
  readonly description: string
  /** Atomic units of USDC (6 decimals), or null if the operation is free: "0.005" is 5000n. */
  readonly price: bigint | null
  /** The price as the document writes it: "0.005" or "free". */
  readonly priceText: string
  readonly params: JsonSchema | null
  readonly query: JsonSchema | null
  readonly body: JsonSchema | null
  /** Media types that the body may have; the first is the default. Empty if there is no body. */
  readonly bodyMedia: readonly string[]
  readonly response: JsonSchema | null
  /**
   * The field of the answer that is a table, which callers may have as CSV, NDJSON or Parquet. `$` is an answer that is a
   * list itself. Null if there is none.
   */
  readonly rows: string | null
  /** The chart that the page of the operation draws of an answer, or null. */
  readonly chart: AnswerChart | null
  /** Name of the Pug view that renders the answer as a page, or null. */
  readonly view: string | null
  /** True if the view also shows a call with invalid input. */
  readonly viewRefusals: boolean
  /** Where a browser is sent after a form was handled, or null. */
  readonly form: { readonly success: string; readonly failure: string } | null
  /** Name of the MCP tool (the id in snake_case), or null if there is none. */
  readonly tool: string | null
  /** True if a call changes nothing, as its annotation as an MCP tool says. */
  readonly readOnly: boolean
  /** Minimum age of the data that callers without an access token get, in seconds. 0 is real time. */
  readonly maxFreshnessSeconds: number
  /**
   * What must be true of the data for an answer to be sold. "request" if the answer rests on the request alone, null if
   * the document asks for nothing.
   */
  readonly fresh: FreshData | 'request' | null
  /** Whether an answer that says that nothing happened is sold. */
  readonly sellEmpty: boolean
  /** Calls that are answered without payment, or null. */
  readonly trial: Trial | null
  /** How many calls one buyer may make, or null for any number. */
  readonly limit: CallLimit | null
  readonly timeoutSeconds: number
  /** Where its calls wait for a worker thread. */
  readonly queue: Queue
  /** How long a call keeps a worker thread, in seconds for each megabyte of its body. 0 if it does no heavy work. */
  readonly costPerMegabyte: number
  /** Largest request body that is accepted. */
  readonly maxBytes: number
  /** How long a cache may keep the answer. 0 forbids it. */
  readonly cacheSeconds: number
  /** Name of the plugin's handler. */
  readonly handler: string
  /** How the upstream of the product is called, or null if the address of the product is all. */
  readonly upstream: OperationUpstream | null
  /** False keeps the operation out of the documents. */
  readonly listed: boolean
  /** True for an operation without a route, which only other products call. */
  readonly internal: boolean
  readonly example: Example | null
  /** How far a payment must be before the answer is sent: sent to the chain, in a block, or final. */
  readonly wait: 'submitted' | 'mined' | 'confirmed'
  /** Whether a buyer must name each purchase (Idempotency-Key or the x402 extension payment-identifier). */
  readonly identifier: 'optional' | 'required'
  /** Names of the networks to pay on, or null for every network that the gateway takes payments on. */
  readonly accepts: readonly string[] | null
  /** True if the route answers 410. */
  readonly retired: boolean
  /** The route to call instead of a retired one. */
  readonly replacement: string | null
  /** The plan that this operation sells, or null. */
  readonly plan: Plan | null
}

/** A chart of an answer: columns of its rows over time, or the parts of a sum. */
export interface AnswerChart {
  readonly title: string
  readonly unit?: 'number' | 'percent' | 'bps' | 'times'
  /** The column of times. Default: the first. */
  readonly x?: string
  /** The columns to draw. */
  readonly y?: readonly string[]
  /** The field of the answer whose fields are the parts of a sum. */
  readonly parts?: string
}

/** An example call, shown in the documents. */
export interface Example {
  readonly request: {
    readonly params?: Readonly<Record<string, unknown>>
    readonly query?: Readonly<Record<string, unknown>>
    readonly body?: unknown
  }
  readonly response?: unknown
}

/** A plan: one payment buys an access token that opens operations for a time. */
export interface Plan {
  /** Id of the plan, e.g. "live-24h". */
  readonly plan: string
  /** Its name for people. */
  readonly label: string
  /** What the plan opens, in a word of the shop, e.g. "live". */
  readonly tier: string
  /** Minimum age of the data that holders of the token get, in seconds. 0 is real time. */
  readonly maxFreshnessSeconds: number
  /** How long a token is valid. */
  readonly durationSeconds: number
  /** The purchase route, e.g. "POST /v1/x/subscribe/live-24h". */
  readonly route: string
  /** Atomic units of USDC (6 decimals). */
  readonly price: bigint
  /** The price as plans.json writes it, e.g. "50.00". */
  readonly priceText: string
  /** Ids of the operations that a token of this plan may call. */
  readonly authorizes: readonly OperationId[]
  /** What must be true of the data of all of them for the plan to be sold, beyond what they promise. Null: nothing. */
  readonly fresh: FreshData | null
  /** False if the plan cannot be bought. Tokens issued before stay valid. */
  readonly enabled: boolean
}

/** The list of plans. */
export interface PlanCatalog {
  /** Path of the free plan list, e.g. "/v1/x/subscribe". Null if no plan is sold. */
  readonly path: string | null
  /** What one purchase gives, in a sentence. */
  readonly model: string
  /** What a buyer should know. */
  readonly note: string
  /** False if no plan can be bought. */
  readonly enabled: boolean
  readonly plans: readonly Plan[]
}

/** The catalog of an edition. */
export interface Catalog {
  /** Hash of the documents and the schemas they use. Documents carry it as their version and ETag. */
  readonly version: string
  readonly service: Service
  readonly products: readonly Product[]
  /** Every operation by id, including built-in and purchase operations. */
  readonly operations: ReadonlyMap<OperationId, Operation>
  readonly plans: PlanCatalog
  /** The JSON Schemas that references name, by file name or $id, e.g. "gold.json". */
  readonly schemas: ReadonlyMap<string, JsonSchema>
}

/** The header that carries an access token (docs/interface.md, section 5.4). */
export const TOKEN_HEADER = 'X-SERVICE-TOKEN'
