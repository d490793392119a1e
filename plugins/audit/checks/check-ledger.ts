import type { Ask } from 'tollgate/plugin'
import { setImmediate as turn } from 'node:timers/promises'
import type { Findings } from '../findings.ts'
import { spanOf } from '../figures/performance-figures.ts'
import { DAY, type TradeLedger } from '../trade-ledger.ts'
import { createReferenceFinder, openMarketBars } from '../reference/reference-bars.ts'
import type { ReferenceSeries } from '../reference/bar-series.ts'
import type { UploadedBars } from '../reference/uploaded-bars.ts'
import { createFillChecker } from './fill-checks.ts'
import { createBiasDetector, type Flag, MIN_FILLS } from './bias-flags.ts'
import { checkStatedProfits } from './profit-check.ts'
import { checkSplits } from './split-check.ts'
import { type Check, createCheckCoverage } from './check-coverage.ts'

export interface CheckedLedger {
  readonly fills: number
  readonly checked: number
  readonly notChecked: number
  /** Held against bars or, without bars, against the calendar. */
  readonly judged: number
  /** Fills that could not have happened. */
  readonly impossible: number
  readonly checks: readonly Check[]
  readonly flags: readonly Flag[]
  readonly reference: 'uploaded' | 'market' | 'none'
  readonly warnings: readonly string[]
}

export interface CheckParts {
  readonly ledger: TradeLedger
  readonly bars: UploadedBars | null
  readonly findings: Findings
  readonly ask: Ask
  readonly signal: AbortSignal
  /** Why the service's own bars say nothing of real trades, or null. */
  readonly unusableReason: string | null
}

/** A symbol whose bars end so long before the ledger does has ended. */
const SILENT_DAYS = 30

/** Holds the ledger against reference bars, symbol by symbol, so that one symbol's bars are in memory at a time. */
export async function checkLedger({
  ledger,
  bars,
  findings,
  ask,
  signal,
  unusableReason: unfit,
}: CheckParts): Promise<CheckedLedger> {
  const tally = createCheckCoverage()
  const witness = createBiasDetector()
  const judge = createFillChecker(ledger, findings, tally, witness)
  const find = createReferenceFinder(ledger, bars, await openMarketBars(ask, unfit))
  const fills = grouped(ledger.fills, ledger.symbols.length)
  const trades = grouped(ledger.trades, ledger.symbols.length)
  let reference: CheckedLedger['reference'] = 'none'
  let ended = 0
  for (const [symbol, own] of fills.entries()) {
    signal.throwIfAborted()
    await turn()
    if (own.length === 0) continue
    const standard = await find(symbol, own)
    if (standard.series && reference !== 'uploaded') reference = bars ? 'uploaded' : 'market'
    for (const fill of own) judge.check(fill, standard)
    if (standard.series && endsEarly(standard.series, ledger)) ended += 1
    await checkSplits(trades[symbol] ?? [], standard, { findings, tally, ask })
  }
  judge.finish()
  const warnings = checkStatedProfits(ledger, findings, tally)
  const { observed: seen } = witness
  if (seen >= MIN_FILLS) tally.addChecked('lookahead', seen)
  else tally.addSkipped('lookahead', `fewer than ${MIN_FILLS} fills could be placed in a bar`, ledger.fills.length)
  const { checked, missed, judged, impossible } = judge.counts
  return {
    fills: ledger.fills.length,
    checked,
    notChecked: missed,
    judged,
    impossible,
    checks: tally.list(),
    flags: [...witness.flags(), ...survivors(ledger, ended)],
    reference,
    warnings,
  }
}

function grouped<Item extends { readonly symbol: number }>(items: readonly Item[], count: number): Item[][] {
  const groups = Array.from({ length: count }, (): Item[] => [])
  for (const item of items) groups[item.symbol]?.push(item)
  return groups
}

const endsEarly = ({ isWhole, time }: ReferenceSeries, { trades }: TradeLedger): boolean =>
  isWhole && time.at(-1)! < spanOf(trades).last - SILENT_DAYS * DAY

/** Many symbols over many years, none of which ever ended: a list of those that survived. It cannot be tested here. */
function survivors({ symbols, trades }: TradeLedger, ended: number): Flag[] {
  const { first, last } = spanOf(trades)
  const years = (last - first) / (365.25 * DAY)
  if (symbols.length < 50 || years < 5 || ended > 0) return []
  return [
    {
      code: 'survivorship',
      severity: 'info',
      fills: 0,
      value: symbols.length,
      limit: 50,
      explanation: `${symbols.length} symbols over ${Math.floor(years)} years and none was delisted. Whether they were chosen with hindsight cannot be tested from a ledger.`,
    },
  ]
}
