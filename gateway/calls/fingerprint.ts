/**
 * The digest of the request a payment is bound to: operation id and canonical input as sent, before defaults. It does
 * not depend on the transport, so the same call over HTTP and over MCP has the same fingerprint.
 */
import { isUtf8 } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { LargeBody } from '../catalog/large-body.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { RawInput } from '../products/edition.ts'
import type { Upload } from '../plugin/plugin.ts'

/** Longer strings and files are digested one by one: a multipart retry has a new boundary but the same parts. */
const LONG = 256

/** Lists longer than this are digested in slices, so that a large body does not delay every other call. */
const SLICE = 500
/** The longest stretch of work before other calls get their turn. */
const TURN_MS = 5

/**
 * SHA-256 of the canonical form, in hex. Scalars count as text, so `?limit=5`, a form field "5" and the JSON number 5
 * have the same fingerprint. The purchase route of a plan ignores its input, so its fingerprint does too.
 */
export async function fingerprint({ id, plan }: Pick<Operation, 'id' | 'plan'>, raw: RawInput): Promise<string> {
  if (raw.body instanceof LargeBody && raw.body.fingerprint !== null) return raw.body.fingerprint
  return fingerprintOf({ id, isPlan: plan !== null }, raw)
}

/** Computes the fingerprint of a request whose body was parsed. */
export async function fingerprintOf(
  operation: { readonly id: string; readonly isPlan: boolean },
  raw: Pick<RawInput, 'params' | 'query' | 'body'>,
): Promise<string> {
  if (operation.isPlan) return sha256(JSON.stringify([operation.id, null]))
  const [id, params, query] = [operation.id, canonical(raw.params), canonical(raw.query)].map((each) =>
    JSON.stringify(each),
  )
  await digestLargeFiles(raw.body)
  const digest = new SlicedDigest(`[${id},[${params},${query},`)
  await digest.add(raw.body)
  return digest.end(']]')
}

const SLICE_BYTES = 500_000
const largeFiles = new WeakMap<Buffer, string>()

/** Digests the large files of a form in slices. */
async function digestLargeFiles(body: unknown): Promise<void> {
  if (typeof body !== 'object' || body === null || Buffer.isBuffer(body)) return
  for (const value of Object.values(body) as readonly Partial<Upload>[]) {
    const bytes = value?.bytes
    if (!Buffer.isBuffer(bytes) || bytes.length <= SLICE_BYTES) continue
    const hash = createHash('sha256')
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      hash.update(bytes.subarray(at, at + SLICE_BYTES))
      await setImmediate()
    }
    largeFiles.set(bytes, hash.digest('hex'))
  }
}

/** The digest of a JSON text that is written in slices. */
class SlicedDigest {
  readonly #hash: Hash
  #turnBegan = performance.now()

  constructor(start: string) {
    this.#hash = createHash('sha256').update(start)
  }

  /** Adds the canonical form of a value. */
  async add(value: unknown): Promise<void> {
    if (Array.isArray(value) && value.length > SLICE) return this.#addList(value)
    if (!holdsLongList(value)) return void this.#hash.update(JSON.stringify(canonical(value)))
    let before = '{'
    for (const name of namesOf(value)) {
      this.#hash.update(`${before}${JSON.stringify(name)}:`)
      await this.add(value[name])
      before = ','
    }
    this.#hash.update('}')
  }

  end(rest: string): string {
    return this.#hash.update(rest).digest('hex')
  }

  async #addList(list: readonly unknown[]): Promise<void> {
    for (let at = 0; at < list.length; at += SLICE) {
      const slice = JSON.stringify(list.slice(at, at + SLICE).map(canonical))
      this.#hash.update(`${at === 0 ? '[' : ','}${slice.slice(1, -1)}`)
      if (performance.now() - this.#turnBegan < TURN_MS) continue
      await setImmediate()
      this.#turnBegan = performance.now()
    }
    this.#hash.update(']')
  }
}

type Fields = Readonly<Record<string, unknown>>

/** True for an object with a long list in it, at any depth below other objects. */
function holdsLongList(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isFile(value as Fields)) return false
  // An object lists names that are integers first, whatever their place in the text.
  if (Object.keys(value).some((name) => /^\d+$/.test(name))) return false
  return Object.values(value).some((each) => (Array.isArray(each) ? each.length > SLICE : holdsLongList(each)))
}

function isFile(value: Fields): boolean {
  return Buffer.isBuffer(value) || Buffer.isBuffer(value['bytes'])
}

function namesOf(fields: Fields): readonly string[] {
  return Object.keys(fields)
    .filter((name) => fields[name] !== undefined)
    .sort()
}

function canonical(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value === 'object') {
    if (Array.isArray(value)) return value.map(canonical)
    if (Buffer.isBuffer(value)) return digestIfLong(value)
    const fields = value as Fields
    if (Buffer.isBuffer(fields['bytes'])) return digestIfLong(fields['bytes'])
    return Object.fromEntries(namesOf(fields).map((name) => [name, canonical(fields[name])]))
  }
  const text = `${value as string | number | boolean}`
  return text.length > LONG ? digestIfLong(Buffer.from(text)) : text
}

/** Bytes that are no text are digested too: as text, different ones would be the same. */
function digestIfLong(bytes: Buffer): string {
  return bytes.length > LONG || !isUtf8(bytes)
    ? `sha256:${largeFiles.get(bytes) ?? sha256(bytes)}`
    : bytes.toString('utf8')
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}
