/**
 * Large JSON bodies. To parse, check and digest one takes a tenth of a second or more, so a worker thread does it. The
 * event loop keeps the bytes, and parses them only if a handler reads the body there.
 */
import { createHash } from 'node:crypto'
import type { ValidationItem } from '../errors.ts'
import type { JsonSchema, Operation } from '../plugin/catalog.ts'
import type { Schemas } from '../validation/json-schema.ts'
import { references } from './schemas.ts'

/** Larger bodies are read in a worker thread. On the event loop, one of this size takes about eight milliseconds. */
export const LARGE_BODY_BYTES = 262_144
/** So are bodies of more values than this, whatever their size. */
export const LARGE_BODY_VALUES = 20_000

/** Rules by which a thread checks bodies of one operation as the event loop does. Can be cloned. */
export interface BodyRules {
  /** Equal for equal rules. */
  readonly key: string
  readonly operation: Pick<Operation, 'body' | 'bodyMedia'>
  /** The schemas that the body refers to, by name. */
  readonly schemas: readonly (readonly [name: string, schema: JsonSchema])[]
}

/** Returns the rules for bodies of an operation. */
export function bodyRulesOf({ body, bodyMedia }: Pick<Operation, 'body' | 'bodyMedia'>, schemas: Schemas): BodyRules {
  const names = body === null ? [] : [...references(body, schemas).files]
  const used = names.map((name) => [name, schemas.get(name) as JsonSchema] as const)
  const rules = { operation: { body, bodyMedia }, schemas: used }
  return { key: createHash('sha256').update(JSON.stringify(rules)).digest('base64url'), ...rules }
}

/** A large body that a thread has checked. */
export class LargeBody {
  /** The bytes, in memory that threads share. */
  readonly bytes: Uint8Array
  /** The issues of the body. */
  readonly items: readonly ValidationItem[]
  /** The fingerprint of the request. Null if it is not needed. */
  readonly fingerprint: string | null

  constructor(bytes: Uint8Array, { items, fingerprint }: Pick<LargeBody, 'items' | 'fingerprint'>) {
    this.bytes = bytes
    this.items = items
    this.fingerprint = fingerprint
  }
}
