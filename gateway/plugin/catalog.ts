/**
 * The catalog as the gateway and its plugins see it: service, products, operations and plans. It is built once per
 * edition from the catalog documents and is frozen. The rest of the gateway reads this model and never the files.
 */

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = { readonly [key: string]: unknown }

export type OperationId = string

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Words of the whole service, from catalog/service.json. */
export interface Service {
  readonly name: string
  readonly title: string
  readonly summary: string
  readonly description: string
  readonly version: string
  readonly contact?: string
  readonly license?: string
  /** Names of the networks offered where an operation names none; absent: every one the gateway takes payments on. */
  readonly accepts?: readonly string[]
  /** Extra words for llms.txt and openapi, one paragraph each. */
  readonly notes: readonly string[]
}

export interface Product {
  /** Identity, e.g. "gold". */
  readonly id: string
  readonly title: string
  readonly summary: string
  /** Products of one family are listed together at /v1/<family>. */
  readonly family: string | null
  readonly tags: readonly string[]
  /** The plugin that makes it, or null for an upstream. `version` is the part after `@`. */
  readonly plugin: { readonly name: string; readonly version: string | null } | null
  readonly upstream: Upstream | null
  readonly settings: Readonly<Record<string, unknown>>
  /** Operations of other products this one may ask. */
  readonly uses: readonly OperationId[]
  readonly operations: readonly Operation[]
  /** Path of the document inside the catalog folder, for messages. */
  readonly file: string
}

export interface Upstream {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutSeconds: number
  readonly maxBytes: number
  readonly stream: boolean
}

/** One method and path with price, schemas and words; the unit everything is keyed by. */
export interface Operation {
  /** camelCase verb + noun, unique in the catalog. */
  readonly id: OperationId
  readonly product: string
  readonly family: string | null
  readonly tags: readonly string[]
  readonly method: Method
  /** Path with `{name}` parameters, e.g. "/v1/x/gold/{day}". Empty for an internal operation. */
  readonly path: string
  /** "GET /v1/x/gold/{day}". */
  readonly route: string
  /** The display form in price list, discovery and plans: "GET /v1/x/gold/*". */
  readonly displayRoute: string
  readonly summary: string
  readonly description: string
  /** Atomic units of USDC (6 decimals), or null where the operation is free: "0.005" is 5000n. */
  readonly price: bigint | null
  /** The price as the catalog writes it, e.g. "0.005"; "free" where there is none. */
  readonly priceText: string
  readonly params: JsonSchema | null
  readonly query: JsonSchema | null
  readonly body: JsonSchema | null
  /** Media types accepted, the first is the default. Empty where there is no body. */
  readonly bodyMedia: readonly string[]
  readonly response: JsonSchema | null
  readonly view: string | null
  readonly form: { readonly success: string; readonly failure: string } | null
  /** MCP tool name (the id in snake_case), or null where it is not offered. */
  readonly tool: string | null
  /** Minimum age of the data served without a token, in seconds. */
  readonly maxFreshnessSeconds: number
  readonly timeoutSeconds: number
  readonly maxBytes: number
  readonly cacheSeconds: number
  /** Name of the handler in the plugin's registration. */
  readonly handler: string
  /** false keeps it out of the documents. */
  readonly listed: boolean
  /** true: no route, only to be asked by other products. */
  readonly internal: boolean
  readonly example: Example | null
  readonly wait: 'submitted' | 'mined' | 'confirmed'
  /** Whether a payment must carry the buyer's own name for the purchase. */
  readonly identifier: 'optional' | 'required'
  /** Names of the networks it can be paid on; null: every one the gateway takes payments on. */
  readonly accepts: readonly string[] | null
  readonly retired: boolean
  /** On a retired operation: the route that 410 names. */
  readonly replacement: string | null
  /** The plan this operation sells, on a purchase route; null elsewhere. */
  readonly plan: Plan | null
}

export interface Example {
  readonly request: {
    readonly params?: Readonly<Record<string, unknown>>
    readonly query?: Readonly<Record<string, unknown>>
    readonly body?: unknown
  }
  readonly response?: unknown
}

export interface Plan {
  readonly plan: string
  readonly label: string
  readonly tier: 'live' | 'archive'
  readonly maxFreshnessSeconds: number
  readonly durationSeconds: number
  readonly route: string
  readonly price: bigint
  readonly priceText: string
  /** Ids of the operations a token of this plan may call. */
  readonly authorizes: readonly OperationId[]
  readonly enabled: boolean
}

export interface PlanCatalog {
  /** Path of the free plan list, e.g. "/v1/x/subscribe". Null where no plan is sold. */
  readonly path: string | null
  readonly model: string
  readonly note: string
  /** false where no plan is enabled. */
  readonly enabled: boolean
  readonly plans: readonly Plan[]
}

export interface Catalog {
  /** Hash of everything the catalog says; documents carry it as version and ETag. */
  readonly version: string
  readonly service: Service
  readonly products: readonly Product[]
  /** Every operation by id, built-in and purchase operations included. */
  readonly operations: ReadonlyMap<OperationId, Operation>
  readonly plans: PlanCatalog
  /** All JSON Schemas by file name or $id ("gold.json"), for references. */
  readonly schemas: ReadonlyMap<string, JsonSchema>
}

/** The header an access token travels in (interface 5.4). */
export const TOKEN_HEADER = 'X-SERVICE-TOKEN'
