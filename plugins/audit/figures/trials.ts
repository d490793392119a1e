import type { Preset } from '../cost-presets.ts'
import type { Trade, TradeLedger } from '../trade-ledger.ts'
import { sampleOf, type Sample } from './performance-figures.ts'
import { byExit, type Returns, returnsOf } from './trade-returns.ts'

export interface Trial {
  readonly name: string
  /** Index into the ledger's trials. */
  readonly index: number
  /** Ordered by exit. */
  readonly trades: readonly Trade[]
  readonly returns: Returns
  readonly sample: Sample
}

/** The trials of a ledger. Without a trial column, all trades form one trial. */
export function trialsOf(ledger: TradeLedger, preset: Preset, extraBps: number): Trial[] {
  const groups = ledger.trials.map((): Trade[] => [])
  for (const trade of byExit(ledger.trades)) groups[trade.trial]?.push(trade)
  return groups.flatMap((trades, index) => {
    if (trades.length === 0) return []
    const returns = returnsOf(trades, ledger.instruments, preset, extraBps)
    return [{ name: ledger.trials[index] ?? '', index, trades, returns, sample: sampleOf(returns.net) }]
  })
}

/** The trial with the highest Sharpe ratio, which is the one that a researcher would present. */
export function bestTrial(trials: readonly Trial[]): Trial {
  const rank = ({ sample }: Trial): number => sample.sharpePerTrade ?? -Infinity
  return trials.reduce((best, trial) => (rank(trial) > rank(best) ? trial : best))
}
