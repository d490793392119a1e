import type { Findings } from '../findings.ts'
import type { TradeLedger, Trade } from '../trade-ledger.ts'
import type { CheckCoverage } from './check-coverage.ts'

const RELATIVE = 0.01
const ABSOLUTE = 0.01
/** So many trades must agree before a contract multiplier or a hidden commission is believed. */
const MOST = 0.8
const LEAST_TRADES = 5
/** A commission of 2% a side is no commission. */
const MAX_COMMISSION = 0.02

/**
 * Stated profit against quantity times price move, before or after the reported fees. A multiplier that most trades of a
 * symbol share (a futures contract) and a commission that most trades leave out of the fees are inferred, and said.
 */
export function checkStatedProfits(
  { trades, symbols, hasQty }: TradeLedger,
  findings: Findings,
  tally: CheckCoverage,
): string[] {
  const stated = trades.filter(({ pnl, qty }) => Number.isFinite(pnl) && Number.isFinite(qty))
  const why = hasQty ? 'the file states no profit' : 'the file has no quantity'
  if (stated.length < trades.length) tally.addSkipped('pnl', why, trades.length - stated.length)
  const warnings: string[] = []
  const groups = new Map<number, Trade[]>()
  for (const trade of stated) {
    tally.addChecked('pnl')
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
      const made = multiplier * moveOf(trade)
      const fees = Number.isFinite(trade.fees) ? trade.fees : commission * multiplier * turnoverOf(trade)
      if (agrees(trade.pnl, made) || agrees(trade.pnl, made - fees)) continue
      const { row, pnl } = trade
      findings.add({ row, code: 'pnl_mismatch', severity: 'error', observed: pnl, expected: made - fees })
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
  if (ratios.length < LEAST_TRADES || !(middle > 0) || Math.abs(middle - 1) <= 0.05) return 1
  return ratios.filter((ratio) => Math.abs(ratio / middle - 1) <= RELATIVE).length >= MOST * ratios.length ? middle : 1
}

function commissionOf(group: readonly Trade[], multiplier: number): number {
  if (group.length < LEAST_TRADES || group.some(({ fees }) => fees > 0)) return 0
  const rates = group
    .map((trade) => moveOf(trade) - trade.pnl / multiplier)
    .map((cost, i) => cost / turnoverOf(group[i]!))
  const middle = median(rates)
  if (!(middle > 1e-6 && middle <= MAX_COMMISSION)) return 0
  return rates.filter((rate) => Math.abs(rate / middle - 1) <= 0.05).length >= MOST * rates.length ? middle : 0
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

const round = (value: number): number => Number(value.toPrecision(6))
