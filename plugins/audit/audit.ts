import { createHash } from 'node:crypto'
import { type Ask, once } from 'tollgate/plugin'
import type { AuditDays } from '../../schemas/types.d.ts'
import { type CheckedLedger, checkLedger } from './checks/check-ledger.ts'
import { equityOf } from './figures/trade-returns.ts'
import { FORMULAS, MODEL } from './audit-methodology.ts'
import { overfittingOf } from './figures/overfitting-figures.ts'
import { bestTrial, type Trial, trialsOf } from './figures/trials.ts'
import { moneyOf } from './figures/money.ts'
import { performanceOf, spanOf } from './figures/performance-figures.ts'
import { dayFigures } from './figures/day-figures.ts'
import { evidenceOf } from './figures/evidence.ts'
import { PortfolioMarker } from './figures/portfolio-days.ts'
import { type Evidence, verdictOf } from './figures/verdict.ts'
import { CODES, createFindings, type Findings } from './findings.ts'
import type { TradeLedger } from './trade-ledger.ts'
import { NOTHING_STATED, type ReadingOptions } from './reading-options.ts'
import { costPerSide, type PresetName, PRESETS } from './cost-presets.ts'
import { readLedger } from './read/read-ledger.ts'
import { readUploadedBars } from './reference/uploaded-bars.ts'
import { roundNamed } from '../lib/quant/rounding.ts'
import { createZone } from '../lib/time/time-zones.ts'

export interface AuditRequest {
  readonly file: Buffer
  /** Reference bars as CSV, used instead of the bars of the service. */
  readonly bars: Buffer | undefined
  readonly preset: PresetName
  readonly trials: number
  readonly extraBps: number
  /** The symbol of a ledger that has no symbol column. */
  readonly symbol: string | undefined
  /** What the caller says of the file. */
  readonly stated?: ReadingOptions
}

export interface AuditContext {
  readonly ask: Ask
  /** Trades later than this are in the future and rejected. */
  readonly asOf: Date
  /** Why the bars of the service cannot be compared with real trades; null if they can. */
  readonly unusableReason: string | null
}

/**
 * Audits a trade ledger: its structure, its fills against reference bars, performance after costs, overfitting, and a
 * verdict. Throws InvalidInput if the file cannot be read as a ledger.
 */
export async function audit(request: AuditRequest, { ask, asOf, unusableReason }: AuditContext) {
  const { file, preset: name, extraBps, symbol, stated = NOTHING_STATED } = request
  const findings = createFindings()
  const ledger = await readLedger(file, { symbol, stated, now: asOf.getTime(), findings })
  const zone = stated.timezone === null ? null : createZone(stated.timezone)
  const bars = request.bars ? await readUploadedBars(request.bars, zone) : null
  const preset = PRESETS[name]
  const trials = trialsOf(ledger, preset, extraBps)
  const best = bestTrial(trials)
  const marker = PortfolioMarker.of({ ledger, trials, judged: best, preset, extraBps })
  const { benchmark } = stated
  const checked = await checkLedger({ ledger, bars, findings, ask, unusableReason, marker, benchmark })
  const portfolio = marker?.finish() ?? null
  const performance = performanceOf(best.trades, best.returns.gross, best.returns.net)
  const overfitting = overfittingOf(best, trials, request.trials, portfolio)
  const days = dayFigures({ portfolio, trial: best, trials: overfitting.n_trials, benchmark })
  const money = moneyOf(ledger, best)
  const splits = findings.counts()['split_not_adjusted'] ?? 0
  const open = portfolio?.open ?? []
  const evidence = evidenceOf({ ledger, checked, splits, best, performance, overfitting, days, money, open })
  const { verdict, reasons, grounds } = verdictOf(evidence)
  return {
    verdict,
    reasons,
    grounds,
    as_of: asOf.toISOString(),
    ledger: ledgerPart(ledger, trials, best, createHash('sha256').update(file).digest('hex')),
    assumptions: {
      preset: name,
      cost_per_side_bps: costPerSide(preset),
      half_spread_bps: preset.halfSpread,
      slippage_bps: preset.slippage,
      commission_bps: preset.commission,
      extra_bps: extraBps,
      trades_with_reported_fees: best.returns.reported,
      n_trials: request.trials,
    },
    fills: fillsPart(checked, findings, evidence),
    performance,
    overfitting,
    days,
    equity: equityOf(best.trades, best.returns.gross, best.returns.net),
    reading: {
      ...ledger.reading,
      instruments: instrumentsPart(ledger),
      ...(bars && { bars: [...bars.table.columns] }),
    },
    money,
    formulas: FORMULAS,
    warnings: [...ledger.warnings, ...checked.warnings],
    model: MODEL,
  }
}

export type Audit = Awaited<ReturnType<typeof audit>>

/** An audit with the digits that its figures are published with. Money is rounded where it is summed, and equity to millionths. */
export function published(result: Audit): Audit {
  const { grounds, fills, performance, overfitting, days } = result
  return { ...result, ...roundNamed({ grounds, fills, performance, overfitting, days }) }
}

function ledgerPart(ledger: TradeLedger, trials: readonly Trial[], best: Trial, sha256: string) {
  const { first, last } = spanOf(ledger.trades)
  const { layout, rows, trades, excluded, open, unfilled, symbols, zoned } = ledger
  return {
    layout,
    rows,
    trades: trades.length,
    excluded,
    open,
    unfilled,
    symbols: symbols.length,
    trials: trials.length,
    judged_trial: trials.length > 1 ? best.name : null,
    first: new Date(first).toISOString(),
    last: new Date(last).toISOString(),
    zoned,
    sha256,
  }
}

/** Symbols that a report lists. */
const LISTED_INSTRUMENTS = 100

/** The symbols with most trades. */
function instrumentsPart({ instruments, trades }: TradeLedger) {
  const counts = instruments.map(() => 0)
  for (const { symbol } of trades) counts[symbol]! += 1
  return instruments
    .map(({ name, contractSize, contractSizeSource, currency }, symbol) => ({
      symbol: name,
      trades: counts[symbol] ?? 0,
      contract_size: contractSize,
      contract_size_source: contractSizeSource,
      currency,
    }))
    .sort((one, other) => other.trades - one.trades)
    .slice(0, LISTED_INSTRUMENTS)
}

function fillsPart(checked: CheckedLedger, findings: Findings, { impossibleShare, structuralShare }: Evidence) {
  const byCode = findings.counts()
  const structural = Object.entries(byCode).filter(([code]) => CODES[code as keyof typeof CODES] === 'structure')
  return {
    fills: checked.fills,
    checked: checked.checked,
    not_checked: checked.notChecked,
    impossible: checked.impossible,
    share: impossibleShare,
    structural: structural.reduce((sum, [, count]) => sum + count, 0),
    structural_share: structuralShare,
    reference: checked.reference,
    by_code: byCode,
    findings: findings.list(),
    findings_truncated: findings.truncated,
    flags: checked.flags,
    checks: checked.checks,
  }
}

const count = once(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 }))
const bps = once(() => new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 }))
const share = once(() => new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 2 }))
/** The verdict in a few sentences, with the first reason for it. */
export function summaryOf({ verdict, grounds, fills, performance, overfitting, days }: Audit): string {
  const trades = `${count().format(performance.trades)} trades`
  const net = `${bps().format(performance.net_expectancy_bps)} bps a trade after costs`
  const first = grounds.find((ground) => ground.verdict === verdict)?.explanation ?? ''
  switch (verdict) {
    case 'reject':
      return `${first} The result of the ${trades}, ${net}, cannot be relied on.`
    case 'not_profitable':
      return `The ${trades} are not profitable: they make ${net}, and break even at ${bps().format(performance.breakeven_cost_per_side_bps)} bps a side.${moneyText(grounds)}`
    case 'unproven':
      return `The ${trades} make ${net}, but that is not proven. ${first}${others(grounds.length - 1)}`
    case 'plausible':
      return `The ${trades} make ${net}. ${checkedText(fills)} ${provenText(days, overfitting)} The audit found nothing against it, but that is not a guarantee.`
  }
}

/** The sum of money, if it is the reason or one of them. */
function moneyText(grounds: Audit['grounds']): string {
  const ground = grounds.find(({ code }) => code === 'money_not_positive')
  return ground ? ` ${ground.explanation}` : ''
}

const others = (reasons: number): string =>
  reasons < 1
    ? ''
    : reasons === 1
      ? ' There is one more reason.'
      : ` There are ${count().format(reasons)} more reasons.`

const checkedText = ({ checked, fills, impossible }: Audit['fills']): string =>
  `${count().format(checked)} of ${count().format(fills)} fills were compared with bars, and ${impossible === 0 ? 'all of them could have happened' : `${count().format(impossible)} could not have happened`}.`

function provenText(
  { days, marked_share, t_stat, benchmark, alpha_t_stat }: AuditDays,
  luck: Audit['overfitting'],
): string {
  const marked = `The positions have prices on ${share().format(marked_share)} of their days`
  const t = `over ${count().format(days)} days the t statistic is ${count().format(t_stat ?? 0)}`
  const beside =
    alpha_t_stat === null
      ? ''
      : `, ${count().format(alpha_t_stat)} beside ${benchmark === 'traded_symbols' ? 'holding the traded symbols' : benchmark}`
  return `${marked}; ${t}${beside}, allowing for ${count().format(luck.n_trials)} ${luck.n_trials === 1 ? 'trial' : 'trials'}.`
}
