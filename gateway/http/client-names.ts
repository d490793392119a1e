/** The names by which plugins tell clients apart. No address leaves the gateway or reaches a table. */
import { createHmac, hkdfSync } from 'node:crypto'
import type { StatementSigner } from '../tokens/statement-signer.ts'
import { placeOf } from './caller-address.ts'

/** Returns the name of the client at an address: the same for one IPv4 address, or for one IPv6 /64. */
export type NameClient = (address: string) => string

/** 128 bits in base64url. */
const NAME_LENGTH = 22

/**
 * Creates the function that names clients. The addresses of the Internet are few enough to try them all, so only a keyed
 * hash hides them. Its key is derived from the first key that signs offers, the same one in every process.
 */
export function createNameClient({ offerKeys: [key] }: Pick<StatementSigner, 'offerKeys'>): NameClient {
  const secret = Buffer.from(hkdfSync('sha256', Buffer.from(key?.d as string, 'base64url'), '', 'client', 32))
  return (address) => createHmac('sha256', secret).update(placeOf(address)).digest('base64url').slice(0, NAME_LENGTH)
}
