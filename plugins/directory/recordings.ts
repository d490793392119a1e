/** Which recorded files are listings, and how each is read. */
import { canonical } from './address.ts'
import type { Page } from './listing.ts'
import { listOf, rowOf } from './reading.ts'
import type { SourceKind } from './settings.ts'
import { readBazaar } from './sources/bazaar.ts'
import { readCard } from './sources/card.ts'
import { readOrigin } from './sources/origin.ts'
import { readRegistration } from './sources/registration.ts'
import { readRegistry } from './sources/registry.ts'

export type Read = (payload: unknown, now: number) => Page | null

export interface Reader {
  /** Of the file's name. */
  readonly pattern: RegExp
  readonly sourceOf: (match: RegExpExecArray) => string
  readonly read: Read
  /** Read only where a source of this kind is switched on. */
  readonly onlyFor?: SourceKind
}

/** The source is believed in this order. */
export const READERS: readonly Reader[] = [
  { pattern: /^bazaar[_-]([a-z0-9]+).*\.json$/, sourceOf: (match) => match[1]!, read: readBazaar },
  { pattern: /^x402_discovery_(v\d)\w*\.json$/, sourceOf: (match) => `x402_${match[1]!}`, read: readBazaar },
  { pattern: /^mcp_registry.*\.json$/, sourceOf: () => 'mcp_registry', read: readRegistry },
  { pattern: /^well-known_x402.*\.json$/, sourceOf: () => 'origins', read: ownDocument },
  { pattern: /^(a2a_|agent-card).*\.json$/, sourceOf: () => 'agent_cards', read: (payload) => readCard(payload, null) },
  {
    pattern: /^erc8004_.*\.json$/,
    sourceOf: () => 'erc8004',
    read: (payload) => readRegistration(payload),
    onlyFor: 'erc8004',
  },
]

/** A document that an origin serves of itself speaks for the origin of its first address. */
function ownDocument(payload: unknown): Page | null {
  const [first] = listOf(rowOf(payload)['resources'])
  const address = canonical(first)
  return readOrigin(payload, address.reason === null ? new URL(address.url).origin : '')
}
