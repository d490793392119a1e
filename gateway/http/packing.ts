/**
 * Text packed with gzip for callers that take it: free answers to GET only. What is paid for stays as it is, since its
 * receipt has the digest of its bytes; so do streams, which must not wait for more.
 */
import { gzipSync } from 'node:zlib'

/** Below this a packet on the wire holds it anyway. */
const LEAST_BYTES = 1_400
/** Packing waits for nobody, so what is larger goes out as it is. */
const MOST_BYTES = 2_000_000
const TEXT = /^(?:text\/|application\/(?:json|xml|linkset\+json|javascript)\b|image\/svg\+xml)/

/** A document is the same bytes for every caller, and packed once. */
const packed = new WeakMap<Buffer, Buffer>()

/** Whether a body of that type and length is worth packing. */
export function isPackable(type: string | number | undefined, { length }: Buffer): boolean {
  return typeof type === 'string' && TEXT.test(type) && length >= LEAST_BYTES && length <= MOST_BYTES
}

export function gzipped(body: Buffer): Buffer {
  const known = packed.get(body) ?? gzipSync(body)
  packed.set(body, known)
  return known
}

/** A packed body has other bytes than the plain one, so they share a weak ETag only (RFC 9110, 8.8.1). */
export function packedHeaders(etag: string | undefined): Readonly<Record<string, string>> {
  const coding = { 'content-encoding': 'gzip' }
  return etag === undefined ? coding : { ...coding, etag: etag.startsWith('W/') ? etag : `W/${etag}` }
}
