/**
 * Reads the order books that a gateway has kept, and the bars around them, and calibrates the impact of each symbol and the
 * ranges of its venues.
 */
import type { Database } from 'tollgate/plugin'
import { barFigures } from '../../../plugins/cost/bar-figures.ts'
import { type ErrorRange, SIZES_USD, WalkErrors } from '../../../plugins/cost/walk-errors.ts'
import { pairsOf } from '../../../plugins/lib/quant/order-book.ts'
import { calibrateImpact, type ImpactCalibration, type MarketScale } from './impact-calibration.ts'
import { createBarStore, type BarStore, type Series } from '../../../plugins/market/bar-store.ts'
import { KeptBooks } from '../../../plugins/market/order-books/kept-books.ts'
import type { BookSnapshot } from '../../../plugins/market/order-books/order-book-source.ts'

const DAY = 86_400
const DAY_MINUTES = 1440
/** Volatility and turnover are those of the ten days before the day of a book, as `estimate` would have used them. */
const SCALE_DAYS = 10
/** Books that are read at once. */
const PAGE = 1000

export interface SymbolCalibration {
  readonly symbol: string
  /** Kept books, and when the first and the last was taken, epoch seconds. */
  readonly kept: number
  readonly from: number
  readonly to: number
  /** Null if there are too few books or bars. */
  readonly calibration: ImpactCalibration | null
  readonly ranges: readonly VenueRange[]
}

/** The range of one size and side that estimates with books of a venue have, as learnt from all that are kept. */
export interface VenueRange extends ErrorRange {
  readonly venue: string
  readonly side: 'buy' | 'sell'
  readonly usd: number
}

/** Calibrates every symbol with published minutes and kept books. */
export async function calibrateKeptBooks(db: Database): Promise<SymbolCalibration[]> {
  const store = createBarStore(db)
  const books = new KeptBooks(db)
  const found: SymbolCalibration[] = []
  for (const series of await store.allSeries()) {
    if (series.interval_seconds !== 60 || found.some(({ symbol }) => symbol === series.symbol)) continue
    const kept = await allOf(books, series.symbol)
    if (kept.length === 0) continue
    const days = new Set(kept.map(({ time }) => dayOf(time)))
    const scales = new Map<number, MarketScale | null>()
    for (const day of days) scales.set(day, await scaleOf(store, series, day))
    found.push({
      symbol: series.symbol,
      kept: kept.length,
      from: kept[0]!.time,
      to: kept.at(-1)!.time,
      calibration: calibrateImpact(kept, (time) => scales.get(dayOf(time)) ?? null),
      ranges: rangesOf(kept),
    })
  }
  return found
}

function rangesOf(books: readonly BookSnapshot[]): VenueRange[] {
  return [...new Set(books.map(({ venue }) => venue))].flatMap((venue) => {
    const errors = new WalkErrors()
    for (const pair of pairsOf(books, venue)) errors.learn(pair)
    return (['buy', 'sell'] as const).flatMap((side) =>
      SIZES_USD.flatMap((usd) => {
        const range = errors.at(side, usd)
        return range ? [{ venue, side, usd, ...range }] : []
      }),
    )
  })
}

const dayOf = (time: number): number => Math.floor(time / DAY) * DAY

async function allOf(books: KeptBooks, symbol: string): Promise<BookSnapshot[]> {
  const all: BookSnapshot[] = []
  for (;;) {
    const from = all.length === 0 ? 0 : all.at(-1)!.time + 1
    const page = await books.read(symbol, { from, to: Number.MAX_SAFE_INTEGER, limit: PAGE })
    all.push(...page)
    if (page.length < PAGE) return all
  }
}

async function scaleOf(store: BarStore, series: Series, day: number): Promise<MarketScale | null> {
  const bars = await store.read(series, day - SCALE_DAYS * DAY, day, day)
  const { symbol, venue, interval_seconds } = series
  const figures = barFigures({ symbol, venue, interval_seconds, ...bars }, DAY_MINUTES)
  if (figures?.sigmaDaily == null || figures.advUsd === null) return null
  return { sigmaDaily: figures.sigmaDaily, advUsd: figures.advUsd }
}
