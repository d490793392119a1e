/**
 * Reads and decodes request bodies by media type, up to the operation's size limit. Handlers get the same shape from
 * every media type: JSON `{"file": "text"}`, a multipart part named `file` and a raw text/csv body all become `{ file }`,
 * the last two as an Upload.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Busboy, type BusboyHeaders } from '@fastify/busboy'
import type { Operation } from '../plugin/catalog.ts'
import type { RawBody } from '../editions/upstream.ts'
import { InvalidInput, ServiceError } from '../errors.ts'
import type { Upload } from '../plugin/plugin.ts'
import { decodeText, parseJson } from './json-body.ts'
import { collect, parsePairs } from './request-target.ts'

const JSON_MEDIA = 'application/json'
const FORM_MEDIA = 'application/x-www-form-urlencoded'
/** Forms without files are small. A longer one is probably meant to exhaust memory. */
const MAX_FORM_BYTES = 1_000_000

/** The fields of an operation that decide how its body is read. */
export type BodyRules = Pick<Operation, 'bodyMedia' | 'maxBytes'>

/**
 * Reads and decodes a body. Returns undefined if the operation takes no body or none was sent. Throws ServiceError
 * body_too_large (413) or media_unsupported (415), or InvalidInput (422).
 */
export async function readBody(request: IncomingMessage, rules: BodyRules): Promise<unknown> {
  if (rules.bodyMedia.length === 0 || isEmpty(request)) return undefined
  const media = acceptedMedia(request, rules.bodyMedia)
  if (media === 'multipart/form-data') return readMultipart(request, rules.maxBytes)
  if (media === FORM_MEDIA) {
    const limit = Math.min(rules.maxBytes, MAX_FORM_BYTES)
    return parsePairs(decodeText(await readBytes(request, limit)))
  }
  const bytes = await readBytes(request, rules.maxBytes)
  if (bytes.length === 0) return undefined
  if (media === JSON_MEDIA) return parseJson(bytes)
  const file: Upload = { filename: 'upload', mediaType: media, bytes }
  return { file }
}

function isEmpty({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return false
  return headers['content-length'] === undefined || headers['content-length'] === '0'
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

/** Reads a whole body. Throws ServiceError body_too_large as soon as more than `limit` bytes are announced or sent. */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  await readChunks(request, limit, (chunk) => {
    chunks.push(chunk)
  })
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/**
 * Passes the body to `take` chunk by chunk and awaits it. After an error the rest of the body is read and discarded, so
 * that the connection stays open for the answer.
 */
async function readChunks(
  request: IncomingMessage,
  limit: number,
  take: (chunk: Buffer) => void | Promise<void>,
): Promise<void> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  let size = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length
      if (size > limit) throw tooLarge(limit)
      await take(chunk as Buffer)
    }
  } catch (error) {
    request.resume()
    if (error instanceof ServiceError) throw error
    throw new InvalidInput([{ loc: ['body'], msg: 'The body ended before it was complete.', type: 'incomplete' }])
  }
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
): Promise<{ readonly body: unknown; readonly raw: RawBody | null }> {
  if (rules.bodyMedia.length === 0) return { body: undefined, raw: null }
  const bytes = await readBytes(request, rules.maxBytes)
  const { 'transfer-encoding': _, ...headers } = request.headers
  const length = { 'content-length': String(bytes.length) }
  const copy = Object.assign(Readable.from([bytes]), { headers: { ...headers, ...length } })
  const body = await readBody(copy as unknown as IncomingMessage, rules)
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
