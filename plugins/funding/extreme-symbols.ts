/**
 * The symbols whose settled rates are kept because their rates are worth most: those that are extreme now, and those that were
 * within 90 days. They are few, and they outlast a restart.
 */
import type { Database, Migration } from 'tollgate/plugin'
import { isDollar } from './contract-names.ts'
import { type FundingRate, isAtBound } from './funding-rate.ts'
import { rateOver } from './rate-arithmetic.ts'

/** A rate of this size over eight hours is extreme: a hundred times the usual one. So is every rate at its bound. */
const EXTREME_8H = 0.01
/** How long a symbol is kept after its last extreme rate. */
const KEPT_SECONDS = 90 * 86_400
/** A symbol that a query can name. */
const NAME = /^[\p{L}\p{N}_.:-]{1,50}$/u

/** The table `funding_extremes`. */
export const extremeSymbolsMigration: Migration = async (db) => {
  await db.schema.createTable('funding_extremes', (table) => {
    table.text('symbol').primary()
    // When a rate was last extreme, epoch seconds, and its size over eight hours.
    table.bigInteger('last_at').notNullable()
    table.double('rate_8h').notNullable()
  })
}

interface ExtremeSymbol {
  readonly symbol: string
  readonly last_at: number
  readonly rate_8h: number
}

/** The symbols that are kept. */
export async function extremeSymbols(db: Database): Promise<readonly string[]> {
  return (await db<ExtremeSymbol>('funding_extremes').select('symbol')).map(({ symbol }) => symbol)
}

/**
 * Adds the symbols that are extreme at `now` (epoch seconds) and forgets those that no longer were for 90 days. At most `most`
 * are kept: those that were extreme last and, of these, those with the largest rates.
 */
export async function noteExtremes(
  db: Database,
  rates: readonly FundingRate[],
  { now, most }: { readonly now: number; readonly most: number },
): Promise<void> {
  const known = await db<ExtremeSymbol>('funding_extremes')
  const found = new Map(known.filter((one) => one.last_at > now - KEPT_SECONDS).map((one) => [one.symbol, one]))
  for (const rate of rates) {
    const { symbol } = rate
    if (!isExtreme(rate) || !NAME.test(symbol)) continue
    const other = found.get(symbol)
    const largest = Math.max(sizeOf(rate), other?.last_at === now ? other.rate_8h : 0)
    found.set(symbol, { symbol, last_at: now, rate_8h: largest })
  }
  const kept = [...found.values()]
    .toSorted((a, b) => b.last_at - a.last_at || b.rate_8h - a.rate_8h || a.symbol.localeCompare(b.symbol))
    .slice(0, most)
  const dropped = known.map(({ symbol }) => symbol).filter((symbol) => !kept.some((one) => one.symbol === symbol))
  await db.transaction(async (tx) => {
    await tx('funding_extremes').whereIn('symbol', dropped).delete()
    if (kept.length > 0) await tx('funding_extremes').insert(kept).onConflict('symbol').merge()
  })
}

const sizeOf = ({ rate, intervalHours }: FundingRate): number => Math.abs(rateOver(Number(rate), intervalHours, 8))

const isExtreme = (rate: FundingRate): boolean =>
  isDollar(rate.quote) && (sizeOf(rate) >= EXTREME_8H || isAtBound(rate))
