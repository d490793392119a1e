import { InvalidInput, type Ask, NotFound } from 'tollgate/plugin'
import { DAY, type Fill, type TradeLedger, UNNAMED_SYMBOL } from '../trade-ledger.ts'
import { plainSymbol, type UploadedBars } from './uploaded-bars.ts'
import { joinDays, type ReferenceSeries } from './bar-series.ts'

/** What the fills of one symbol are checked against. */
export interface Reference {
  readonly series: ReferenceSeries | null
  /** Why there is no series, or why it has no bar for a fill. */
  readonly why: string
  /** Whether the symbol trades on the calendar of the New York Stock Exchange, which is known without bars. */
  readonly isNyse: boolean
}

interface ReferenceFinder {
  /** The bars of a symbol of the ledger, by its index. */
  bySymbol(symbol: number, fills: readonly Fill[]): Promise<Reference>
  /** Daily bars of any symbol, over the time of the ledger. */
  daily(name: string): Promise<ReferenceSeries | null>
}

const OUT_OF_REACH = 'the bars of this service do not cover that time'

const absent = (why: string, isNyse = false): Reference => ({ series: null, why, isNyse })

/**
 * Finds the bars of a symbol: the uploaded ones, otherwise those of the service. Bars of the service are used only if they
 * can be compared with real trades. Throws InvalidInput if the uploaded bars name no symbol and the ledger has several.
 */
export function createReferenceFinder(
  ledger: TradeLedger,
  bars: UploadedBars | null,
  market: MarketBars,
): ReferenceFinder {
  const { symbols, daily, zoned } = ledger
  const unnamed = bars?.series.get(plainSymbol(UNNAMED_SYMBOL))
  if (unnamed && symbols.length > 1) {
    const msg = `The ledger has ${symbols.length} symbols. Add a symbol column to the bars.`
    throw new InvalidInput([{ loc: ['body', 'bars', 'header'], msg, type: 'missing' }])
  }

  function uploaded(name: string): Reference | null {
    const only = bars?.series.size === 1 && name === UNNAMED_SYMBOL ? [...bars.series.values()][0] : undefined
    const series = bars?.series.get(plainSymbol(name)) ?? only ?? unnamed
    if (!series) return null
    const isIntraday = series.interval < DAY
    if (isIntraday && !daily && bars?.zoned !== zoned)
      return absent('only one of the ledger and the bars names a time zone')
    return {
      series: isIntraday && daily ? joinDays(series) : series,
      why: 'the uploaded bars have no bar at that time',
      isNyse: series.isNyse,
    }
  }

  async function own(name: string, fills: readonly Fill[], isDaily: boolean): Promise<Reference> {
    if (name === UNNAMED_SYMBOL) return absent('the ledger names no symbol')
    const listed = market.find(name)
    if (!listed) return absent('there are no reference bars for this symbol')
    const isNyse = listed.session === 'us_equity'
    if (market.unusableReason !== null) return absent(market.unusableReason, isNyse)
    const { from, to } = extent(fills)
    // A time without a zone may not be New York time, but its date is the New York date.
    const series = await market.bars(listed, from, to, isDaily || (isNyse && !zoned))
    return series ? { series, why: OUT_OF_REACH, isNyse } : absent(OUT_OF_REACH, isNyse)
  }

  return {
    async bySymbol(symbol, fills) {
      const name = symbols[symbol] ?? UNNAMED_SYMBOL
      return uploaded(name) ?? own(name, fills, daily)
    },
    async daily(name) {
      const series = bars?.series.get(plainSymbol(name)) ?? (await own(name, ledger.fills, true)).series
      return series?.hasEveryDay ? joinDays(series) : null
    },
  }
}

function extent(fills: readonly Fill[]): { readonly from: number; readonly to: number } {
  let [from, to] = [Infinity, -Infinity]
  for (const { time } of fills) {
    from = Math.min(from, time)
    to = Math.max(to, time)
  }
  return { from, to }
}

/** A symbol of the market product. */
interface Listed {
  readonly symbol: string
  readonly session: '24x7' | 'us_equity'
  readonly intervals: readonly number[]
}

interface MarketBars {
  /** Why the bars cannot be compared with real trades; null if they can. */
  readonly unusableReason: string | null
  find(symbol: string): Listed | null
  /** Bars between two times, epoch milliseconds; null if there are none. */
  bars(listed: Listed, from: number, to: number, isDaily: boolean): Promise<ReferenceSeries | null>
}

const NO_DAYS: ReadonlySet<number> = new Set()

/** The state of a bar that the market product filled in because nothing was traded. */
const FILLED = 1
/** What the market product calls the bars that are the median of several venues. */
const MEDIAN = 'median'

/**
 * Opens the bars of the service, which come from the market product. `unusableReason` says why they cannot be compared
 * with real trades; it is null if they can.
 */
export async function openMarketBars(ask: Ask, unusableReason: string | null): Promise<MarketBars> {
  const { symbols } = await ask('getSymbols')
  const known = new Map<string, Listed>()
  for (const { symbol, aliases, session, intervals } of symbols)
    for (const name of [symbol, ...aliases]) known.set(plainSymbol(name), { symbol, session, intervals })
  return {
    unusableReason,
    find: (symbol) => known.get(plainSymbol(symbol)) ?? null,
    async bars({ symbol, session, intervals }, from, to, isDaily) {
      const interval = isDaily ? DAY / 1000 : (intervals[0] ?? 60)
      const query = {
        symbol,
        from: Math.floor(from / DAY) * (DAY / 1000),
        to: Math.floor(to / 1000) + interval,
        interval,
      }
      const bars = await ask('getBars', { query }).catch((error: unknown) => {
        if (error instanceof NotFound) return null
        throw error
      })
      if (!bars || bars.count === 0) return null
      return {
        time: bars.time.map((open) => open * 1000),
        open: bars.open,
        high: bars.high,
        low: bars.low,
        close: bars.close,
        volume: bars.volume,
        idle: bars.state.map((state) => (state === FILLED ? 1 : 0)),
        split: null,
        interval: interval * 1000,
        hasEveryDay: true,
        blankDays: NO_DAYS,
        isWhole: false,
        isContinuous: session === '24x7',
        isNyse: session === 'us_equity',
        isMedian: bars.venue === MEDIAN,
      }
    },
  }
}
