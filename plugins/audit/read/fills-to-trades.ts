import type { Fill } from '../trade-ledger.ts'
import { type LedgerBuilder, isSigned, readSide, settleSigns, type RowReader, settleFees } from './ledger-rows.ts'
import { SMALLEST } from './cell-values.ts'

interface Execution {
  readonly row: number
  readonly symbol: number
  readonly sign: 1 | -1
  readonly time: number
  readonly price: number
  readonly qty: number
  readonly fee: number
  readonly trial: number
}

/** An execution of which part is still open. */
interface Lot extends Execution {
  remaining: number
}

/** The states of filled orders, in the words and numbers of LEAN and of brokers. Other orders were not filled. */
const FILLED = /^(?:filled|partially ?filled|closed|completed?|executed|done|[23])$/i
const DUST = 1e-9

/** Reads rows that are executions and matches them first in, first out into round trips, per symbol and trial. */
export function readFills(builder: LedgerBuilder): RowReader {
  const { has, number, needNumber, needPrice, needTime, exclude, name, counts, text, header } = builder
  const executions: Execution[] = []
  // Two executions can be identical. Only a file that numbers them can be said to repeat one.
  const isNumbered = header.names.some((column) => /(?:^|[\s_])id$|Id$|ID$|^Trade #$/.test(column))

  function row(cells: readonly string[], row: number): void {
    if (has('status') && !FILLED.test(text(cells, 'status'))) {
      counts.unfilled += 1
      return
    }
    if (isNumbered && builder.isRepeated(cells, row)) return
    const before = counts.excluded
    const symbol = builder.symbol(cells, row)
    const price = needPrice(cells, row, 'price')
    const time = needTime(cells, row, 'time')
    const qty = needNumber(cells, row, 'qty')
    if (Math.abs(qty) < SMALLEST) exclude(row, { code: 'nonpositive_qty', field: name('qty') })
    const sign = readSide(builder, cells, row, qty)
    if (counts.excluded > before || symbol === null || time === null || sign === null) return
    executions.push({
      row,
      symbol,
      sign,
      time,
      price,
      qty: isSigned(builder, cells) ? Math.abs(qty) : qty,
      fee: number(cells, row, 'fees'),
      trial: builder.trial(cells, row),
    })
  }

  return {
    row,
    end() {
      settleSigns(builder, executions)
      match(builder, inOrder(executions))
      settleFees(builder)
    },
  }
}

/** Sorts by time. Executions at the same time keep the order of the file, which may run from newest to oldest. */
function inOrder(executions: readonly Execution[]): Execution[] {
  const isBackwards = (executions[0]?.time ?? 0) > (executions.at(-1)?.time ?? 0)
  return (isBackwards ? executions.toReversed() : [...executions]).sort((one, other) => one.time - other.time)
}

function match({ trades, fills, counts }: LedgerBuilder, executions: readonly Execution[]): void {
  const open = new Map<string, { lots: Lot[]; head: number }>()
  for (const execution of executions) {
    const key = `${execution.trial}/${execution.symbol}`
    const queue = open.get(key) ?? { lots: [], head: 0 }
    open.set(key, queue)
    let remaining = execution.qty
    let leg: Fill['leg'] = 'entry'
    for (
      let lot = queue.lots[queue.head];
      lot && lot.sign !== execution.sign && remaining > 0;
      lot = queue.lots[queue.head]
    ) {
      const qty = Math.min(lot.remaining, remaining)
      leg = 'exit'
      trades.push({
        row: lot.row,
        exitRow: execution.row,
        symbol: lot.symbol,
        sign: lot.sign,
        qty,
        entryTime: lot.time,
        entryPrice: lot.price,
        exitTime: execution.time,
        exitPrice: execution.price,
        fees: (lot.fee * qty) / lot.qty + (execution.fee * qty) / execution.qty,
        pnl: Number.NaN,
        trial: execution.trial,
      })
      lot.remaining -= qty
      remaining -= qty
      if (lot.remaining <= DUST * lot.qty) queue.head += 1
      if (remaining <= DUST * execution.qty) remaining = 0
    }
    if (remaining > 0) queue.lots.push({ ...execution, remaining })
    const { row, symbol, sign, time, price, qty } = execution
    fills.push({ row, leg, symbol, sign, time, price, qty })
  }
  for (const { lots, head } of open.values()) counts.open += lots.length - head
}
