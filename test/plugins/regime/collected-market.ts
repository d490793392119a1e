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
}

/** Three days of minutes before START are back-filled, two of them classified. */
export function openCollectedMarket({
  urls,
  db,
  now,
  fetch = globalThis.fetch,
}: CollectedOptions): Promise<PluginHost> {
  const symbol = {
    symbol: 'BTC-USD',
    name: 'Bitcoin',
    aliases: [],
    session: '24x7',
    price: 1,
    volatility: 1,
    turnover: 1,
    tick: 0.01,
    venues: { coinbase: 'BTC-USD', kraken: 'XBTUSD', bitstamp: 'btcusd', bitfinex: 'tBTCUSD' },
    live: LIVE,
    backfill: ['coinbase', 'bitstamp', 'bitfinex'],
  }
  const settings = {
    history_start: iso(START - 3 * DAY),
    request_seconds: 2,
    symbols: [symbol],
    venues: Object.fromEntries(LIVE.map((name) => [name, { url: urls[name], per_second: 1000 }])),
  }
  return openPluginHost(
    [
      { plugin: market, settings },
      { plugin: regime, settings: { symbol: 'BTC-USD', since: iso(START - 2 * DAY) } },
    ],
    { dataMode: 'online', now: () => new Date(now()), db, fetch },
  )
}
