/**
 * Request bodies by media type, read only when `serve` asks and never beyond the operation's limit. Whatever the wire
 * form, handlers meet one shape: JSON `{"file": "text"}`, a multipart part named `file` and a raw text/csv body all
 * arrive as `{ file }`, the last two as an Upload.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Busboy, type BusboyHeaders } from '@fastify/busboy'
import type { Operation } from '../plugin/catalog.ts'
import type { RawBody } from '../editions/upstream-request.ts'
import { InvalidInput, ServiceError } from '../errors.ts'
import type { Upload } from '../plugin/plugin.ts'
import { decodeText, parseJson } from './json.ts'
import { collect, parsePairs } from './request-target.ts'

const JSON_MEDIA = 'application/json'
const FORM_MEDIA = 'application/x-www-form-urlencoded'
/** Forms without files are small; a longer one is an attack on the parser's memory. */
const MAX_FORM_BYTES = 1_000_000

/** What of an operation decides how its body is read. */
export type BodyRules = Pick<Operation, 'bodyMedia' | 'maxBytes'>

/**
 * Reads and decodes a body. Undefined where the operation takes none or nothing was sent. Throws ServiceError
 * body_too_large (413), media_unsupported (415) or InvalidInput (422).
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

/** The one of the operation's media types that the body is in; a body that names none is taken for the first. */
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

/** Reads a body whole. Throws ServiceError body_too_large as soon as more than `limit` bytes are announced or sent. */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  await drainInto(request, limit, (chunk) => {
    chunks.push(chunk)
  })
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/**
 * Hands the body over piece by piece, waiting for `take` where it returns a promise. After a refusal the rest is
 * discarded while it arrives, so that the connection, and the answer on it, survive.
 */
export async function drainInto(
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

/** Throws ServiceError body_too_large (413), media_unsupported (415) or InvalidInput (422), as `readBody` does. */
export async function readWhole(
  request: IncomingMessage,
  rules: BodyRules,
): Promise<{ readonly body: unknown; readonly sent: RawBody | null }> {
  if (rules.bodyMedia.length === 0) return { body: undefined, sent: null }
  const bytes = await readBytes(request, rules.maxBytes)
  const { 'transfer-encoding': _, ...headers } = request.headers
  const length = { 'content-length': String(bytes.length) }
  const copy = Object.assign(Readable.from([bytes]), { headers: { ...headers, ...length } })
  const body = await readBody(copy as unknown as IncomingMessage, rules)
  const type = headers['content-type'] ?? rules.bodyMedia[0] ?? ''
  return { body, sent: bytes.length === 0 ? null : { type, bytes } }
}

type Part = string | Upload

const MAX_PARTS = 100
const MAX_NAME_BYTES = 200

/**
 * Reads the parts while they arrive, at most `maxBytes` in all. The empty file a browser sends where none was chosen
 * is left out. Throws ServiceError body_too_large, or InvalidInput.
 */
export async function readMultipart(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Record<string, Part | Part[]>> {
  const parts = new Map<string, Part | Part[]>()
  const parser = open(request, maxBytes)
  const finished = once(parser, 'finish')
  finished.catch(() => {})
  let mistake: InvalidInput | null = null
  const refuse = (msg: string, loc: readonly string[] = ['body']): void => {
    mistake ??= new InvalidInput([{ loc, msg, type: 'multipart_invalid' }])
  }
  parser.on('field', (name, value, nameCut) => {
    if (nameCut) refuse(`A field name is longer than ${MAX_NAME_BYTES} bytes.`)
    else collect<Part>(parts, name, value)
  })
  parser.on('file', (name, stream, filename, _encoding, mediaType) => {
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', () => refuse('A file ended before it was complete.', ['body', name]))
    stream.on('end', () => {
      if (!filename && chunks.length === 0) return
      collect<Part>(parts, name, { filename: filename ?? '', mediaType, bytes: Buffer.concat(chunks) })
    })
  })
  parser.on('partsLimit', () => refuse(`More than ${MAX_PARTS} parts.`))
  try {
    await drainInto(request, maxBytes, async (chunk) => {
      if (!parser.write(chunk)) await Promise.race([once(parser, 'drain'), finished])
    })
    parser.end()
    await finished
  } catch (error) {
    if (error instanceof ServiceError) throw error
    refuse('The multipart body is malformed or ended early.')
  }
  if (mistake) throw mistake as InvalidInput
  return Object.fromEntries(parts)
}

function open(request: IncomingMessage, maxBytes: number): InstanceType<typeof Busboy> {
  const limits = { parts: MAX_PARTS, fieldNameSize: MAX_NAME_BYTES, fieldSize: maxBytes, headerPairs: 50 }
  try {
    return new Busboy({ headers: request.headers as BusboyHeaders, limits })
  } catch {
    throw new InvalidInput([{ loc: ['body'], msg: 'The multipart body names no boundary.', type: 'multipart_invalid' }])
  }
}
