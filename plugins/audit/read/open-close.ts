/** Columns that say whether a fill opens or closes a position: MetaTrader's in and out, Interactive Brokers' O and C. */
import type { Execution } from './positions.ts'

const OPENS = /^(?:in|o|open|opening|to open|entry|e)$/i
const CLOSES = /^(?:out|c|close|closing|to close|exit|x)$/i
const TURNS = /^(?:in ?\/ ?out|c ?; ?o|o ?; ?c)$/i

/** Whether the cells of a column say open and close, and nothing else. */
export function saysOpenAndClose(cells: readonly string[]): boolean {
  let [opens, closes] = [0, 0]
  for (const cell of cells) {
    if (OPENS.test(cell)) opens += 1
    else if (CLOSES.test(cell)) closes += 1
    else if (cell !== '' && !TURNS.test(cell)) return false
  }
  return opens > 0 && closes > 0
}

/** Whether a word opens a position; null if it says neither, or that a fill turns one. */
export const opensOf = (word: string): boolean | null => (OPENS.test(word) ? true : CLOSES.test(word) ? false : null)

/** A fill with what the file says of it. */
export interface MarkedExecution extends Execution {
  readonly opens: boolean | null
}

/**
 * Puts fills into the long and the short position of an account that holds both at once, where the file says so: a fill opens
 * a position against the one that is held, or closes one that is not. The fills must be in the order of time.
 */
export function inBooks<Item extends MarkedExecution>(executions: readonly Item[]): readonly Item[] {
  const held = new Map<number, number>()
  const hedged = new Set<number>()
  for (const { symbol, trial, sign, qty, opens } of executions) {
    if (opens === null) return executions
    const key = trial * 0x1000000 + symbol
    const net = held.get(key) ?? 0
    const isAgainst = sign * net < -1e-9 * qty
    if (opens ? isAgainst : !isAgainst) hedged.add(key)
    held.set(key, net + sign * qty)
  }
  return executions.map((one) => {
    if (!hedged.has(one.trial * 0x1000000 + one.symbol)) return one
    return { ...one, book: one.opens ? one.sign : ((0 - one.sign) as 1 | -1) }
  })
}
