/**
 * Requests of MCP 2026-07-28. They begin no session: each names its revision and the client's capabilities in `_meta`, and
 * repeats the revision, its method and the name of the tool in headers, for proxies that do not read bodies (SEP-2243).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { ErrorCode, type JSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js'
import { isObject } from '../validation/json.ts'

export const STATELESS_VERSION = '2026-07-28'

/** Codes of this revision, which the SDK does not have. */
const HEADER_MISMATCH = -32_020
const UNSUPPORTED_VERSION = -32_022

const VERSION_HEADER = 'mcp-protocol-version'
const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const META_SERVER = 'io.modelcontextprotocol/serverInfo'

/** Why a request is refused before its method is looked at, with status 400. */
export interface Fault {
  readonly code: number
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** True if a request names its revision itself, or its header names this one. */
export function isStateless({ params }: JSONRPCRequest, headers: IncomingHttpHeaders): boolean {
  return params?._meta?.[META_VERSION] !== undefined || headers[VERSION_HEADER] === STATELESS_VERSION
}

/** Returns what is wrong with the envelope and the headers of a stateless request, or null. */
export function faultOf({ method, params }: JSONRPCRequest, headers: IncomingHttpHeaders): Fault | null {
  const { [META_VERSION]: version, [META_CAPABILITIES]: capabilities } = params?._meta ?? {}
  if (typeof version !== 'string') return incomplete(META_VERSION)
  if (!isObject(capabilities)) return incomplete(META_CAPABILITIES)
  if (version !== STATELESS_VERSION)
    return {
      code: UNSUPPORTED_VERSION,
      message: `Unsupported protocol version: ${version}`,
      data: { supported: [STATELESS_VERSION, ...SUPPORTED_PROTOCOL_VERSIONS], requested: version },
    }
  return (
    mismatch(headers, VERSION_HEADER, version) ??
    mismatch(headers, 'mcp-method', method) ??
    mismatchOfName(headers, params?.[NAMES[method] ?? ''])
  )
}

/** The field of a method's params that the header mcp-name repeats. */
const NAMES: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'resources/read': 'uri',
  'prompts/get': 'name',
}

function mismatchOfName(headers: IncomingHttpHeaders, name: unknown): Fault | null {
  return typeof name === 'string' ? mismatch(headers, 'mcp-name', name) : null
}

function incomplete(key: string): Fault {
  return { code: ErrorCode.InvalidParams, message: `Invalid params: params._meta["${key}"] is missing or malformed` }
}

function mismatch(headers: IncomingHttpHeaders, name: string, expected: string): Fault | null {
  const value = headers[name]
  if (typeof value === 'string' && decoded(value) === expected) return null
  return {
    code: HEADER_MISMATCH,
    message: `Bad Request: The header ${name} ${value === undefined ? 'is missing' : `says ${String(value)}`}, the body says ${expected}`,
  }
}

/** A name that fits no header is sent as =?base64?…?=. */
function decoded(value: string): string {
  const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(value)?.[1]
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString()
}

/** The JSON of a result, as this revision wants it. */
export function completed(result: string): string {
  return `{"resultType":"complete",${result.slice(1)}`
}

/** A result that clients may keep for so long, as JSON. It says which server it is from. */
export function cacheable(result: Readonly<Record<string, unknown>>, server: unknown, ttlMs: number): string {
  return completed(JSON.stringify({ _meta: { [META_SERVER]: server }, ...result, ttlMs, cacheScope: 'public' }))
}
