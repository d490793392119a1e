/** The symbols plugin: which symbols are covered, since when, what is missing, and how their venues answer. */
import { setImmediate } from 'node:timers/promises'
import { type Call, definePlugin } from 'tollgate/plugin'
import type { CoveredMarket, ListedSymbol, MarketStatus, SymbolList } from '../../schemas/types.d.ts'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { roundTo } from '../lib/quant/rounding.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'

/** A newest bar or regime that is older makes a symbol late: the regime is not sold then. */
const LATE_SECONDS = 300
const LEAST_VENUES = 2
const REGIME = 'getRegimeCoverage'

export default definePlugin({
  name: 'symbols',
  setup(context) {
    const { dataMode } = dataSettings(context)

    async function listSymbols({ ask, asOf, catalog }: Call): Promise<SymbolList> {
      const { symbols } = await ask('getSymbols')
      const regimes = catalog.operations.has(REGIME) ? (await ask(REGIME)).symbols : []
      const now = Math.floor(asOf.getTime() / 1000)
      const listed: ListedSymbol[] = []
      // One after the other: to read the first bars of a sample takes a moment, in which other calls come through.
      for (const { symbol, name, aliases, session } of symbols) {
        const status = await ask('getMarketStatus', { query: { symbol } })
        const bars = barsOf(status, now)
        const regime = regimes.find((one) => one.symbol === symbol)
        listed.push({
          symbol,
          name,
          aliases,
          session,
          status: statusOf(status, bars, regime, now),
          bars,
          venues: venuesOf(status),
          regime: regime ? regimeOf(regime) : null,
        })
        await setImmediate()
      }
      return {
        as_of: formatSeconds(now),
        data_mode: dataMode,
        count: symbols.length,
        symbols: listed,
      }
    }

    return { handlers: { listSymbols } }
  },
})

function barsOf(
  { series, collected_from: from, missing_minutes: missing }: MarketStatus,
  now: number,
): ListedSymbol['bars'] {
  const finest = series.toSorted((a, b) => a.interval_seconds - b.interval_seconds)[0]
  const first = finest?.first ?? null
  const newest = finest?.last == null ? null : finest.last + finest.interval_seconds
  const minutes = from === undefined ? 0 : Math.floor((now - from) / 60)
  const without = missing ? missing.to_fetch + missing.undecided + missing.given_up : 0
  return {
    interval_seconds: finest?.interval_seconds ?? null,
    since: first === null ? null : formatSeconds(first),
    newest: newest === null ? null : formatSeconds(newest),
    age_seconds: newest === null ? null : Math.max(0, now - newest),
    coverage: minutes > 0 ? roundTo(Math.max(0, 1 - without / minutes), 4) : null,
    missing_minutes: missing ?? null,
  }
}

function statusOf(
  { venues, ready }: MarketStatus,
  { age_seconds: age }: ListedSymbol['bars'],
  regime: CoveredMarket | undefined,
  now: number,
): ListedSymbol['status'] {
  if (age === null) return ready ? 'down' : 'filling'
  // Made-up and recorded bars have no venues that could be late.
  if (!venues) return 'ok'
  if (venues.filter(({ live, failures }) => live && failures === 0).length < LEAST_VENUES) return 'down'
  if (age > LATE_SECONDS) return 'late'
  if (!ready || regime?.complete === false) return 'filling'
  return regime?.newest && now - Date.parse(regime.newest) / 1000 > LATE_SECONDS ? 'late' : 'ok'
}

const regimeOf = ({ symbol: _, ...coverage }: CoveredMarket): ListedSymbol['regime'] => coverage

function venuesOf({ venues = [] }: MarketStatus): ListedSymbol['venues'] {
  return venues.map(({ venue, live, backfill, failures, reason, retry_at: retryAt }) => ({
    venue,
    live,
    backfill,
    answers: failures === 0,
    reason,
    asked_again_at: retryAt === null ? null : formatSeconds(retryAt),
  }))
}
