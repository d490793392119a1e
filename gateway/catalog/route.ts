/** Routes as the catalog writes them: "GET /v1/x/gold/{day}". */
import type { Method } from '../plugin/catalog.ts'

export interface Route {
  readonly method: Method
  readonly path: string
  /** Names of the `{parameters}`, in order. */
  readonly params: readonly string[]
  /** Equal for two routes that no router can tell apart: "GET /v1/x/gold/{}". */
  readonly shape: string
  /** The form of price list, discovery and plans: "GET /v1/x/gold/*". */
  readonly display: string
}

const ROUTE = /^(GET|POST|PUT|PATCH|DELETE) (\/|(?:\/(?:[\w.~-]+|\{[a-z]\w*\}))+)$/
const PARAM = /\{(\w+)\}/g

/** Null where the text is not a route: another method, a trailing slash, a query, an unfinished brace. */
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

/** @example paramsOf('http://host/{venue}/{day}') → ["venue", "day"] */
export function paramsOf(path: string): string[] {
  return [...path.matchAll(PARAM)].map((match) => match[1] as string)
}

/** The MCP tool name of an operation. @example toolName('checkBarQuality') → "check_bar_quality" */
export function toolName(id: string): string {
  return id
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
}
