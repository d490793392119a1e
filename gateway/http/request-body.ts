/**
 * Reads and decodes request bodies by media type, up to the operation's size limit. Handlers get the same shape from
 * every media type: JSON `{"file": "text"}`, a multipart part named `file` and a raw text/csv body all become `{ file }`,
 * the last two as an Upload.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Busboy, type BusboyHeaders } from '@fastify/busboy'
import { LARGE_BODY_BYTES } from '../catalog/large-body.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { RawBody } from '../editions/upstream.ts'
import { InvalidInput, ServiceError } from '../errors.ts'
import type { Upload } from '../plugin/plugin.ts'
import { decodeText, parseJson } from '../validation/json-body.ts'
import { collect, parsePairs } from './request-target.ts'

const JSON_MEDIA = 'application/json'
const FORM_MEDIA = 'application/x-www-form-urlencoded'
/** Forms without files are small. A longer one is probably meant to exhaust memory. */
const MAX_FORM_BYTES = 1_000_000

/** The fields of an operation that decide how its body is read. */
export type BodyRules = Pick<Operation, 'bodyMedia' | 'maxBytes'>

/** Reads the bytes of a large JSON body. */
type ReadLarge = (bytes: Buffer) => unknown

/**
 * Reads and decodes a body. Returns undefined if the operation takes no body or none was sent. Throws ServiceError
 * body_too_large (413) or media_unsupported (415), or InvalidInput (422).
 *
 * @param readLarge reads JSON of more than LARGE_BODY_BYTES, from memory that threads share; by default it is parsed here
 */
export async function readBody(
  request: IncomingMessage,
  rules: BodyRules,
  readLarge: ReadLarge = (bytes) => parseJson(bytes),
): Promise<unknown> {
  if (rules.bodyMedia.length === 0 || !hasBody(request)) return undefined
  const media = acceptedMedia(request, rules.bodyMedia)
  if (media === 'multipart/form-data') return readMultipart(request, rules.maxBytes)
  if (media === FORM_MEDIA) {
    const limit = Math.min(rules.maxBytes, MAX_FORM_BYTES)
    return parsePairs(decodeText(await readBytes(request, limit)), 'body')
  }
  if (media === JSON_MEDIA) {
    const bytes = await readBytes(request, rules.maxBytes, joinToShare)
    if (bytes.length === 0) return undefined
    return bytes.length > LARGE_BODY_BYTES ? readLarge(bytes) : parseJson(bytes)
  }
  const bytes = await readBytes(request, rules.maxBytes)
  if (bytes.length === 0) return undefined
  const file: Upload = { filename: 'upload', mediaType: media, bytes }
  return { file }
}

type Join = (chunks: readonly Buffer[], size: number) => Buffer

const joinChunks: Join = (chunks, size) => (chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size))

/** Joins the bytes of a large body in memory that threads share, so that no copy for a thread delays other calls. */
const joinToShare: Join = (chunks, size) => {
  if (size <= LARGE_BODY_BYTES) return joinChunks(chunks, size)
  const joined = Buffer.from(new SharedArrayBuffer(size))
  let at = 0
  for (const chunk of chunks) at += chunk.copy(joined, at)
  return joined
}

/** True if the request announces a body (RFC 9112, section 6.3). */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** The size of the body as the request announces it, in bytes. Infinite if it is sent in chunks. */
export function announcedBytes({ headers }: Pick<IncomingMessage, 'headers'>): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Number.POSITIVE_INFINITY
}

/** Returns the operation's media type that matches the body. A body without content-type is read as the first one. */
function acceptedMedia({ headers }: IncomingMessage, accepted: readonly string[]): string {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity')
    throw unsupported(`The content-encoding ${encoding} is not supported; send the body uncompressed.`, accepted)
  const [named = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const media = named.trim()
  if (media === '') return accepted[0] as string
  const match = accepted.find((candidate) => candidate === media || (candidate === JSON_MEDIA && isJson(media)))
  if (match === undefined) throw unsupported(`${media} is not accepted here; send ${accepted.join(' or ')}.`, accepted)
  const charset = /charset="?([^"\s]+)/.exec(parameters.join(';'))?.[1] ?? 'utf-8'
  if (!['utf-8', 'utf8', 'us-ascii'].includes(charset))
    throw unsupported(`The charset ${charset} is not supported; send UTF-8.`, accepted)
  return match
}

const isJson = (media: string): boolean => /^application\/[\w.-]+\+json$/.test(media)

function unsupported(message: string, accepted: readonly string[]): ServiceError {
  return new ServiceError('media_unsupported', message, {
    headers: { accept: accepted.join(', ') },
    fields: { accepted },
  })
}

/**
 * Reads a whole body. Throws ServiceError body_too_large as soon as more than `limit` bytes are announced or sent. Reads by
 * events: an iterator costs more than the rest of a small call.
 */
export async function readBytes(request: IncomingMessage, limit: number, join: Join = joinChunks): Promise<Buffer> {
  assertAnnounced(request, limit)
  const chunks: Buffer[] = []
  let size = 0
  return new Promise((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) fail(tooLarge(limit))
    }
    const finish = (): void => {
      stop()
      resolve(join(chunks, size))
    }
    const breakOff = (): void => fail(incomplete())
    const listeners = { data: take, end: finish, error: breakOff, close: breakOff } as const
    const stop = (): void => {
      for (const [name, listener] of Object.entries(listeners)) request.off(name, listener)
    }
    const fail = (error: ServiceError): void => {
      stop()
      discard(request)
      reject(error)
    }
    for (const [name, listener] of Object.entries(listeners)) request.on(name, listener)
    if (request.destroyed) breakOff()
  })
}

/** Passes the body to `take` chunk by chunk and awaits it. Throws as `readBytes` does. */
async function readChunks(
  request: IncomingMessage,
  limit: number,
  take: (chunk: Buffer) => Promise<void>,
): Promise<void> {
  assertAnnounced(request, limit)
  let size = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length
      if (size > limit) throw tooLarge(limit)
      await take(chunk as Buffer)
    }
  } catch (error) {
    discard(request)
    throw error instanceof ServiceError ? error : incomplete()
  }
}

function assertAnnounced({ headers }: IncomingMessage, limit: number): void {
  if (Number(headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
}

/** Reads the rest of the body and drops it, so that the connection stays open for the answer. */
function discard(request: IncomingMessage): void {
  request.on('error', () => {}).resume()
}

function incomplete(): InvalidInput {
  return new InvalidInput([{ loc: ['body'], msg: 'The body ended before it was complete.', type: 'incomplete' }])
}

function tooLarge(limit: number): ServiceError {
  const fields = { max_bytes: limit }
  return new ServiceError('body_too_large', `The body is larger than ${limit} bytes, the limit of this route.`, {
    fields,
  })
}

/**
 * Reads a body once, for an operation that an upstream answers: `body` is decoded for validation, `raw` is what the
 * caller sent. Throws as `readBody` does.
 */
export async function readRawBody(
  request: IncomingMessage,
  rules: BodyRules,
  readLarge?: ReadLarge,
): Promise<{ readonly body: unknown; readonly raw: RawBody | null }> {
  if (rules.bodyMedia.length === 0) return { body: undefined, raw: null }
  const bytes = await readBytes(request, rules.maxBytes)
  const { 'transfer-encoding': _, ...headers } = request.headers
  const length = { 'content-length': String(bytes.length) }
  const copy = Object.assign(Readable.from([bytes]), { headers: { ...headers, ...length } })
  const body = await readBody(copy as unknown as IncomingMessage, rules, readLarge)
  const type = headers['content-type'] ?? rules.bodyMedia[0] ?? ''
  return { body, raw: bytes.length === 0 ? null : { type, bytes } }
}

type Part = string | Upload

const MAX_PARTS = 100
const MAX_NAME_BYTES = 200

/**
 * Reads multipart/form-data: text fields as strings, files as Upload, and several parts of one name as an array. Reads
 * at most `maxBytes` in total. Ignores the empty file that a browser sends if no file was chosen. Throws ServiceError
 * body_too_large, or InvalidInput.
 */
async function readMultipart(request: IncomingMessage, maxBytes: number): Promise<Record<string, Part | Part[]>> {
  const parts = new Map<string, Part | Part[]>()
  const parser = createParser(request, maxBytes)
  const finished = once(parser, 'finish')
  finished.catch(() => {})
  let invalid: InvalidInput | null = null
  const reject = (msg: string, loc: readonly string[] = ['body']): void => {
    invalid ??= new InvalidInput([{ loc, msg, type: 'multipart_invalid' }])
  }
  parser.on('field', (name, value, nameCut) => {
    if (nameCut) reject(`A field name is longer than ${MAX_NAME_BYTES} bytes.`)
    else collect<Part>(parts, name, value)
  })
  parser.on('file', (name, stream, filename, _encoding, mediaType) => {
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', () => reject('A file ended before it was complete.', ['body', name]))
    stream.on('end', () => {
      if (!filename && chunks.length === 0) return
      collect<Part>(parts, name, { filename: filename ?? '', mediaType, bytes: Buffer.concat(chunks) })
    })
  })
  parser.on('partsLimit', () => reject(`More than ${MAX_PARTS} parts.`))
  try {
    await readChunks(request, maxBytes, async (chunk) => {
      if (!parser.write(chunk)) await Promise.race([once(parser, 'drain'), finished])
    })
    parser.end()
    await finished
  } catch (error) {
    if (error instanceof ServiceError) throw error
    reject('The multipart body is malformed or ended early.')
  }
  if (invalid) throw invalid as InvalidInput
  return Object.fromEntries(parts)
}

function createParser(request: IncomingMessage, maxBytes: number): InstanceType<typeof Busboy> {
  const limits = { parts: MAX_PARTS, fieldNameSize: MAX_NAME_BYTES, fieldSize: maxBytes, headerPairs: 50 }
  try {
    return new Busboy({ headers: request.headers as BusboyHeaders, limits })
  } catch {
    throw new InvalidInput([{ loc: ['body'], msg: 'The multipart body names no boundary.', type: 'multipart_invalid' }])
  }
}
