import { createHash } from 'node:crypto'

/**
 * The body of an answer: bytes in pieces. Who sends, digests or stores a body need not join them, and a piece may belong to
 * many bodies: what was made of it before, its deflated form say, can be used again. No piece may be changed.
 */
export class AnswerBody {
  /** In order. */
  readonly pieces: readonly Buffer[]
  /** In bytes. */
  readonly length: number
  #bytes: Buffer | null = null
  #digest: Buffer | null = null

  constructor(pieces: readonly Buffer[]) {
    this.pieces = pieces
    let length = 0
    for (const piece of pieces) length += piece.length
    this.length = length
  }

  /** The body with these bytes, or with this text in UTF-8. */
  static of(content: Buffer | string): AnswerBody {
    return new AnswerBody([typeof content === 'string' ? Buffer.from(content) : content])
  }

  static readonly empty = new AnswerBody([])

  /** All bytes. The pieces are joined when this is first read. */
  get bytes(): Buffer {
    return (this.#bytes ??= this.pieces.length === 1 ? (this.pieces[0] as Buffer) : Buffer.concat(this.pieces))
  }

  /** The SHA-256 of the bytes: what a receipt says of them, and how the journal finds equal ones. */
  get digest(): Buffer {
    if (!this.#digest) {
      const hash = createHash('sha256')
      for (const piece of this.pieces) hash.update(piece)
      this.#digest = hash.digest()
    }
    return this.#digest
  }

  /** The bytes as text in UTF-8. */
  toString(): string {
    return this.bytes.toString('utf8')
  }
}
