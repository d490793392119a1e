/** multipart/form-data: text fields as strings, files as Upload, several parts of one name as an array. */
import type { IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { Busboy, type BusboyHeaders } from '@fastify/busboy'
import { InvalidInput, ServiceError } from '../errors.ts'
import type { Upload } from '../plugin/plugin.ts'
import { drainInto } from './body.ts'
import { collect } from './target.ts'

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
