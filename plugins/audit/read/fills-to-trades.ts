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

/** An execution of which part is still held. */
interface Lot extends Execution {
  left: number
}

/** Orders that became a fill, in LEAN's words and numbers; the others did not. */
const FILLED = /^(?:filled|partially ?filled|closed|completed?|executed|done|[23])$/i
const DUST = 1e-9

/** Rows that are executions, matched first in first out into round trips, symbol by symbol and trial by trial. */
export function readFills(builder: LedgerBuilder): RowReader {
  const { has, number, needNumber, needPrice, needTime, exclude, name, counts, text, header } = builder
  const executions: Execution[] = []
  // Two executions may well be alike; only a file that numbers them can repeat one.
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

/** By time; where several have one time, as the file has them, which may run backwards. */
function inOrder(executions: readonly Execution[]): Execution[] {
  const isBackwards = (executions[0]?.time ?? 0) > (executions.at(-1)?.time ?? 0)
  return (isBackwards ? executions.toReversed() : [...executions]).sort((one, other) => one.time - other.time)
}

function match({ trades, fills, counts }: LedgerBuilder, executions: readonly Execution[]): void {
  const held = new Map<string, { lots: Lot[]; head: number }>()
  for (const execution of executions) {
    const key = `${execution.trial}/${execution.symbol}`
    const queue = held.get(key) ?? { lots: [], head: 0 }
    held.set(key, queue)
    let left = execution.qty
    let leg: Fill['leg'] = 'entry'
    for (
      let lot = queue.lots[queue.head];
      lot && lot.sign !== execution.sign && left > 0;
      lot = queue.lots[queue.head]
    ) {
      const qty = Math.min(lot.left, left)
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
      lot.left -= qty
      left -= qty
      if (lot.left <= DUST * lot.qty) queue.head += 1
      if (left <= DUST * execution.qty) left = 0
    }
    if (left > 0) queue.lots.push({ ...execution, left })
    const { row, symbol, sign, time, price, qty } = execution
    fills.push({ row, leg, symbol, sign, time, price, qty })
  }
  for (const { lots, head } of held.values()) counts.open += lots.length - head
}
