/**
 * Counts the small chunks of request bodies. A chunk costs the same whether it has one byte or thousands, and a caller can
 * send a million of one byte each second. So they count like requests.
 */
import { IncomingMessage } from 'node:http'
import type { ServiceError } from '../errors.ts'
import { skipBody } from './http-parser.ts'

/** A chunk below this size is small. */
const SMALL_BYTES = 512
/** So many small chunks count as one request. */
const CHUNKS_PER_REQUEST = 256

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

    override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
      if (chunk !== null && chunk.length < SMALL_BYTES) {
        this.#small += 1
        if (this.#small % CHUNKS_PER_REQUEST === 0) this.#count()
      }
      return super.push(chunk, encoding)
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
