/** The digest of an answer: what a receipt says of the answer's bytes, and how the journal finds equal ones. */
import { createHash } from 'node:crypto'

/** Longer answers, in bytes, are digested once: several buyers may get the same buffer, and no buffer changes. */
const LONG = 2_000
const known = new WeakMap<Buffer, Buffer>()

/** SHA-256 of these bytes. */
export function answerDigest(bytes: Buffer): Buffer {
  if (bytes.length <= LONG) return sha256(bytes)
  let digest = known.get(bytes)
  if (!digest) known.set(bytes, (digest = sha256(bytes)))
  return digest
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
