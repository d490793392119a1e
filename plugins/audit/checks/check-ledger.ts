import type { Ask } from 'tollgate/plugin'
import type { Findings } from '../findings.ts'
import { spanOf } from '../figures/performance-figures.ts'
import { DAY, type TradeLedger, YEAR } from '../trade-ledger.ts'
import { createReferenceFinder, openMarketBars } from '../reference/reference-bars.ts'
import type { PortfolioMarker } from '../figures/portfolio-days.ts'
import type { ReferenceSeries } from '../reference/bar-series.ts'
import type { UploadedBars } from '../reference/uploaded-bars.ts'
import { FillChecker } from './fill-checks.ts'
import { createBiasDetector, type Flag, MIN_FILLS } from './bias-flags.ts'
import { checkStatedProfits } from './profit-check.ts'
import { checkSplits } from './split-check.ts'
import { type Check, createCheckCoverage } from './check-coverage.ts'

export interface CheckedLedger {
  readonly fills: number
  readonly checked: number
  readonly notChecked: number
  /** Fills checked against bars or, without bars, against the calendar. */
  readonly judged: number
  /** Fills that could not have happened. */
  readonly impossible: number
  readonly checks: readonly Check[]
  readonly flags: readonly Flag[]
  readonly reference: 'uploaded' | 'market' | 'none'
  readonly warnings: readonly string[]
}

interface CheckParts {
  readonly ledger: TradeLedger
  readonly bars: UploadedBars | null
  readonly findings: Findings
  readonly ask: Ask
  /** Why the bars of the service cannot be compared with real trades; null if they can. */
  readonly unusableReason: string | null
  /** Takes the bars of each symbol to mark its positions; null if they are not marked. */
  readonly marker: PortfolioMarker | null
  /** The symbol of the request to compare with. */
  readonly benchmark: string | null
}

/** A symbol whose bars end this many days before the ledger ends was delisted. */
const DELISTED_DAYS = 30

/** Checks the ledger against reference bars, one symbol at a time, so that memory holds the bars of one symbol only. */
export async function checkLedger(parts: CheckParts): Promise<CheckedLedger> {
  const { ledger, bars, findings, ask, unusableReason, marker } = parts
  const coverage = createCheckCoverage()
  const bias = createBiasDetector()
  const checker = new FillChecker({ ledger, findings, coverage, bias })
  const find = createReferenceFinder(ledger, bars, await openMarketBars(ask, unusableReason))
  const fills = grouped(ledger.fills, ledger.symbols.length)
  const trades = grouped(ledger.trades, ledger.symbols.length)
  let source: CheckedLedger['reference'] = 'none'
  let delisted = 0
  for (const [symbol, fillsOfSymbol] of fills.entries()) {
    if (fillsOfSymbol.length === 0) continue
    const reference = await find.bySymbol(symbol, fillsOfSymbol)
    marker?.add(symbol, fillsOfSymbol, reference)
    if (reference.series && source !== 'uploaded') source = bars ? 'uploaded' : 'market'
    for (const fill of fillsOfSymbol) checker.check(fill, reference)
    if (reference.series && endsEarly(reference.series, ledger)) delisted += 1
    await checkSplits(trades[symbol] ?? [], reference, { findings, coverage, ask })
  }
  checker.finish()
  checkStatedProfits(ledger, findings, coverage)
  const benchmark = parts.benchmark === null ? null : await find.daily(parts.benchmark)
  if (benchmark) marker?.setBenchmark(benchmark)
  if (bias.observed >= MIN_FILLS) coverage.addChecked('lookahead', bias.observed)
  else coverage.addSkipped('lookahead', `fewer than ${MIN_FILLS} fills could be placed in a bar`, ledger.fills.length)
  return {
    fills: ledger.fills.length,
    ...checker.counts,
    checks: coverage.list(),
    flags: [...bias.flags(), ...survivorshipFlags(ledger, delisted)],
    reference: source,
    warnings: parts.benchmark !== null && !benchmark ? ['no_bars_for_the_benchmark'] : [],
  }
}

function grouped<Item extends { readonly symbol: number }>(items: readonly Item[], count: number): Item[][] {
  const groups = Array.from({ length: count }, (): Item[] => [])
  for (const item of items) groups[item.symbol]?.push(item)
  return groups
}

const endsEarly = ({ isWhole, time }: ReferenceSeries, { trades }: TradeLedger): boolean =>
  isWhole && time.at(-1)! < spanOf(trades).last - DELISTED_DAYS * DAY

/** Warns of survivorship bias: many symbols over many years, and none was delisted. */
function survivorshipFlags({ symbols, trades }: TradeLedger, delisted: number): Flag[] {
  const { first, last } = spanOf(trades)
  const years = (last - first) / YEAR
  if (symbols.length < 50 || years < 5 || delisted > 0) return []
  return [
    {
      code: 'survivorship',
      severity: 'info',
      fills: 0,
      value: symbols.length,
      limit: 50,
      explanation: `${symbols.length} symbols over ${Math.floor(years)} years and none was delisted. A ledger cannot show whether they were chosen with hindsight.`,
    },
  ]
}
