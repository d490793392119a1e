/**
 * Counts the small chunks of request bodies, and joins them. A chunk costs the same whether it has one byte or thousands,
 * and a caller can send a million of one byte each second. So they count like requests, and a connection that brings many
 * is read once in each turn of the event loop: else Node takes up to 2 MB at a time.
 */
import { IncomingMessage } from 'node:http'
import type { ServiceError } from '../errors.ts'
import { skipBody } from './http-parser.ts'

/** A chunk below this size is small. */
const SMALL_BYTES = 512
/** So many small chunks count as one request. */
const CHUNKS_PER_REQUEST = 256
/** The first small chunks of a request are passed on as they come: most bodies have one. */
const FIRST_CHUNKS = 64
/** Later chunks are joined to pieces of up to this size. */
const PIECE_BYTES = 4_096

/** Why no more of a body is read. */
const refusals = new WeakMap<IncomingMessage, ServiceError>()

/** Returns why no more of the body of a request is read, or null if it is. The request emits `refused` when that changes. */
export const refusalOf = (request: IncomingMessage): ServiceError | null => refusals.get(request) ?? null

/**
 * Creates the class of a server's requests.
 * @param count called for each 256 small chunks of a request. It throws ServiceError if its caller has sent too many
 */
export function createChunkLimit(count: (request: IncomingMessage) => void): typeof IncomingMessage {
  return class extends IncomingMessage {
    #small = 0
    /** Small chunks that were not passed on, and their size. */
    #piece: Buffer | null = null
    #size = 0

    override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
      if (chunk === null || chunk.length >= SMALL_BYTES) {
        this.#passOn()
        return super.push(chunk, encoding)
      }
      this.#small += 1
      if (this.#small <= FIRST_CHUNKS) return super.push(chunk, encoding)
      if (this.#small % CHUNKS_PER_REQUEST === 0) this.#count()
      if (this.#size + chunk.length > PIECE_BYTES) this.#passOn()
      // Not in the next tick, which comes after each chunk.
      if (this.#piece === null) setImmediate(() => this.#passOn())
      this.#piece ??= Buffer.allocUnsafe(PIECE_BYTES)
      this.#size += chunk.copy(this.#piece, this.#size)
      // Node reads on once the piece was passed on and read.
      return false
    }

    #passOn(): void {
      if (this.#piece === null) return
      const joined = this.#piece.subarray(0, this.#size)
      this.#piece = null
      this.#size = 0
      super.push(joined)
    }

    #count(): void {
      try {
        count(this)
      } catch (error) {
        refusals.set(this, error as ServiceError)
        skipBody(this.socket)
        this.emit('refused', error)
      }
    }
  }
}
