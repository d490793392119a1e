/** The columns of fees. A file may have one, one for each side, or one for each kind of fee. */
import { quoted } from '../../lib/tables/column-names.ts'
import { decimalOf, numberIn } from '../../lib/tables/cell-values.ts'
import { ENTRY, EXIT, FEE, FEE_NAMES, NO_FEE, PAID_IS_NEGATIVE, TOTAL } from './column-words.ts'
import { type Columns, take } from './found-columns.ts'
import type { StatedFees } from './stated-columns.ts'

/** The sign of fees that are paid. An export is known by the names of its columns; the caller may also state it. */
export interface PaidSign {
  readonly sign: 1 | -1
  readonly isStated: boolean
}

export interface FeeColumns {
  readonly columns: readonly number[]
  readonly paidSign: PaidSign | null
}

/** Words that say nothing of the kind of a fee. */
const PLAIN_FEE: ReadonlySet<string> = new Set(
  'amount cost value paid net trade trading order exec execution v1 v2 in of'.split(' '),
)
/** Amounts closer than half a cent are equal. */
const CENT = 0.005

/**
 * Finds the columns of fees. Several kinds are added; a total beside its parts, the same amount in another currency, rates
 * and percentages are not. The sum of the columns is the fee of a row.
 */
export function chooseFeeColumns(columns: Columns, stated: StatedFees): FeeColumns {
  if (stated.columns.length > 0) {
    columns.found.fees = stated.columns[0]!
    for (const index of candidatesOf(columns)) columns.reasons.set(index, 'columns says what the fees are')
    return { columns: stated.columns, paidSign: stated.sign && { sign: stated.sign, isStated: true } }
  }
  if (columns.found.entryRate !== undefined) {
    for (const index of candidatesOf(columns)) columns.reasons.set(index, 'the rates of both sides give the fees')
    return { columns: [], paidSign: null }
  }
  const all = candidatesOf(columns)
  const kept = withoutTotals(columns, withoutRepeats(columns, all))
  const [entry, exit] = [
    kept.filter((index) => isOf(columns, index, ENTRY)),
    kept.filter((index) => isOf(columns, index, EXIT)),
  ]
  const isPerSide = entry.length === 1 && exit.length === 1 && kept.length === 2
  if (isPerSide) {
    take(columns, 'entryFees', entry[0]!)
    take(columns, 'exitFees', exit[0]!)
  } else
    for (const index of kept) take(columns, 'fees', index, kept.length > 1 ? 'the columns of fees are added' : null)
  const isKnown = kept.length > 0 && kept.every((index) => PAID_IS_NEGATIVE.has(columns.parsed[index]!.plain))
  return { columns: isPerSide ? [] : kept, paidSign: isKnown ? { sign: -1, isStated: false } : null }
}

function candidatesOf({ parsed, contents, uses, reasons }: Columns): number[] {
  return parsed.flatMap(({ words, plain }, index) => {
    if (uses.has(index)) return []
    const isFee = FEE_NAMES.has(plain) || words.some((word) => FEE.has(word))
    if (!isFee) return []
    const { kind } = contents[index]!
    if (kind === 'empty') return []
    if (words.some((word) => word === 'percent' || /^rates?$|^pct$|^bps$/.test(word)) || kind === 'percent') {
      reasons.set(index, 'it is a rate, not an amount of money')
      return []
    }
    if ((!FEE_NAMES.has(plain) && words.some((word) => NO_FEE.has(word))) || kind !== 'number') return []
    return [index]
  })
}

/** Without columns that hold the amounts of another one, and without the same fee in another currency. */
function withoutRepeats(columns: Columns, all: readonly number[]): number[] {
  const kept: number[] = []
  for (const index of all) {
    const twin = kept.find((other) => isSame(columns, other, index) || isConverted(columns, other, index))
    if (twin === undefined) kept.push(index)
    else columns.reasons.set(index, `it repeats ${quoted(columns.names[twin]!)}`)
  }
  return kept
}

/**
 * Whether two columns hold the same amounts, at least two of which differ. Only names that say no more than "fee" can
 * repeat each other: a commission may be as high as the fee of the exchange, and that of the entry as that of the exit.
 */
function isSame(columns: Columns, one: number, other: number): boolean {
  const isPlain = (index: number): boolean =>
    columns.parsed[index]!.words.every((word) => FEE.has(word) || PLAIN_FEE.has(word))
  if (!isPlain(one) || !isPlain(other)) return false
  const pairs = columns.rows.map((cells) => [amount(columns, cells, one), amount(columns, cells, other)] as const)
  const filled = pairs.filter(([first, second]) => first !== 0 || second !== 0)
  return new Set(filled.map(([first]) => first)).size > 1 && filled.every(([first, second]) => first === second)
}

/** "Fee" and "Fee USD": one name, in two currencies. */
function isConverted({ parsed }: Columns, one: number, other: number): boolean {
  const [first, second] = [parsed[one]!, parsed[other]!]
  return first.plain === second.plain && first.currency !== second.currency
}

/** Without the parts of a total: a column that is their sum, or one that says total and is nowhere less. */
function withoutTotals(columns: Columns, all: readonly number[]): number[] {
  for (const total of all) {
    const parts = all.filter((index) => index !== total)
    if (parts.length === 0 || !isTotalOf(columns, total, parts)) continue
    for (const part of parts) columns.reasons.set(part, `${quoted(columns.names[total]!)} contains it`)
    return [total]
  }
  return [...all]
}

function isTotalOf(columns: Columns, total: number, parts: readonly number[]): boolean {
  const saysTotal = columns.parsed[total]!.words.some((word) => TOTAL.has(word))
  let isSum = false
  for (const cells of columns.rows) {
    const whole = amount(columns, cells, total)
    const amounts = parts.map((index) => amount(columns, cells, index)).filter((part) => Math.abs(part) > CENT)
    const sum = amounts.reduce((before, part) => before + part, 0)
    // A fee that is as high as one other may be of another kind.
    isSum ||= amounts.length > 1 || (saysTotal && amounts.length > 0)
    const isEnough = saysTotal ? Math.abs(whole) >= Math.abs(sum) - CENT : Math.abs(whole - sum) <= CENT
    if (!isEnough) return false
  }
  return isSum
}

const amount = ({ format }: Columns, cells: readonly string[], index: number): number =>
  numberIn(cells[index] ?? '', decimalOf(format, index)) || 0

const isOf = ({ parsed }: Columns, index: number, words: ReadonlySet<string>): boolean =>
  parsed[index]!.words.some((word) => words.has(word) || word === (words === ENTRY ? 'buy' : 'sell'))
