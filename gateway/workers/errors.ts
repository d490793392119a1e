/** Errors on their way between threads. A structured clone would turn every class of ours into a plain Error. */
import { isNativeError } from 'node:util/types'
import {
  type ErrorCode,
  InvalidInput,
  NotFound,
  NotHeld,
  ServiceError,
  Unavailable,
  type ValidationItem,
  type Window,
} from '../errors.ts'

/** A thrown value, in a form that can be posted to another thread. */
export type PackedError =
  | ({ readonly kind: 'service' } & ServiceErrorParts)
  | ({ readonly kind: 'error' } & ErrorParts)
  | { readonly kind: 'other'; readonly thrown: unknown }

interface ErrorParts {
  /** The name of the class. */
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
}

interface ServiceErrorParts extends ErrorParts {
  readonly code: ErrorCode
  readonly reason: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly fields: Readonly<Record<string, unknown>>
  /** The items of InvalidInput. */
  readonly detail: readonly ValidationItem[] | undefined
}

/** The classes of JavaScript that keep their class. Other errors become Error and keep their name. */
const CLASSES = new Map([TypeError, RangeError, SyntaxError, ReferenceError].map((type) => [type.name, type]))

/** Packs what was thrown. */
export function packError(thrown: unknown): PackedError {
  if (thrown instanceof ServiceError) {
    const { name, message, stack, code, reason, headers, fields } = thrown
    const detail = thrown instanceof InvalidInput ? thrown.detail : undefined
    return { kind: 'service', name, message, stack, code, reason, headers, fields, detail }
  }
  if (!(thrown instanceof Error) && !isNativeError(thrown)) return { kind: 'other', thrown }
  const { name, message, stack } = thrown
  return { kind: 'error', name, message, stack }
}

/** Packs the text of what was thrown, if it contains something that cannot be posted. */
export function packErrorText(thrown: unknown): PackedError {
  const { message } = thrown instanceof Error ? thrown : { message: String(thrown) }
  return { kind: 'error', name: 'Error', message, stack: undefined }
}

/** Returns what was thrown: a ServiceError with its class and fields, an Error, or any other value. */
export function unpackError(packed: PackedError): unknown {
  if (packed.kind === 'other') return packed.thrown
  const error = packed.kind === 'service' ? serviceError(packed) : plainError(packed)
  if (packed.stack !== undefined) error.stack = packed.stack
  return error
}

function serviceError({ name, message, code, reason, headers, fields, detail }: ServiceErrorParts): ServiceError {
  if (detail) return new InvalidInput(detail)
  if (name === NotFound.name) return new NotFound(message)
  if (name === NotHeld.name) return new NotHeld(message, windowOf(fields['nearest']))
  if (name === Unavailable.name)
    return new Unavailable(message, Number(headers['retry-after']), fields['progress'] as number | undefined)
  return new ServiceError(code, message, { headers, fields, ...(reason === undefined ? {} : { reason }) })
}

function plainError({ name, message }: ErrorParts): Error {
  const error = new (CLASSES.get(name) ?? Error)(message)
  error.name = name
  return error
}

function windowOf(nearest: unknown): Window | null {
  if (nearest === null || nearest === undefined) return null
  const { start, end } = nearest as { readonly start: string; readonly end: string }
  return { start: new Date(start), end: new Date(end) }
}
