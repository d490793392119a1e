/** Long answers as SQLite stores them: deflated, because its log and its file each take every byte again. */
import { promisify } from 'node:util'
import { constants, deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'

export interface PackedAnswer {
  readonly body: Buffer
  /** Bytes of the answer if `body` is deflated, null if it is the answer itself. */
  readonly length: number | null
}

/** Fast, and a page of history becomes a tenth as long. The small window needs 64 kB of memory for each answer, not 256. */
const OPTIONS = { level: constants.Z_BEST_SPEED, windowBits: 13, memLevel: 6 }
/** Up to this many bytes take less than 0.3 ms. Longer answers are deflated off the event loop, which costs more in all. */
const MAX_ON_LOOP = 256 * 1024
/** Bytes that are compressed already stay as they are. */
const LEAST_GAIN = 0.9

const deflateOffLoop = promisify(deflateRaw)

/** Deflates an answer if that makes it shorter. */
export async function packAnswer(bytes: Buffer): Promise<PackedAnswer> {
  const deflated =
    bytes.length <= MAX_ON_LOOP
      ? deflateRawSync(bytes, OPTIONS)
      : await (deflateOffLoop as (bytes: Buffer, options: object) => Promise<Buffer>)(bytes, OPTIONS)
  return deflated.length < bytes.length * LEAST_GAIN
    ? { body: deflated, length: bytes.length }
    : { body: bytes, length: null }
}

/** The bytes of a stored answer. Throws if they are damaged. */
export function unpackAnswer({ body, length }: PackedAnswer): Buffer {
  return length === null ? body : inflateRawSync(body, { maxOutputLength: length })
}
