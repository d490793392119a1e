/**
 * Long answers as SQLite stores them: deflated, because its log and its file each take every byte again. A page is often
 * joined from pieces that other pages have too; such a piece is deflated once.
 *
 * Source: RFC 1951. Deflated pieces follow each other as blocks of one stream, each up to a byte boundary (Z_SYNC_FLUSH).
 */
import { promisify } from 'node:util'
import { constants, deflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'
import { AnswerBody } from '../../plugin/answer-body.ts'

interface PackedAnswer {
  readonly body: Buffer
  /** Bytes of the answer if `body` is deflated, null if it is the answer itself. */
  readonly length: number | null
}

/** Fast, and a page of history becomes a tenth as long. The small window needs 64 kB of memory for each answer, not 256. */
const OPTIONS = {
  level: constants.Z_BEST_SPEED,
  windowBits: 13,
  memLevel: 6,
  finishFlush: constants.Z_SYNC_FLUSH,
} as const
/** Up to this many bytes take less than 0.3 ms. Longer answers are deflated off the event loop, which costs more in all. */
const MAX_ON_LOOP = 256 * 1024
/** Bytes that are compressed already stay as they are. */
const LEAST_GAIN = 0.9
/** A part of an answer that is shorter costs less to store than to deflate. */
const LEAST_DEFLATED = 4_096
/** So many pieces of one answer, at most, are deflated for later answers, which takes the event loop longer. */
const MAX_PIECES = 20
/** The empty block that ends a stream. */
const END = Buffer.of(0x03, 0x00)

const deflateOffLoop = promisify(deflateRaw) as (bytes: Buffer, options: typeof OPTIONS) => Promise<Buffer>
/** Deflated pieces; null for a piece that only one answer has had. They take a tenth of the memory of the pieces, and go with them. */
const deflatedPieces = new WeakMap<Buffer, Buffer | null>()

/** Deflates an answer if that makes it shorter. */
export async function packAnswer(answer: AnswerBody): Promise<PackedAnswer> {
  const blocks: Buffer[] = []
  let deflatedNow = 0
  let run: Buffer[] = []
  const endRun = async (): Promise<void> => {
    if (run.length > 0) blocks.push(...(await blocksOf(new AnswerBody(run).bytes, answer.length)))
    run = []
  }
  for (const piece of answer.pieces) {
    const isLong = piece.length >= LEAST_DEFLATED && piece.length < answer.length
    let deflated = isLong ? deflatedPieces.get(piece) : undefined
    if (isLong && deflated === undefined) deflatedPieces.set(piece, null)
    if (deflated === null && deflatedNow < MAX_PIECES) {
      deflatedNow += 1
      deflatedPieces.set(piece, (deflated = deflateRawSync(piece, OPTIONS)))
    }
    if (deflated) {
      await endRun()
      blocks.push(deflated)
    } else run.push(piece)
  }
  await endRun()
  const body = Buffer.concat([...blocks, END])
  const isShorter = body.length < answer.length * LEAST_GAIN
  return isShorter ? { body, length: answer.length } : { body: answer.bytes, length: null }
}

/** A stretch of an answer of `length` bytes as blocks of a stream: stored if it is a small part, deflated otherwise. */
async function blocksOf(run: Buffer, length: number): Promise<readonly Buffer[]> {
  if (run.length > MAX_ON_LOOP) return [await deflateOffLoop(run, OPTIONS)]
  if (run.length >= LEAST_DEFLATED || run.length === length) return [deflateRawSync(run, OPTIONS)]
  const head = Buffer.alloc(5)
  head.writeUInt16LE(run.length, 1)
  head.writeUInt16LE(run.length ^ 0xffff, 3)
  return [head, run]
}

/** The bytes of a stored answer. Throws if they are damaged. */
export function unpackAnswer({ body, length }: PackedAnswer): Buffer {
  return length === null ? body : inflateRawSync(body, { maxOutputLength: length })
}
