import type { Ask } from 'tollgate/plugin'
import { setImmediate as turn } from 'node:timers/promises'
import type { Findings } from '../findings.ts'
import { spanOf } from '../figures/performance-figures.ts'
import { DAY, type Ledger } from '../trade-ledger.ts'
import { createFinder, openMarket } from '../reference/reference-bars.ts'
import type { Series } from '../reference/bar-series.ts'
import type { UploadedBars } from '../reference/uploaded-bars.ts'
import { createFillJudge } from './fill-checks.ts'
import { createWitness, type Flag, LEAST_FILLS } from './ledger-flags.ts'
import { checkProfits } from './profit-check.ts'
import { checkSplits } from './split-check.ts'
import { type Check, createTally } from './check-coverage.ts'

export interface Checked {
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
  readonly ledger: Ledger
  readonly bars: UploadedBars | null
  readonly findings: Findings
  readonly ask: Ask
  readonly signal: AbortSignal
  /** Why the service's own bars say nothing of real trades, or null. */
  readonly unfit: string | null
}

/** A symbol whose bars end so long before the ledger does has ended. */
const SILENT_DAYS = 30

/** Holds the ledger against reference bars, symbol by symbol, so that one symbol's bars are in memory at a time. */
export async function checkLedger({ ledger, bars, findings, ask, signal, unfit }: CheckParts): Promise<Checked> {
  const tally = createTally()
  const witness = createWitness()
  const judge = createFillJudge(ledger, findings, tally, witness)
  const find = createFinder(ledger, bars, await openMarket(ask, unfit))
  const fills = grouped(ledger.fills, ledger.symbols.length)
  const trades = grouped(ledger.trades, ledger.symbols.length)
  let reference: Checked['reference'] = 'none'
  let ended = 0
  for (const [symbol, own] of fills.entries()) {
    signal.throwIfAborted()
    await turn()
    if (own.length === 0) continue
    const standard = await find(symbol, own)
    if (standard.series && reference !== 'uploaded') reference = bars ? 'uploaded' : 'market'
    for (const fill of own) judge.judge(fill, standard)
    if (standard.series && endsEarly(standard.series, ledger)) ended += 1
    await checkSplits(trades[symbol] ?? [], standard, { findings, tally, ask })
  }
  judge.end()
  const warnings = checkProfits(ledger, findings, tally)
  const { seen } = witness
  if (seen >= LEAST_FILLS) tally.made('lookahead', seen)
  else tally.missed('lookahead', `fewer than ${LEAST_FILLS} fills could be placed in a bar`, ledger.fills.length)
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

const endsEarly = ({ isWhole, time }: Series, { trades }: Ledger): boolean =>
  isWhole && time.at(-1)! < spanOf(trades).last - SILENT_DAYS * DAY

/** Many symbols over many years, none of which ever ended: a list of those that survived. It cannot be tested here. */
function survivors({ symbols, trades }: Ledger, ended: number): Flag[] {
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
