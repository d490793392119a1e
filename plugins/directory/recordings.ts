/** Which recorded files are listings, and how each is read. */
import type { Page } from './listing.ts'
import { readBazaar } from './sources/bazaar.ts'
import { readCard } from './sources/card.ts'
import { readRegistry } from './sources/registry.ts'

export type Read = (payload: unknown, now: number) => Page | null

export interface Reader {
  /** Of the file's name. */
  readonly pattern: RegExp
  readonly sourceOf: (match: RegExpExecArray) => string
  readonly read: Read
}

/** The source is believed in this order. */
export const READERS: readonly Reader[] = [
  { pattern: /^bazaar_([a-z0-9]+)_page\w*\.json$/, sourceOf: (match) => match[1]!, read: readBazaar },
  { pattern: /^x402_discovery_(v\d)\w*\.json$/, sourceOf: (match) => `x402_${match[1]!}`, read: readBazaar },
  { pattern: /^mcp_registry_[\w-]*\d{4}-\d{2}-\d{2}\w*\.json$/, sourceOf: () => 'mcp_registry', read: readRegistry },
  { pattern: /^a2a_.*\.json$/, sourceOf: () => 'agent_cards', read: (payload) => readCard(payload, null) },
]
