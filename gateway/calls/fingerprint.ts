/**
 * The digest of the request a payment is bound to: operation id and canonical input as sent, before defaults. It does
 * not depend on the transport, so the same call over HTTP and over MCP has the same fingerprint.
 */
import { createHash } from 'node:crypto'
import type { Operation } from '../plugin/catalog.ts'
import type { RawInput } from '../editions/edition.ts'

/** Longer strings and files are digested one by one: a multipart retry has a new boundary but the same parts. */
const LONG = 256

/**
 * SHA-256 of the canonical form, in hex. Scalars count as text, so `?limit=5`, a form field "5" and the JSON number 5
 * have the same fingerprint. The purchase route of a plan ignores its input, so its fingerprint does too.
 */
export function fingerprint(operation: Operation, raw: RawInput): string {
  const input = operation.plan ? null : [canonical(raw.params), canonical(raw.query), canonical(raw.body)]
  return sha256(JSON.stringify([operation.id, input]))
}

function canonical(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value === 'object') {
    if (Array.isArray(value)) return value.map(canonical)
    if (Buffer.isBuffer(value)) return digestIfLong(value)
    const fields = value as Readonly<Record<string, unknown>>
    if (Buffer.isBuffer(fields['bytes'])) return digestIfLong(fields['bytes'])
    const names = Object.keys(fields).filter((name) => fields[name] !== undefined)
    return Object.fromEntries(names.sort().map((name) => [name, canonical(fields[name])]))
  }
  const text = `${value as string | number | boolean}`
  return text.length > LONG ? digestIfLong(Buffer.from(text)) : text
}

function digestIfLong(bytes: Buffer): string {
  return bytes.length > LONG ? `sha256:${sha256(bytes)}` : bytes.toString('utf8')
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}
