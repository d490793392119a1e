/** Describes operations as MCP tools. A pure function of the catalog, so the tool list always matches it. */
import { callLimitSentences } from '../catalog/call-limits.ts'
import type { Tool as ToolDefinition } from '@modelcontextprotocol/sdk/types.js'
import type { Catalog, Operation } from '../plugin/catalog.ts'
import { toolName } from '../catalog/product-drafts.ts'
import { isSoldAsJson } from '../documents/listed-operations.ts'
import { asText, dereference, fieldsOf } from '../catalog/schemas.ts'
import type { RawInput } from '../products/edition.ts'
import type { ValidationItem } from '../errors.ts'
import { type Recipients, recipientsOf } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import { offeredOn } from '../x402/payment-requirements.ts'
import { withoutWords } from '../x402/bazaar.ts'
import type { JsonSchema } from '../plugin/plugin.ts'

/** The argument of a paid tool that carries the payment. */
export const PAYMENT_ARGUMENT = 'payment_signature'

export type Arguments = Readonly<Record<string, unknown>>

export interface Tool {
  readonly operation: Operation
  /** The entry of tools/list. */
  readonly definition: ToolDefinition
  /** Splits flat arguments into the parts of an HTTP request. Path and query parameters become strings. */
  split(args: Arguments): RawInput
  /** Where the arguments belong, for a thread that reads large ones. */
  readonly places: ArgumentPlaces
  /** Returns path and query of the equivalent HTTP request. */
  targetOf(input: RawInput): { readonly path: string; readonly search: string }
  /** Rewrites the location of an issue to its argument: ["query", "limit"] becomes ["arguments", "limit"]. */
  locate(item: ValidationItem): ValidationItem
}

/** Which arguments of a tool belong to the body. */
export interface ArgumentPlaces {
  /** True if the body is the argument `body`, and not an object of the other arguments. */
  readonly isWhole: boolean
  /** The arguments that are not in the body. */
  readonly outside: readonly string[]
}

type Part = 'params' | 'query' | 'body'

/** Where each flat argument belongs. `whole` means that the body is not an object and is the argument "body". */
interface Layout {
  readonly partOf: ReadonlyMap<string, Part>
  readonly whole: boolean
  /** True if two arguments have the same name. */
  readonly isAmbiguous: boolean
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required: readonly string[]
}

/**
 * Returns tools of a catalog by name.
 * @param scope `named`: the operations that the catalog makes tools; `all`: these, and everything else that is sold as JSON
 */
export function createTools(
  catalog: Catalog,
  recipients: Recipients,
  scope: 'named' | 'all' = 'named',
): ReadonlyMap<string, Tool> {
  const isIncluded = (operation: Operation): boolean =>
    operation.tool !== null ? !operation.internal : scope === 'all' && isSoldAsJson(operation, catalog)
  const layouts = [...catalog.operations.values()].filter(isIncluded).map((operation) => ({
    operation,
    name: operation.tool ?? toolName(operation.id),
    layout: layoutOf(operation, catalog.schemas),
  }))
  // The catalog checks only tools of its own for arguments of the same name.
  const clear = layouts.filter(({ operation: { tool }, layout: { isAmbiguous } }) => tool !== null || !isAmbiguous)
  return new Map(clear.map((each) => [each.name, createTool(each, catalog, recipients)]))
}

interface LaidOut {
  readonly operation: Operation
  readonly name: string
  readonly layout: Layout
}

function createTool(laidOut: LaidOut, catalog: Catalog, recipients: Recipients): Tool {
  const { operation, layout } = laidOut
  return {
    operation,
    definition: describe(laidOut, catalog, recipients),
    split: (args) => split(operation, layout, args),
    places: placesOf(operation, layout),
    targetOf: (input) => targetOf(operation, input),
    locate: (item) => locate(layout, item),
  }
}

function layoutOf(operation: Operation, schemas: Catalog['schemas']): Layout {
  const partOf = new Map<string, Part>()
  const properties: Record<string, JsonSchema> = {}
  const required: string[] = []
  let whole = false
  let isAmbiguous = false
  for (const part of ['params', 'query', 'body'] as const) {
    const declared = operation[part]
    if (declared === null) continue
    const schema = dereference(declared, schemas)
    const members = fieldsOf(schema, schemas)
    if (part === 'body' && Object.keys(members).length === 0) {
      whole = true
      partOf.set('body', part)
      properties['body'] = schema
      required.push('body')
      continue
    }
    for (const [name, member] of Object.entries(members)) {
      isAmbiguous ||= partOf.has(name) || name === PAYMENT_ARGUMENT
      partOf.set(name, part)
      properties[name] = part === 'body' ? asText(member) : member
    }
    for (const piece of [schema, ...((schema['allOf'] as readonly JsonSchema[] | undefined) ?? [])])
      required.push(...((piece['required'] as readonly string[] | undefined) ?? []))
  }
  return { partOf, whole, isAmbiguous, properties, required }
}

function placesOf({ price }: Operation, { partOf, whole }: Layout): ArgumentPlaces {
  const outside = [...partOf].filter(([, part]) => part !== 'body').map(([name]) => name)
  return { isWhole: whole, outside: price === null ? outside : [...outside, PAYMENT_ARGUMENT] }
}

function describe({ operation, name, layout }: LaidOut, catalog: Catalog, recipients: Recipients): ToolDefinition {
  const { price, priceText, method, readOnly } = operation
  const networks = offeredOn(operation, recipientsOf(recipients)).map(({ network }) => network)
  const [network] = networks as [Network, ...Network[]]
  const cost =
    price === null
      ? 'Free.'
      : `Costs $${priceText} USDC on ${networks.map(({ name }) => name).join(' or ')} via x402: call without payment to get the requirements, then call again ` +
        `with the same arguments and ${PAYMENT_ARGUMENT}, or with the payment in _meta["x402/payment"].`
  const payment: Record<string, JsonSchema> =
    price === null
      ? {}
      : { [PAYMENT_ARGUMENT]: { type: 'string', description: 'Base64 of an x402 payment payload (v1 or v2).' } }
  return {
    name,
    title: titleOf(name),
    description: [operation.summary, operation.description, cost, callLimitSentences(operation)]
      .filter(Boolean)
      .join('\n\n'),
    inputSchema: {
      type: 'object',
      properties: { ...layout.properties, ...payment },
      ...(layout.required.length > 0 ? { required: [...layout.required] } : {}),
      additionalProperties: false,
    },
    ...outputSchemaOf(operation, catalog),
    annotations: {
      title: titleOf(name),
      readOnlyHint: readOnly,
      destructiveHint: method === 'DELETE',
      idempotentHint: readOnly || (method !== 'POST' && method !== 'PATCH'),
      openWorldHint: false,
    },
    _meta: {
      'x402/price': {
        free: price === null,
        amount: String(price ?? 0n),
        price_usd: price === null ? '0' : priceText,
        currency: 'USDC',
        network: network.name,
        caip2: network.caip2,
        ...(networks.length === 1 ? {} : { networks: networks.map(({ name, caip2 }) => ({ network: name, caip2 })) }),
      },
    },
  }
}

/** A name for people: get_gold_price becomes "Get gold price". */
const titleOf = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ')

/** What a refusal has: clients check it by the schema of the answer, too. */
const REFUSAL = {
  type: 'object',
  properties: { code: { type: 'string' }, message: { type: 'string' }, retry: { type: 'string' } },
  required: ['code', 'message', 'retry'],
}

/**
 * The schema of the answer or a refusal, without words: an agent pays for each character of a list of tools. Clients throw
 * away what does not fit it, so none is given for an upstream, whose paid answers are passed on as they are.
 */
function outputSchemaOf(operation: Operation, catalog: Catalog): Pick<ToolDefinition, 'outputSchema'> {
  const product = catalog.products.find(({ id }) => id === operation.product)
  if (operation.response === null || product?.upstream) return {}
  const answer = withoutWords(dereference(operation.response, catalog.schemas))
  return answer['type'] === 'object' ? { outputSchema: { type: 'object', anyOf: [answer, REFUSAL] } } : {}
}

function split(operation: Operation, { partOf, whole }: Layout, args: Arguments): RawInput {
  const parts = {
    params: new Map<string, unknown>(),
    query: new Map<string, unknown>(),
    body: new Map<string, unknown>(),
  }
  // An undeclared argument goes where the validator will report it.
  const fallback: Part = operation.body !== null && !whole ? 'body' : 'query'
  for (const [name, value] of Object.entries(args)) {
    if (name === PAYMENT_ARGUMENT && operation.price !== null) continue
    const part = partOf.get(name) ?? fallback
    // Clients send null for an omitted argument, and a URL cannot express null.
    if (part !== 'body' && value === null) continue
    parts[part].set(name, part === 'body' ? value : textOf(value))
  }
  const body = whole ? parts.body.get('body') : Object.fromEntries(parts.body)
  return {
    params: Object.fromEntries(parts.params),
    query: Object.fromEntries(parts.query),
    body: operation.body === null ? undefined : body,
  }
}

/** Converts scalars and lists of scalars to strings, as in a URL. The validator rejects anything else. */
function textOf(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return Array.isArray(value) ? value.map(textOf) : value
}

/** JSON can hold half a character, which no address can. As in a query, it becomes U+FFFD. */
const wellFormed = (text: string): string => Buffer.from(text).toString('utf8')

function targetOf(operation: Operation, { params, query }: RawInput): { path: string; search: string } {
  const path = operation.path.replace(/\{([^}]+)\}/g, (braced, name: string) =>
    typeof params[name] === 'string' ? encodeURIComponent(wellFormed(params[name])) : braced,
  )
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((item): item is string => typeof item === 'string')
      .map((item): [string, string] => [name, item]),
  )
  const search = new URLSearchParams(pairs).toString()
  return { path, search: search === '' ? '' : `?${search}` }
}

function locate({ whole }: Layout, item: ValidationItem): ValidationItem {
  const [first, ...rest] = item.loc
  if (first !== 'query' && first !== 'path' && first !== 'body') return item
  return { ...item, loc: ['arguments', ...(first === 'body' && whole ? ['body'] : []), ...rest] }
}
