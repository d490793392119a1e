/** Buffers that were joined from pieces. What was made of a piece before, its deflated form say, can be used again. */

const piecesByBytes = new WeakMap<Buffer, readonly Buffer[]>()

/** Joins pieces to one buffer. Neither it nor a piece may be changed afterwards. */
export function joinPieces(pieces: readonly Buffer[]): Buffer {
  const [first, ...more] = pieces
  if (first && more.length === 0) return first
  const bytes = Buffer.concat(pieces)
  piecesByBytes.set(bytes, pieces)
  return bytes
}

/** The pieces that a buffer was joined from, in order; the buffer itself if it was not. */
export function piecesOf(bytes: Buffer): readonly Buffer[] {
  return piecesByBytes.get(bytes) ?? [bytes]
}
