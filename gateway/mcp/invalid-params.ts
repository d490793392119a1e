/** Refuses the params of a request: JSON-RPC error -32602, with a sentence that names the field and what it must be. */
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'

/** Thrown for params that are wrong. Unlike the SDK's McpError, it does not put a prefix before the message. */
export class InvalidParams extends Error {
  readonly code = ErrorCode.InvalidParams
}

/** The fields of a Zod issue that are read. */
interface Issue {
  readonly path: readonly PropertyKey[]
  /** The type, if the issue is a wrong type. */
  readonly expected?: unknown
}

/** A schema of the SDK. */
interface Schema<Request> {
  safeParse(
    value: unknown,
  ):
    | { readonly success: true; readonly data: Request }
    | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } }
}

/** Reads a request by the SDK's schema of its method. Throws InvalidParams. */
export function parseRequest<Request>(schema: Schema<Request>, request: unknown): Request {
  const parsed = schema.safeParse(request)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new InvalidParams(`Invalid params: ${issue ? describe(issue) : 'they must be as the MCP schema says.'}`)
}

/** The types of Zod in the words of JSON. */
const TYPES: Readonly<Record<string, string>> = {
  object: 'an object',
  record: 'an object',
  array: 'an array',
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
}

function describe({ path, expected }: Issue): string {
  const type = typeof expected === 'string' ? TYPES[expected] : undefined
  return `${fieldAt(path)} must be ${type ?? 'as the MCP schema says'}.`
}

/** Writes a path as in JavaScript: params._meta["x402/payment"]. */
function fieldAt(path: readonly PropertyKey[]): string {
  return path
    .map((key, depth) => {
      if (typeof key === 'string' && /^[A-Za-z_$][\w$]*$/.test(key)) return depth === 0 ? key : `.${key}`
      return `[${JSON.stringify(typeof key === 'symbol' ? String(key) : key)}]`
    })
    .join('')
}
