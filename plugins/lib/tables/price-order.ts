/** Finds out by their values which of four columns are open, high, low and close. */

/** Columns of numbers; NaN if missing. */
export type Numbers = readonly Float64Array[]

/** Which column holds which price. */
export interface PriceOrder {
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
}

/** How well an order fits: a high must be the largest price of its row, and a low the smallest. */
export interface OrderFit {
  /** Rows with four prices that are not all equal. Others fit every order. */
  readonly rows: number
  /** How many of them fit. */
  readonly fitting: number
}

/** Allows for the rounding of prices that were written with few digits. */
const TOLERANCE = 1e-9

/** Counts the rows that fit an order. */
export function fitOf(columns: Numbers, { open, high, low, close }: PriceOrder): OrderFit {
  const [o, h, l, c] = [columns[open]!, columns[high]!, columns[low]!, columns[close]!]
  let [rows, fitting] = [0, 0]
  for (let i = 0; i < h.length; i += 1) {
    const [most, least] = [Math.max(o[i]!, h[i]!, l[i]!, c[i]!), Math.min(o[i]!, h[i]!, l[i]!, c[i]!)]
    if (!(most > least)) continue
    rows += 1
    const slack = TOLERANCE * Math.max(Math.abs(most), Math.abs(least))
    if (h[i]! >= most - slack && l[i]! <= least + slack) fitting += 1
  }
  return { rows, fitting }
}

/** At least this share of rows must fit an order that is found by the values. */
const NEARLY_ALL = 0.95

export const fitsNearlyAll = ({ rows, fitting }: OrderFit): boolean => rows > 0 && fitting >= NEARLY_ALL * rows

/** Prices of one bar are of one size; a turnover between them is not. */
const SAME_SIZE = 3

/**
 * The prices among columns without names: the first four columns in a row of which one is the largest and one the smallest in
 * nearly all rows. The open comes before the close, unless the values say otherwise: most bars open where the one before
 * closed. Null if there are none.
 *
 * @param candidates the columns that hold numbers, ascending
 * @param isBackwards whether the newest row is first
 * @example the columns of KuCoin, [time, open, close, high, low, volume] // { open: 1, close: 2, high: 3, low: 4 }
 */
export function findPrices(columns: Numbers, candidates: readonly number[], isBackwards: boolean): PriceOrder | null {
  for (let first = 0; first + 4 <= candidates.length; first += 1) {
    const four = candidates.slice(first, first + 4)
    if (four[3]! - four[0]! !== 3 || !areOfOneSize(four.map((index) => columns[index]!))) continue
    const order = orderOf(columns, four)
    if (order) return opensWhereItCloses(columns, order, isBackwards)
  }
  return null
}

/** The usual places of high and low among the four come first, then those of KuCoin and Bitfinex, and of Coinbase. */
const HIGH_AND_LOW: readonly (readonly [high: number, low: number])[] = [
  [1, 2],
  [2, 3],
  [1, 0],
  ...[0, 1, 2, 3].flatMap((high) => [0, 1, 2, 3].filter((low) => low !== high).map((low) => [high, low] as const)),
]

/** The first order that fits nearly all rows. The open comes before the close. */
function orderOf(columns: Numbers, four: readonly number[]): PriceOrder | null {
  for (const [high, low] of HIGH_AND_LOW) {
    const [open, close] = four.filter((_, place) => place !== high && place !== low) as [number, number]
    const order = { open, high: four[high]!, low: four[low]!, close }
    if (fitsNearlyAll(fitOf(columns, order))) return order
  }
  return null
}

function areOfOneSize(columns: Numbers): boolean {
  const sizes = columns.map((column) => medianOf(column.map(Math.abs)))
  return Math.max(...sizes) <= SAME_SIZE * Math.min(...sizes)
}

/** Fewer pairs of bars do not tell an open from a close. */
const MIN_PAIRS = 30
/** The gaps between bars must be so many times smaller if open and close change places. */
const SMALLER = 2.5

function opensWhereItCloses(columns: Numbers, order: PriceOrder, isBackwards: boolean): PriceOrder {
  const [one, other] = [columns[order.open]!, columns[order.close]!]
  const gapsOf = (open: Float64Array, close: Float64Array): number => {
    const gaps: number[] = []
    for (let i = 1; i < open.length; i += 1)
      gaps.push(isBackwards ? Math.abs(open[i - 1]! - close[i]!) : Math.abs(open[i]! - close[i - 1]!))
    return medianOf(Float64Array.from(gaps))
  }
  if (one.length <= MIN_PAIRS || SMALLER * gapsOf(other, one) >= gapsOf(one, other)) return order
  return { ...order, open: order.close, close: order.open }
}

/**
 * The column of volumes: the first after the prices that is no price itself. Kraken sends a mean price before it, and tables of
 * adjusted prices another close. Null if there is none.
 */
export function findVolume(columns: Numbers, candidates: readonly number[], order: PriceOrder): number | null {
  const last = Math.max(order.open, order.high, order.low, order.close)
  return candidates.find((index) => index > last && !isPrice(columns[index]!, columns, order)) ?? null
}

function isPrice(column: Float64Array, columns: Numbers, { high, low, close }: PriceOrder): boolean {
  let [rows, inside, steady, before] = [0, 0, 0, NaN]
  for (let i = 0; i < column.length; i += 1) {
    if (Number.isNaN(column[i]!)) continue
    rows += 1
    if (column[i]! >= columns[low]![i]! && column[i]! <= columns[high]![i]!) inside += 1
    const ratio = Math.log(column[i]! / columns[close]![i]!)
    if (Math.abs(ratio - before) < 1e-3) steady += 1
    before = ratio
  }
  return rows > 2 && (inside >= NEARLY_ALL * rows || steady >= NEARLY_ALL * (rows - 1))
}

function medianOf(values: Float64Array): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort()
  return sorted.length === 0 ? NaN : sorted[sorted.length >> 1]!
}
