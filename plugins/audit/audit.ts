import { createHash } from 'node:crypto'
import type { Ask } from 'tollgate/plugin'
import { type CheckedLedger, checkLedger } from './checks/check-ledger.ts'
import { equityOf } from './figures/trade-returns.ts'
import { FORMULAS, MODEL } from './audit-methodology.ts'
import { overfittingOf, bestTrial, type Trial, trialsOf } from './figures/overfitting-figures.ts'
import { performanceOf, spanOf } from './figures/performance-figures.ts'
import { MAX_DEFECT_SHARE, verdictOf } from './figures/verdict.ts'
import { CODES, createFindings, type Findings } from './findings.ts'
import type { TradeLedger } from './trade-ledger.ts'
import { costPerSide, type PresetName, PRESETS } from './cost-presets.ts'
import { readLedger } from './read/read-ledger.ts'
import { readUploadedBars } from './reference/uploaded-bars.ts'
import { once } from '../lib/once.ts'

export interface AuditRequest {
  readonly file: Buffer
  /** Reference bars as CSV, used instead of the bars of the service. */
  readonly bars: Buffer | undefined
  readonly preset: PresetName
  readonly trials: number
  readonly extraBps: number
  /** The symbol of a ledger that has no symbol column. */
  readonly symbol: string | undefined
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
  const { file, preset: name, extraBps, symbol } = request
  const findings = createFindings()
  const ledger = await readLedger(file, { symbol, now: asOf.getTime(), findings })
  const bars = request.bars ? await readUploadedBars(request.bars) : null
  const checked = await checkLedger({ ledger, bars, findings, ask, unusableReason })
  const preset = PRESETS[name]
  const trials = trialsOf(ledger, preset, extraBps)
  const best = bestTrial(trials)
  const performance = performanceOf(best.trades, best.returns.gross, best.returns.net)
  const overfitting = overfittingOf(best, trials, request.trials)
  const counts = findings.counts()
  const structuralShare = ledger.excluded / ledger.rows
  const { verdict, reasons } = verdictOf({
    structuralShare,
    impossibleShare: shareOf(checked),
    splitShare: (counts['split_not_adjusted'] ?? 0) / ledger.trades.length,
    flags: checked.flags.flatMap(({ code, severity }) => (severity === 'error' ? [code] : [])),
    netExpectancyBps: performance.net_expectancy_bps,
    trades: performance.trades,
    dsr: overfitting.dsr,
    pbo: overfitting.pbo,
    minTrlTrades: overfitting.min_trl_trades,
  })
  return {
    verdict,
    reasons,
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
    fills: fillsPart(checked, findings, structuralShare),
    performance,
    overfitting,
    equity: equityOf(best.trades, best.returns.gross, best.returns.net),
    formulas: FORMULAS,
    warnings: [...ledger.warnings, ...checked.warnings],
    model: MODEL,
  }
}

export type Audit = Awaited<ReturnType<typeof audit>>

const shareOf = ({ impossible, judged }: CheckedLedger): number => (judged > 0 ? impossible / judged : 0)

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

function fillsPart(checked: CheckedLedger, findings: Findings, structuralShare: number) {
  const byCode = findings.counts()
  const structural = Object.entries(byCode).filter(([code]) => CODES[code as keyof typeof CODES] === 'structure')
  return {
    fills: checked.fills,
    checked: checked.checked,
    not_checked: checked.notChecked,
    impossible: checked.impossible,
    share: shareOf(checked),
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
const UNCHECKED = 'No fill could be checked against bars, so it is unknown whether the fills could have happened.'

/** The verdict in at most two sentences. */
export function summaryOf({ verdict, ledger, fills, performance, overfitting }: Audit): string {
  const trades = `${count().format(performance.trades)} trades`
  const net = `${bps().format(performance.net_expectancy_bps)} bps a trade after costs`
  const dsr = overfitting.dsr === null ? null : certainty(overfitting.dsr)
  switch (verdict) {
    case 'reject':
      return `${rejection(ledger, fills)} The result of the ${trades}, ${net}, cannot be relied on.`
    case 'not_profitable':
      return `The ${trades} lose money: ${net}. They break even at ${bps().format(performance.breakeven_cost_per_side_bps)} bps a side.`
    case 'unproven':
      return dsr === null
        ? `The ${trades} make ${net}, but they are too few or too similar to distinguish from luck.`
        : `The ${trades} make ${net}, but luck may explain it: the deflated Sharpe ratio is ${dsr} with ${count().format(overfitting.n_trials)} trials.`
    case 'plausible':
      return `The ${trades} make ${net}, with a deflated Sharpe ratio of ${dsr ?? ''} at ${count().format(overfitting.n_trials)} trials. ${fills.checked === 0 ? UNCHECKED : 'The audit found nothing against it, but that is not a guarantee.'}`
  }
}

/** A probability that would round to 100% is written as a bound. */
const certainty = (dsr: number): string => (dsr > 0.9999 ? 'over 99.99%' : share().format(dsr))

function rejection(ledger: Audit['ledger'], fills: Audit['fills']): string {
  const flag = fills.flags.find(({ severity }) => severity === 'error')
  if (fills.share > MAX_DEFECT_SHARE)
    return `${count().format(fills.impossible)} of ${count().format(fills.fills)} fills could not have happened (${share().format(fills.share)} of those checked).`
  if (fills.structural_share > MAX_DEFECT_SHARE)
    return `${count().format(ledger.excluded)} of ${count().format(ledger.rows)} rows cannot be used.`
  return flag?.explanation ?? 'Trades were held across splits at unadjusted prices.'
}
