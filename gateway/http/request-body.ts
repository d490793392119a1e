/**
 * Reads and decodes request bodies by media type, up to the operation's size limit. Handlers get the same shape from
 * every media type: JSON `{"file": "text"}`, a multipart part named `file` and a raw text/csv body all become `{ file }`,
 * the last two as an Upload.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { Busboy, type BusboyHeaders } from '@fastify/busboy'
import { LARGE_BODY_BYTES, LARGE_BODY_VALUES } from '../catalog/large-body.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { RawBody } from '../products/upstream.ts'
import { InvalidInput, ServiceError } from '../errors.ts'
import type { Upload } from '../plugin/plugin.ts'
import { decodeText, parseMeasuredJson } from '../validation/json-body.ts'
import { JsonMeter } from '../validation/json-meter.ts'
import { type ArrivedBody, bodyOf, BodyStorage } from './body-storage.ts'
import { collect, parsePairs } from './request-target.ts'

const JSON_MEDIA = 'application/json'
const FORM_MEDIA = 'application/x-www-form-urlencoded'
/** Forms without files are small. A longer one is probably meant to exhaust memory. */
const MAX_FORM_BYTES = 1_000_000

/** The fields of an operation that decide how its body is read. */
export type BodyRules = Pick<Operation, 'bodyMedia' | 'maxBytes'>

/** Reads the bytes of a large JSON body. */
type ReadLarge = (bytes: Buffer) => unknown

/** Parts that reading needs besides the request. */
export interface Reading {
  /** Where bodies are kept. */
  readonly storage?: BodyStorage
  /** Reads JSON that is large, from memory that threads share; by default it is parsed here. */
  readonly readLarge?: ReadLarge | undefined
  /**
   * Gets the body as soon as it has arrived, before it is decoded; what it throws ends the reading. It has to release a
   * large body when the call has ended: if its caller leaves, the body no longer waits for memory. By default the memory
   * is free once the body was decoded.
   */
  readonly whenArrived?: (body: Pick<ArrivedBody, 'size' | 'isLarge' | 'release'>) => void
  /** The address that the body comes from, which has a share of the storage. */
  readonly address?: string
}

/** Keeps the bodies of those who do not bring a storage of their own. */
const SHARED_STORAGE = new BodyStorage()

/**
 * Reads and decodes a body. Returns undefined if the operation takes no body or none was sent. Throws ServiceError
 * body_too_large (413), body_too_slow (408) or media_unsupported (415), Unavailable (503), or InvalidInput (422).
 */
export async function readBody(request: IncomingMessage, rules: BodyRules, reading: Reading = {}): Promise<unknown> {
  if (rules.bodyMedia.length === 0 || !hasBody(request)) return undefined
  const media = acceptedMedia(request, rules.bodyMedia)
  const meter = media === JSON_MEDIA ? new JsonMeter() : null
  const arrived = await receive(request, media, rules.maxBytes, meter, reading)
  try {
    reading.whenArrived?.(arrived)
    return await decode(request, media, arrived, meter, reading)
  } finally {
    free(arrived, reading)
  }
}

/** Frees a body that was decoded, unless its memory is held until its call has ended. */
function free(arrived: ArrivedBody, { whenArrived }: Reading): void {
  if (!whenArrived || !arrived.isHeld) arrived.release()
}

function receive(
  request: IncomingMessage,
  media: string,
  maxBytes: number,
  meter: JsonMeter | null,
  { storage = SHARED_STORAGE, address }: Reading,
): Promise<ArrivedBody> {
  const limit = media === FORM_MEDIA ? Math.min(maxBytes, MAX_FORM_BYTES) : maxBytes
  const inspect = meter ? (piece: Buffer): void => meter.take(piece) : undefined
  return storage.receive(request, limit, inspect, address)
}

async function decode(
  request: IncomingMessage,
  media: string,
  arrived: ArrivedBody,
  meter: JsonMeter | null,
  { readLarge }: Reading,
): Promise<unknown> {
  if (media === 'multipart/form-data') return readMultipart(request, await bytesOf(arrived))
  if (media === FORM_MEDIA) return parsePairs(decodeText(await arrived.bytes()), 'body')
  if (arrived.size === 0) return undefined
  if (!meter) {
    const file: Upload = { filename: 'upload', mediaType: media, bytes: await bytesOf(arrived) }
    return { file }
  }
  const isLarge = arrived.size > LARGE_BODY_BYTES || meter.values > LARGE_BODY_VALUES
  if (isLarge && readLarge) return readLarge(await arrived.bytes(true))
  return parseMeasuredJson(await arrived.bytes())
}

/**
 * Reads a body that holds files. A large one goes to memory that threads share. Then no thread copies it, and it does not
 * bring the next full garbage collection nearer, because V8 does not count shared memory as pressure.
 */
function bytesOf(arrived: ArrivedBody): Promise<Buffer> {
  return arrived.bytes(arrived.isLarge)
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
  if (encoding.toLowerCase() !== 'identity') {
    const message = `The content-encoding ${encoding} is not supported; send the body uncompressed.`
    // The header tells a client that the media type is not what is wrong (RFC 9110, section 12.5.3).
    throw unsupported(message, accepted, { 'accept-encoding': 'identity' })
  }
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

function unsupported(
  message: string,
  accepted: readonly string[],
  headers: Readonly<Record<string, string>> = {},
): ServiceError {
  return new ServiceError('media_unsupported', message, {
    headers: { accept: accepted.join(', '), ...headers },
    fields: { accepted },
  })
}

/**
 * Reads a body once, for an operation that an upstream answers: `body` is decoded for validation, `raw` is what the
 * caller sent. Throws as `readBody` does.
 */
export async function readRawBody(
  request: IncomingMessage,
  rules: BodyRules,
  reading: Reading = {},
): Promise<{ readonly body: unknown; readonly raw: RawBody | null }> {
  if (rules.bodyMedia.length === 0 || !hasBody(request)) return { body: undefined, raw: null }
  const media = acceptedMedia(request, rules.bodyMedia)
  const meter = media === JSON_MEDIA ? new JsonMeter() : null
  const arrived = await receive(request, media, rules.maxBytes, meter, reading)
  try {
    reading.whenArrived?.(arrived)
    const bytes = await arrived.bytes()
    const body = await decode(request, media, bodyOf(bytes), meter, reading)
    const type = request.headers['content-type'] ?? rules.bodyMedia[0] ?? ''
    return { body, raw: bytes.length === 0 ? null : { type, bytes } }
  } finally {
    free(arrived, reading)
  }
}

type Part = string | Upload

const MAX_PARTS = 100
/** Other calls get their turn after so many bytes. */
const TURN_BYTES = 250_000
const MAX_NAME_BYTES = 200
/** How many turns of the event loop a step of the parser takes at most. */
const MAX_TURNS = 100
const BOUNDARY_START = Buffer.from('\r\n--')

/**
 * Reads multipart/form-data: text fields as strings, files as Upload, and several parts of one name as an array. Ignores
 * the empty file that a browser sends if no file was chosen. Throws InvalidInput.
 */
async function readMultipart(request: IncomingMessage, body: Buffer): Promise<Record<string, Part | Part[]>> {
  const parts = new Map<string, Part | Part[]>()
  const parser = createParser(request, body.length)
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
      collect<Part>(parts, name, { filename: filename ?? '', mediaType, bytes: join(chunks) })
    })
  })
  parser.on('partsLimit', () => reject(`More than ${MAX_PARTS} parts.`))
  try {
    for (let at = 0; at < body.length;) {
      if (at > 0) await setImmediate()
      const end = turnEnd(body, at)
      if (!parser.write(body.subarray(at, end))) await soon(Promise.race([once(parser, 'drain'), finished]))
      at = end
    }
    parser.end()
    await soon(finished)
  } catch (error) {
    if (error instanceof ServiceError) throw error
    reject('The multipart body is malformed or ended early.')
  }
  if (invalid) throw invalid as InvalidInput
  return Object.fromEntries(parts)
}

/**
 * Waits for the next step of the parser. Everything it needs is in memory, so a step takes few turns of the event loop. Some
 * malformed parts stop it for good: one whose headers never end is never read. Throws then.
 */
async function soon(step: Promise<unknown>): Promise<void> {
  let isDone = false
  const note = (): void => void (isDone = true)
  step.then(note, note)
  for (let turns = 0; !isDone; turns += 1) {
    if (turns === MAX_TURNS) throw new Error('the parser has stopped')
    await setImmediate()
  }
  await step
}

/**
 * Where the turn that starts at this byte ends: seldom after what may begin a boundary. From there on, the parser would
 * copy, and the chunks of the file no longer follow each other.
 */
function turnEnd(body: Buffer, start: number): number {
  let end = start + TURN_BYTES
  if (end >= body.length) return body.length
  for (let step = 0; step < BOUNDARY_START.length && BOUNDARY_START.includes(body[end - 1] ?? 0); step += 1) end -= 1
  return end
}

/** Joins the chunks of a file. Most are views of the body that follow each other, so nothing is copied. */
function join(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks
  if (!first) return Buffer.alloc(0)
  let end = first.byteOffset
  for (const { buffer, byteOffset, length } of chunks) {
    if (buffer !== first.buffer || byteOffset !== end) return Buffer.concat(chunks)
    end += length
  }
  return Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset)
}

function createParser(request: IncomingMessage, maxBytes: number): InstanceType<typeof Busboy> {
  const limits = { parts: MAX_PARTS, fieldNameSize: MAX_NAME_BYTES, fieldSize: maxBytes, headerPairs: 50 }
  try {
    return new Busboy({ headers: request.headers as BusboyHeaders, limits })
  } catch {
    throw new InvalidInput([{ loc: ['body'], msg: 'The multipart body names no boundary.', type: 'multipart_invalid' }])
  }
}
