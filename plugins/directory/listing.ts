/** What one source says of one service, in one form for all sources. */
import { createHash } from 'node:crypto'

export type Kind = 'http_endpoint' | 'mcp_server' | 'mcp_tool' | 'a2a_agent'
export type Protocol = 'x402' | 'mcp' | 'a2a'

export interface Price {
  readonly scheme: string
  /** CAIP-2, e.g. "eip155:8453"; a name that is not known as it came. */
  readonly network: string
  readonly asset: string
  readonly asset_symbol: string | null
  readonly amount_atomic: string
  /** Only of stablecoins that are known by contract. */
  readonly amount_usd: number | null
  readonly pay_to: string
}

export interface Package {
  readonly registry: string
  readonly identifier: string
  readonly version: string | null
}

export interface Listing {
  /** Canonical; null for an MCP server that is only installed. */
  readonly url: string | null
  /** Name of the tool, where one address holds many; name of the server, where there is no address. */
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
  /** The source's own time of the last change, epoch seconds. Shown, never sorted by. */
  readonly updated: number | null
  /** As the source claims. */
  readonly calls30d: number | null
  readonly payers30d: number | null
  /** Agent of an ERC-8004 registry: "eip155:8453:0x8004…:22". */
  readonly erc8004: string | null
  /** True where the host of the address says so itself. */
  readonly isOwn: boolean
}

/** What a page of a source holds. */
export interface Page {
  readonly listings: readonly Listing[]
  /** Rows left out, by reason. */
  readonly dropped: Readonly<Record<string, number>>
  /** Rows of the page, those left out included. */
  readonly rows: number
}

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
 * Identity of a service: SHA-256 of its canonical URL, with the tool where one URL holds many.
 *
 * @example idOf({ url: 'https://api.example.com/premium-data', tool: null }) // "agt_fd318812cd581a1908e2c24a4124f32d"
 */
export function idOf({ url, tool }: Pick<Listing, 'url' | 'tool'>): string {
  const text = url === null ? `mcp:${tool}` : tool === null ? url : `${url} ${tool}`
  return `agt_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

/** Collects the rows of a page. */
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

/** A source answered with something else than it should; the message is told under its name. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
}
