/**
 * Parses product documents leniently into drafts, which may be invalid. Validation reads drafts, so that one issue does
 * not hide the others.
 */
import type { CatalogDocument } from './documents.ts'
import type { Method, Product } from '../plugin/catalog.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import { pointerOf } from '../validation/issue.ts'
import { isObject } from '../validation/json.ts'
import { Remembered } from './remembered.ts'

export interface Draft {
  readonly file: string
  readonly product: string
  readonly content: Readonly<Record<string, unknown>>
  readonly uses: readonly string[]
  readonly operations: readonly OperationDraft[]
}

export interface OperationDraft {
  readonly id: string
  readonly file: string
  readonly product: string
  readonly pointer: string
  readonly fields: Readonly<Record<string, unknown>>
  /** The route as written, or "" if there is none. */
  readonly routeText: string
  readonly route: Route | null
  readonly isPriced: boolean
  readonly isInternal: boolean
  readonly isRetired: boolean
  /** Name of its MCP tool, or null. */
  readonly tool: string | null
}

/** The documents of a catalog by kind, and the products as drafts. */
export interface ParsedCatalog {
  readonly documents: readonly CatalogDocument[]
  readonly service: CatalogDocument | undefined
  /** The files that hold plans. The first has what belongs to all of them, such as the list of plans. */
  readonly plans: readonly CatalogDocument[]
  readonly drafts: readonly Draft[]
}

/** Parses documents, valid or not, into the form that validation and resolution read. */
export function parseCatalog(documents: readonly CatalogDocument[]): ParsedCatalog {
  return {
    documents,
    service: documents.find(({ kind }) => kind === 'service'),
    plans: leadingFirst(documents.filter(({ kind }) => kind === 'plans')),
    drafts: draftsOf(documents.filter(({ kind }) => kind === 'product')),
  }
}

/** Plan files with the one first that has the path of the list, or else plans to sell. */
function leadingFirst(files: readonly CatalogDocument[]): readonly CatalogDocument[] {
  const leading =
    files.find(({ content }) => typeof content['path'] === 'string') ??
    files.find(({ content }) => Array.isArray(content['plans']) && content['plans'].length > 0)
  return leading ? [leading, ...files.filter((file) => file !== leading)] : files
}

/**
 * Reads the drafts of product documents. A `*` in `uses` stands for any letters and is replaced by the matching
 * operations of other products, which may be none.
 */
export function draftsOf(documents: readonly CatalogDocument[]): readonly Draft[] {
  const drafts = documents.map((document) => known.get(document.content, [document.file], () => draftOf(document)))
  const offered = drafts.flatMap(({ operations }) => operations).filter(({ isRetired }) => !isRetired)
  return drafts.map((draft) => {
    if (draft.uses.length === 0) return draft
    const named = draft.uses.flatMap((use) => {
      if (!use.includes('*')) return [use]
      return offered.filter(({ id, product }) => product !== draft.product && fits(id, use)).map(({ id }) => id)
    })
    return { ...draft, uses: [...new Set(named)] }
  })
}

/** Whether an id has the form of a name in which each `*` stands for any letters. The name may be anything: it is a draft. */
function fits(id: string, name: string): boolean {
  const [first = '', ...rest] = name.split('*')
  const last = rest.pop() ?? ''
  if (!id.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = id.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return id.length - last.length >= at && id.endsWith(last)
}

const known = new Remembered<Draft>()

function draftOf({ file, content }: CatalogDocument): Draft {
  const product = typeof content['product'] === 'string' ? content['product'] : file
  const operations = isObject(content['operations']) ? content['operations'] : {}
  return {
    file,
    product,
    content,
    uses: strings(content['uses']),
    operations: Object.entries(operations).flatMap(([id, fields]) =>
      isObject(fields) ? [operationDraft(id, fields, file, product)] : [],
    ),
  }
}

function operationDraft(id: string, fields: Record<string, unknown>, file: string, product: string): OperationDraft {
  const routeText = typeof fields['route'] === 'string' ? fields['route'] : ''
  return {
    id,
    file,
    product,
    pointer: pointerOf('operations', id),
    fields,
    routeText,
    route: parseRoute(routeText),
    isPriced: fields['price'] !== undefined && fields['price'] !== 'free',
    isInternal: fields['internal'] === true,
    isRetired: fields['retired'] === true,
    tool: fields['tool'] === true ? toolName(id) : null,
  }
}

/** Lists the parts of an operation that are a JSON Schema. */
export function schemaParts({ fields }: OperationDraft): (readonly [part: string, schema: JsonSchema])[] {
  return ['params', 'query', 'body', 'response'].flatMap((part) => {
    const schema = fields[part]
    return isObject(schema) ? [[part, schema] as const] : []
  })
}

/** Returns the strings of a list, and an empty list for any other value. */
export function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}

/** Begins the name of a plugin that is a package of the shop. */
const PACKAGE = 'npm:'

/** Parses the plugin that a document names: "gold", "gold@2", or "npm:@acme/gold" for a package, whose version npm knows. */
export function pluginNameOf(named: string): NonNullable<Product['plugin']> & { readonly package: string | null } {
  if (named.startsWith(PACKAGE)) return { name: named, version: null, package: named.slice(PACKAGE.length) }
  const [name = '', version = null] = named.split('@')
  return { name, version, package: null }
}

/** Returns a text as it is, and any other value as its JSON, so that an issue can show it. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

const DECIMALS = 6
const PRICE = /^(0|[1-9]\d{0,8})(?:\.(\d{1,6}))?$/

/**
 * Parses a price into atomic units of USDC. Null for a seventh decimal, an exponent, a sign, or zero.
 * @example parsePrice('0.005') → 5000n
 */
export function parsePrice(text: string): bigint | null {
  const match = PRICE.exec(text)
  if (!match) return null
  const [, whole = '0', fraction = ''] = match
  const units = BigInt(whole + fraction.padEnd(DECIMALS, '0'))
  return units > 0n ? units : null
}

/** A parsed route. */
export interface Route {
  readonly method: Method
  readonly path: string
  /** Names of the `{parameters}`, in order. */
  readonly params: readonly string[]
  /** Two routes with equal shapes match the same addresses: "GET /v1/x/gold/{}". */
  readonly shape: string
  /** The route as price list, discovery and plans show it: "GET /v1/x/gold/*". */
  readonly display: string
}

const ROUTE = /^(GET|POST|PUT|PATCH|DELETE) (\/|(?:\/(?:[\w.~-]+|\{[a-z]\w*\}))+)$/
const PARAM = /\{(\w+)\}/g

/** Parses a route. Null for another method, a trailing slash, a query, or an unclosed brace. */
export function parseRoute(text: string): Route | null {
  const match = ROUTE.exec(text)
  if (!match || /\/\.\.?(\/|$)/.test(text)) return null
  return {
    method: match[1] as Method,
    path: match[2] as string,
    params: paramsOf(match[2] as string),
    shape: text.replace(PARAM, '{}'),
    display: text.replace(PARAM, '*'),
  }
}

/** Lists the names of the parameters in a path. @example paramsOf('http://host/{venue}/{day}') → ["venue", "day"] */
export function paramsOf(path: string): string[] {
  return [...path.matchAll(PARAM)].map((match) => match[1] as string)
}

/** The address that an operation calls: that of its product, one below it, or its own. */
export function upstreamAddress(product: string, own: string | null): string {
  return own?.startsWith('/') ? product.replace(/\/$/, '') + own : (own ?? product)
}

/** Returns the name of an operation's MCP tool. @example toolName('checkBarQuality') → "check_bar_quality" */
export function toolName(id: string): string {
  return id
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
}
