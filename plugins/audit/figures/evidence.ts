import type { AuditDays, AuditMoney } from '../../../schemas/types.d.ts'
import type { CheckedLedger } from '../checks/check-ledger.ts'
import type { TradeLedger } from '../trade-ledger.ts'
import { MIN_MARKED_SHARE } from './day-figures.ts'
import type { overfittingOf } from './overfitting-figures.ts'
import type { performanceOf } from './performance-figures.ts'
import type { MarkedPosition } from './portfolio-days.ts'
import { entryValue } from './trade-returns.ts'
import type { Trial } from './trials.ts'
import type { Evidence } from './verdict.ts'

const BPS = 1e4

interface Figures {
  readonly ledger: TradeLedger
  readonly checked: CheckedLedger
  readonly splits: number
  readonly best: Trial
  readonly performance: ReturnType<typeof performanceOf>
  readonly overfitting: ReturnType<typeof overfittingOf>
  readonly days: AuditDays
  readonly money: AuditMoney
  readonly open: readonly MarkedPosition[]
}

/** Collects what the verdict is made from. Figures of days replace those of trades where there are any. */
export function evidenceOf({
  ledger,
  checked,
  splits,
  best,
  performance,
  overfitting,
  days,
  money,
  open,
}: Figures): Evidence {
  const interval = days.mean_ci95_bps ?? performance.expectancy_ci95_bps
  const profits = profitsOf(ledger, best, money, open)
  return {
    structuralShare: ledger.excluded / ledger.rows,
    impossibleShare: checked.judged > 0 ? checked.impossible / checked.judged : 0,
    splitShare: splits / ledger.trades.length,
    flags: checked.flags.filter(({ severity }) => severity === 'error'),
    trades: performance.trades,
    losers: best.returns.gross.reduce((count, gross) => count + (gross < 0 ? 1 : 0), 0),
    netExpectancyBps: performance.net_expectancy_bps,
    moneyNet: money.net,
    checkedShare: checked.fills > 0 ? checked.checked / checked.fills : 0,
    isMarked: days.marked_share >= MIN_MARKED_SHARE,
    markedShare: days.marked_share,
    effectiveBets: days.effective_bets,
    intervalLowBps: interval?.[0] ?? null,
    intervalUnit: days.mean_ci95_bps ? 'day' : 'trade',
    dsr: overfitting.dsr === null ? null : (days.dsr ?? overfitting.dsr),
    pbo: overfitting.pbo,
    ...(days.method === 'marked'
      ? { record: days.days, minimumRecord: days.min_trl_days, recordUnit: 'days' }
      : { record: performance.trades, minimumRecord: overfitting.min_trl_trades, recordUnit: 'trades' }),
    yearlySharpe: days.sharpe ?? performance.sharpe,
    closedProfit: profits.closed,
    openProfit: profits.open,
    openPositions: open.length + profits.unvalued,
    alphaT: days.alpha_t_stat,
    benchmark: days.benchmark,
    spa: overfitting.spa_p_value,
  }
}

/**
 * The profits of the closed trades of a trial and of its open positions: in money if there is a total, otherwise in basis
 * points of one unit per trade. A position of which the file states no price counts as the worst closed trade.
 */
function profitsOf(
  { instruments, openPositions, open: stillOpen }: TradeLedger,
  { trades, returns }: Trial,
  { net }: AuditMoney,
  open: readonly MarkedPosition[],
) {
  const isMoney = net !== null && open.every(({ position }) => Number.isFinite(position.qty))
  let [units, worst] = [0, 0]
  for (const [place, trade] of trades.entries()) {
    const unit = returns.net[place]! * BPS
    units += unit
    worst = Math.min(worst, isMoney ? (unit / BPS) * entryValue(trade, instruments) : unit)
  }
  const marked = open.reduce(
    (sum, { position, unit }) => sum + unit * (isMoney ? entryValue(position, instruments) : BPS),
    0,
  )
  const unvalued = Math.max(0, stillOpen - openPositions.length)
  return { closed: isMoney ? net : units, open: marked + unvalued * worst, unvalued }
}
