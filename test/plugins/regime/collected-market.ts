/** The settings and the plugins of a market that is collected from scripted venues, and its regime. */
import type { OpenDatabase } from '../../../gateway/stores/database.ts'
import market from '../../../plugins/market/index.ts'
import regime from '../../../plugins/regime/index.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'

/** When the scripted venues begin. */
export const START = Date.UTC(2026, 2, 4, 12, 0, 30)
const DAY = 86_400_000
const LIVE = ['coinbase', 'kraken', 'bitstamp', 'bitfinex'] as const
const iso = (at: number): string => new Date(at).toISOString()

export interface CollectedOptions {
  /** Address of each venue. */
  readonly urls: Readonly<Record<(typeof LIVE)[number], string>>
  readonly db: OpenDatabase
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly fetch?: typeof fetch
  /** The first one is that of calls without a symbol. Default: BTC-USD alone. */
  readonly symbols?: readonly string[]
  /** By how many minutes the back-fill begins earlier. */
  readonly earlierMinutes?: number
}

/** How Kraken names bases that it calls otherwise. */
const KRAKEN: Readonly<Record<string, string>> = { BTC: 'XBT', DOGE: 'XDG' }

function symbolOf(symbol: string) {
  const base = symbol.split('-')[0]!
  return {
    symbol,
    name: base,
    aliases: [base, `${base}USDT`],
    session: '24x7',
    tick: 0.01,
    venues: {
      coinbase: symbol,
      kraken: `${KRAKEN[base] ?? base}USD`,
      bitstamp: `${base.toLowerCase()}usd`,
      bitfinex: `t${base}USD`,
    },
    live: LIVE,
    backfill: ['coinbase', 'bitstamp', 'bitfinex'],
  }
}

/** Three days of minutes before START are back-filled, unless it is told to begin earlier; two of them are classified. */
export function openCollectedMarket({
  urls,
  db,
  now,
  fetch = globalThis.fetch,
  symbols = ['BTC-USD'],
  earlierMinutes = 0,
}: CollectedOptions): Promise<PluginHost> {
  const settings = {
    history_start: iso(START - 3 * DAY - earlierMinutes * 60_000),
    request_seconds: 2,
    symbols: symbols.map(symbolOf),
    venues: Object.fromEntries(LIVE.map((name) => [name, { url: urls[name], per_second: 1000 }])),
  }
  return openPluginHost(
    [
      { plugin: market, settings },
      { plugin: regime, settings: { symbol: symbols[0], symbols: symbols.slice(1), since: iso(START - 2 * DAY) } },
    ],
    { dataMode: 'online', now: () => new Date(now()), db, fetch },
  )
}
