import type { Findings } from '../findings.ts'
import type { TradeLedger, Trade } from '../trade-ledger.ts'
import type { CheckCoverage } from './check-coverage.ts'

const RELATIVE = 0.01
const ABSOLUTE = 0.01
/** A contract multiplier or a hidden commission is inferred only if this share of trades agrees on it. */
const AGREEING_SHARE = 0.8
const MIN_TRADES = 5
/** A larger difference per side is not a commission. */
const MAX_COMMISSION = 0.02

/**
 * Compares stated profits with quantity times price move, before and after the reported fees. It infers a multiplier that
 * most trades of a symbol share (a futures contract) and a commission that the fees do not include. Returns a warning for
 * each inference.
 */
export function checkStatedProfits(
  { trades, symbols, hasQty }: TradeLedger,
  findings: Findings,
  coverage: CheckCoverage,
): string[] {
  const stated = trades.filter(({ pnl, qty }) => Number.isFinite(pnl) && Number.isFinite(qty))
  const reason = hasQty ? 'the file states no profit' : 'the file has no quantity'
  if (stated.length < trades.length) coverage.addSkipped('pnl', reason, trades.length - stated.length)
  const warnings: string[] = []
  const groups = new Map<number, Trade[]>()
  for (const trade of stated) {
    coverage.addChecked('pnl')
    const group = groups.get(trade.symbol) ?? []
    group.push(trade)
    groups.set(trade.symbol, group)
  }
  for (const [symbol, group] of groups) {
    const multiplier = multiplierOf(group)
    const commission = commissionOf(group, multiplier)
    if (multiplier !== 1) warnings.push(`contract_multiplier_${round(multiplier)}_inferred_for_${symbols[symbol]}`)
    if (commission > 0) warnings.push(`unreported_commission_${round(commission * 1e4)}_bps_a_side_inferred`)
    for (const trade of group) {
      const gross = multiplier * moveOf(trade)
      const fees = Number.isFinite(trade.fees) ? trade.fees : commission * multiplier * turnoverOf(trade)
      if (agrees(trade.pnl, gross) || agrees(trade.pnl, gross - fees)) continue
      const { row, pnl } = trade
      findings.add({ row, code: 'pnl_mismatch', severity: 'error', observed: pnl, expected: gross - fees })
    }
  }
  return [...new Set(warnings)]
}

const moveOf = ({ sign, qty, entryPrice, exitPrice }: Trade): number => sign * qty * (exitPrice - entryPrice)
const turnoverOf = ({ qty, entryPrice, exitPrice }: Trade): number => qty * (entryPrice + exitPrice)

function agrees(stated: number, expected: number): boolean {
  const distance = Math.abs(stated - expected)
  return distance <= ABSOLUTE || distance <= RELATIVE * Math.abs(expected)
}

function multiplierOf(group: readonly Trade[]): number {
  const ratios = group.flatMap((trade) => (moveOf(trade) === 0 ? [] : [trade.pnl / moveOf(trade)]))
  const middle = median(ratios)
  if (ratios.length < MIN_TRADES || !(middle > 0) || Math.abs(middle - 1) <= 0.05) return 1
  const agreeing = ratios.filter((ratio) => Math.abs(ratio / middle - 1) <= RELATIVE).length
  return agreeing >= AGREEING_SHARE * ratios.length ? middle : 1
}

function commissionOf(group: readonly Trade[], multiplier: number): number {
  if (group.length < MIN_TRADES || group.some(({ fees }) => fees > 0)) return 0
  const rates = group
    .map((trade) => moveOf(trade) - trade.pnl / multiplier)
    .map((cost, i) => cost / turnoverOf(group[i]!))
  const middle = median(rates)
  if (!(middle > 1e-6 && middle <= MAX_COMMISSION)) return 0
  const agreeing = rates.filter((rate) => Math.abs(rate / middle - 1) <= 0.05).length
  return agreeing >= AGREEING_SHARE * rates.length ? middle : 0
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

const round = (value: number): number => Number(value.toPrecision(6))
