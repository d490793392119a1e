import type { Fill, Trade } from '../trade-ledger.ts'

/** What a trip holds between two of its fills, or between a fill and its end. */
export interface Step {
  readonly fromTime: number
  readonly fromPrice: number
  readonly toTime: number
  readonly toPrice: number
  readonly qty: number
  /** The largest value at cost that the trip has held until now. */
  readonly peak: number
  /** Value at cost that enters at the beginning of the step, and that leaves at its end. */
  readonly entered: number
  readonly left: number
}

/** A trip, or a position that is still open, with its exit at the last known price. */
export type SteppedTrip = Pick<Trade, 'sign' | 'qty' | 'entryTime' | 'entryPrice' | 'exitTime' | 'exitPrice'>

/** If the fills make another result than the mean prices, by more than this share of the entries, they are not those of the trip. */
const TOLERANCE = 0.02
/** Rounding of quantities. */
const ROUNDING = 1e-9

/**
 * Divides a trip at its fills, so that a position which is built or closed in steps is marked as it was held. `fills` are
 * those of its symbol and trial in the order of time. Of a fill that two trips share, each takes what makes up its quantity;
 * a trip without fills against its direction ends at its exit. Null if there is one entry and one exit, or the fills do not
 * fit.
 *
 * @example buys of 1 at 100 and 1 at 80, a sale of 2 at 99: 1 from 100 to 80 with a peak of 100, 2 from 80 to 99 with 180
 */
export function stepsOf(trip: SteppedTrip, fills: readonly Fill[]): readonly Step[] | null {
  const { sign, qty, entryTime, entryPrice, exitTime, exitPrice } = trip
  const parts: Part[] = []
  const to = firstFrom(fills, exitTime, true)
  for (let i = firstFrom(fills, entryTime); i < to; i += 1) {
    const { time, price, qty: units, sign: direction } = fills[i]!
    if (direction === sign || time > entryTime) parts.push({ time, price, qty: units, isEntry: direction === sign })
  }
  if (parts.every(({ isEntry }) => isEntry)) parts.push({ time: exitTime, price: exitPrice, qty, isEntry: false })
  const entries = parts.filter(({ isEntry }) => isEntry)
  const exits = parts.filter(({ isEntry }) => !isEntry)
  if (parts.length <= 2 || entries.length === 0) return null
  fit(entries, qty, entries[0]!)
  fit(exits, qty, exits.at(-1)!)
  const valueOf = (list: readonly Part[]): number => list.reduce((sum, part) => sum + part.qty * part.price, 0)
  const difference = (valueOf(exits) - valueOf(entries)) / (qty * entryPrice) - (exitPrice / entryPrice - 1)
  return Math.abs(difference) <= TOLERANCE ? stepsBetween(parts, qty) : null
}

interface Part {
  readonly time: number
  readonly price: number
  readonly isEntry: boolean
  qty: number
}

/** Takes what is too much from the part that another trip shares, and scales all to the quantity. */
function fit(parts: readonly Part[], qty: number, shared: Part): void {
  const total = (): number => parts.reduce((sum, part) => sum + part.qty, 0)
  shared.qty -= Math.min(shared.qty, Math.max(0, total() - qty))
  const scale = qty / total()
  for (const part of parts) part.qty *= scale
}

/** Null if more leaves than is there. */
function stepsBetween(parts: readonly Part[], qty: number): Step[] | null {
  const steps: Step[] = []
  let [held, value, peak, entered] = [0, 0, 0, 0]
  for (const [place, part] of parts.entries()) {
    const next = parts[place + 1]
    if (part.isEntry) {
      held += part.qty
      value += part.qty * part.price
      entered += part.qty * part.price
      peak = Math.max(peak, value)
    } else {
      if (part.qty > held + ROUNDING * qty) return null
      const left = held > 0 ? value * Math.min(1, part.qty / held) : 0
      held = Math.max(0, held - part.qty)
      value -= left
    }
    if (!next) break
    const left = next.isEntry || held === 0 ? 0 : value * Math.min(1, next.qty / held)
    const { time: fromTime, price: fromPrice } = part
    steps.push({ fromTime, fromPrice, toTime: next.time, toPrice: next.price, qty: held, peak, entered, left })
    entered = 0
  }
  return steps
}

/** The place of the first fill at or after a time, or after it. */
function firstFrom(fills: readonly Fill[], time: number, isAfter = false): number {
  let [low, high] = [0, fills.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const at = fills[middle]!.time
    if (isAfter ? at <= time : at < time) low = middle + 1
    else high = middle
  }
  return low
}
