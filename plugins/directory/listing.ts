/** A listing: one service as one source describes it, in one format for all sources. */
import { createHash } from 'node:crypto'

export type Kind = 'http_endpoint' | 'mcp_server' | 'mcp_tool' | 'a2a_agent'
export type Protocol = 'x402' | 'mcp' | 'a2a'

export interface Price {
  readonly scheme: string
  /** CAIP-2, for instance "eip155:8453". An unknown name is kept as it is. */
  readonly network: string
  readonly asset: string
  readonly asset_symbol: string | null
  readonly amount_atomic: string
  /** Only for stablecoins whose contract is known. */
  readonly amount_usd: number | null
  readonly pay_to: string
}

export interface Package {
  readonly registry: string
  readonly identifier: string
  readonly version: string | null
}

export interface Listing {
  /** Canonical URL; null for an MCP server that can only be installed. */
  readonly url: string | null
  /** Name of the tool if one URL has several, or of the server if there is no URL. */
  readonly tool: string | null
  readonly isTemplate: boolean
  readonly kind: Kind
  readonly name: string | null
  readonly description: string | null
  readonly provider: string | null
  readonly tags: readonly string[]
  readonly protocols: readonly Protocol[]
  readonly x402Version: number | null
  readonly prices: readonly Price[]
  readonly hasSchema: boolean
  readonly packages: readonly Package[]
  readonly version: string | null
  /** Last change according to the source, epoch seconds. Shown, but never used for sorting. */
  readonly updated: number | null
  /** As claimed by the source. */
  readonly calls30d: number | null
  readonly payers30d: number | null
  /** Agent of an ERC-8004 registry: "eip155:8453:0x8004…:22". */
  readonly erc8004: string | null
  /** True if the host of the URL published the listing itself. */
  readonly isOwn: boolean
}

/** One page of a source. */
export interface Page {
  readonly listings: readonly Listing[]
  /** Number of skipped rows by reason. */
  readonly dropped: Readonly<Record<string, number>>
  /** Rows of the page, including skipped ones. */
  readonly rows: number
}

/** A listing whose source states nothing but its address. Parsers spread it and add what they find. */
export const EMPTY: Omit<Listing, 'url' | 'kind' | 'protocols'> = {
  tool: null,
  isTemplate: false,
  name: null,
  description: null,
  provider: null,
  tags: [],
  x402Version: null,
  prices: [],
  hasSchema: false,
  packages: [],
  version: null,
  updated: null,
  calls30d: null,
  payers30d: null,
  erc8004: null,
  isOwn: false,
}

/**
 * The id of a service: SHA-256 of its canonical URL, with the tool if one URL has several.
 *
 * @example idOf({ url: 'https://api.example.com/premium-data', tool: null }) // "agt_fd318812cd581a1908e2c24a4124f32d"
 */
export function idOf({ url, tool }: Pick<Listing, 'url' | 'tool'>): string {
  const text = url === null ? `mcp:${tool}` : tool === null ? url : `${url} ${tool}`
  return `agt_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

/** Collects the listings of a page. */
export function createPage() {
  const listings: Listing[] = []
  const dropped: Record<string, number> = {}
  return {
    listings,
    dropped,
    add: (listing: Listing): void => void listings.push(listing),
    drop(reason: string): void {
      dropped[reason] = (dropped[reason] ?? 0) + 1
    },
    end: (rows: number): Page => ({ listings, dropped, rows }),
  }
}

/** A source did not answer as documented. The message is shown with the source's id. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
}
