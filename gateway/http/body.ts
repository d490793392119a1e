/**
 * Request bodies by media type, read only when `serve` asks and never beyond the operation's limit. Whatever the wire
 * form, handlers meet one shape: JSON `{"file": "text"}`, a multipart part named `file` and a raw text/csv body all
 * arrive as `{ file }`, the last two as an Upload.
 */
import type { IncomingMessage } from 'node:http'
import type { Operation } from '../plugin/catalog.ts'
import { InvalidInput, ServiceError } from '../errors.ts'
import type { Upload } from '../plugin/plugin.ts'
import { decodeText, parseJson } from './json.ts'
import { readMultipart } from './multipart.ts'
import { parsePairs } from './target.ts'

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
