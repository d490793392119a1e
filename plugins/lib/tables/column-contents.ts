/** What the columns of a table hold, judged by a sample of their cells. */
import { isMissing, isNumber, isPercent, isUnset } from './cell-values.ts'
import { isCurrency } from './column-names.ts'
import { isTime } from './time-cells.ts'

export type ContentKind = 'empty' | 'number' | 'percent' | 'time' | 'clock' | 'currency' | 'flag' | 'text'

export interface ColumnContent {
  /** What most of its cells are. */
  readonly kind: ContentKind
  /** Number of cells that hold something. */
  readonly filled: number
  /** Different cells, with the number of times that each occurs. */
  readonly values: ReadonlyMap<string, number>
  /** Whether a number is negative. */
  readonly hasNegative: boolean
}

const CLOCK = /^\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m)?$/i
const FLAG = /^(?:true|false|yes|no)$/i
/** Rows that are looked at, spread over the sample. */
const MAX_ROWS = 300

/** At most 300 rows of a sample, spread evenly. Rows wider than the header are left out: they belong to other tables. */
export function spreadRows(sample: readonly (readonly string[])[], width: number): (readonly string[])[] {
  const rows = sample.filter((cells) => cells.length <= width || cells.slice(width).every((cell) => cell === ''))
  const step = Math.max(1, Math.floor(rows.length / MAX_ROWS))
  return rows.filter((_, index) => index % step === 0)
}

/**
 * What each of `width` columns holds.
 *
 * @example contentsOf([['BUY', '1.2%'], ['SELL', '']], 2)[1]!.kind // 'percent'
 */
export function contentsOf(rows: readonly (readonly string[])[], width: number): ColumnContent[] {
  return Array.from({ length: width }, (_, column) => contentOf(rows, column))
}

function contentOf(rows: readonly (readonly string[])[], column: number): ColumnContent {
  const values = new Map<string, number>()
  let filled = 0
  for (const cells of rows) {
    const cell = cells[column] ?? ''
    if (isUnset(cell) || isMissing(cell)) continue
    filled += 1
    values.set(cell, (values.get(cell) ?? 0) + 1)
  }
  const counts: Partial<Record<ContentKind, number>> = {}
  let hasNegative = false
  for (const [cell, times] of values) {
    const kind = kindOf(cell)
    counts[kind] = (counts[kind] ?? 0) + times
    if (kind === 'number' && /^[(-\u2212\u2013]|-$/.test(cell) && /[1-9]/.test(cell)) hasNegative = true
  }
  const [most] = Object.entries(counts).toSorted(([, one], [, other]) => other - one)
  return { kind: most === undefined ? 'empty' : (most[0] as ContentKind), filled, values, hasNegative }
}

/** "ESZ4" is a contract, and "USD4" an amount. */
const isContract = (cell: string): boolean => /^[A-Z]{3}\d/.test(cell) && !isCurrency(cell.slice(0, 3))

/** "1INCHUSDT" and "1000PEPEUSDT" are pairs, and "1000USDT" is an amount. */
function isPair(cell: string): boolean {
  const [, letters = ''] = /^\d{1,7}([A-Z]{5,})$/.exec(cell) ?? []
  return [3, 4].some((length) => letters.length > length + 1 && isCurrency(letters.slice(-length)))
}

function kindOf(cell: string): ContentKind {
  if (isPercent(cell)) return 'percent'
  if (CLOCK.test(cell)) return 'clock'
  if (isTime(cell)) return 'time'
  if (isNumber(cell) && !isContract(cell) && !isPair(cell)) return 'number'
  if (FLAG.test(cell)) return 'flag'
  return isCurrency(cell) ? 'currency' : 'text'
}
