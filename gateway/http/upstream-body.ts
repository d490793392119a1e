/** The body of a request that an upstream answers: read once, decoded for the check, and kept as it came. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { Sent } from '../editions/upstream-request.ts'
import { type BodyRules, readBody, readBytes } from './body.ts'

/** Throws ServiceError body_too_large (413), media_unsupported (415) or InvalidInput (422), as `readBody` does. */
export async function readWhole(
  request: IncomingMessage,
  rules: BodyRules,
): Promise<{ readonly body: unknown; readonly sent: Sent | null }> {
  if (rules.bodyMedia.length === 0) return { body: undefined, sent: null }
  const bytes = await readBytes(request, rules.maxBytes)
  const { 'transfer-encoding': _, ...headers } = request.headers
  const length = { 'content-length': String(bytes.length) }
  const copy = Object.assign(Readable.from([bytes]), { headers: { ...headers, ...length } })
  const body = await readBody(copy as unknown as IncomingMessage, rules)
  const type = headers['content-type'] ?? rules.bodyMedia[0] ?? ''
  return { body, sent: bytes.length === 0 ? null : { type, bytes } }
}
