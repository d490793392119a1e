import { pointValue } from '../figures/trade-returns.ts'
import type { Findings } from '../findings.ts'
import type { TradeLedger } from '../trade-ledger.ts'
import type { CheckCoverage } from './check-coverage.ts'

/** Profits are written in hundredths. */
const CENT = 0.0101

/**
 * Compares stated profits with quantity, price move and contract size, before and after fees. A profit may differ by what
 * the rounding of the other profits of its symbol shows. Symbols whose contract size and commission the profits cannot show
 * are not checked: neither right nor wrong.
 */
export function checkStatedProfits(
  { trades, symbols, instruments, hasQty }: TradeLedger,
  findings: Findings,
  coverage: CheckCoverage,
): void {
  const missing = hasQty ? 'the file states no profit' : 'the file has no quantity'
  for (const { symbol, row, sign, qty, entryPrice, exitPrice, pnl, fees } of trades) {
    const instrument = instruments[symbol]!
    const { profits } = instrument
    if (!profits || !Number.isFinite(pnl) || !Number.isFinite(qty)) {
      coverage.addSkipped('pnl', missing)
      continue
    }
    if (profits.unverified !== null) {
      coverage.addSkipped('pnl', `${symbols[symbol] || 'the ledger'}: ${profits.unverified}`)
      continue
    }
    coverage.addChecked('pnl')
    const gross = sign * qty * (exitPrice - entryPrice) * pointValue(instrument, exitPrice)
    const net = gross - (fees || 0)
    const distance = Math.min(Math.abs(pnl - gross), Math.abs(pnl - net))
    if (distance > CENT + profits.tolerance * qty)
      findings.add({ row, code: 'pnl_mismatch', severity: 'error', observed: pnl, expected: net })
  }
}
