/**
 * The request a payment is bound to: operation id and canonical input as sent, before defaults. Independent of the
 * transport, so a call over HTTP and its twin over MCP are the same request.
 */
import { createHash } from 'node:crypto'
import type { Operation } from '../plugin/catalog.ts'
import type { RawInput } from '../editions/edition.ts'

/** Longer strings and files are digested part by part: a multipart retry has a new boundary but the same parts. */
const LONG = 256

/**
 * SHA-256, hex, of the canonical form. Scalars count as text, so `?limit=5`, a form field "5" and the JSON number 5
 * bind alike. On a purchase route the input changes nothing and is left out.
 */
export function fingerprint(operation: Operation, raw: RawInput): string {
  const input = operation.plan ? null : [canonical(raw.params), canonical(raw.query), canonical(raw.body)]
  return sha256(JSON.stringify([operation.id, input]))
}

function canonical(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value === 'object') {
    if (Array.isArray(value)) return value.map(canonical)
    if (Buffer.isBuffer(value)) return digested(value)
    const fields = value as Readonly<Record<string, unknown>>
    if (Buffer.isBuffer(fields['bytes'])) return digested(fields['bytes'])
    const names = Object.keys(fields).filter((name) => fields[name] !== undefined)
    return Object.fromEntries(names.sort().map((name) => [name, canonical(fields[name])]))
  }
  const text = `${value as string | number | boolean}`
  return text.length > LONG ? digested(Buffer.from(text)) : text
}

function digested(bytes: Buffer): string {
  return bytes.length > LONG ? `sha256:${sha256(bytes)}` : bytes.toString('utf8')
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}
