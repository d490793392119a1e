import { createPrintFilter, type FilteredBar, filterPrint } from '../lib/quant/bad-prints.ts'

/** Bars as columns. Products pass bulk data to each other as typed arrays, which are not validated again. */
export interface Bars {
  readonly symbol: string
  readonly venue: string
  readonly interval_seconds: number
  readonly count: number
  /** Open of each bar, epoch seconds, ascending. */
  readonly time: Float64Array
  readonly open: Float64Array
  readonly high: Float64Array
  readonly low: Float64Array
  readonly close: Float64Array
  readonly volume: Float64Array
  /** The state of each bar: CLOSED, FILLED or REVISED. */
  readonly state: Uint8Array
}

/** State of a bar as the venue sent it. */
export const CLOSED = 0
/** State of a bar in which nothing traded: flat at the previous close. */
export const FILLED = 1
/** State of a bar that was corrected later, or that came after its minute had been given up. */
export const REVISED = 2

export type Columns = Omit<Bars, 'symbol' | 'venue' | 'interval_seconds'>

/** The venues behind each bar. */
export interface BarSources {
  /** Bits of the venues that agreed on it, and of those that traded at other prices from bit 16 on; 0 if not recorded. */
  readonly venues: Uint32Array
  /** The greatest difference between closes of agreeing venues, basis points; NaN if not recorded. */
  readonly spread_bps: Float32Array
}

export interface ColumnsBuilder {
  readonly add: (
    time: number,
    open: number,
    high: number,
    low: number,
    close: number,
    volume: number,
    state: number,
  ) => void
  /** Returns the columns so far as arrays of their exact size. */
  end(): Columns
}

/** The columns of numbers: time, open, high, low, close, volume. */
const NUMBERS = 6

/** Collects bars into columns. */
export function createColumns(capacity = 1024): ColumnsBuilder {
  let size = 0
  let room = capacity
  // One column after the other, each with the same room.
  let numbers = new Float64Array(room * NUMBERS)
  let states = new Uint8Array(room)
  const column = (k: number): Float64Array => numbers.subarray(k * room, k * room + size)
  function grow(): void {
    const grown = new Float64Array(2 * room * NUMBERS)
    for (let k = 0; k < NUMBERS; k += 1) grown.set(column(k), 2 * k * room)
    const grownStates = new Uint8Array(2 * room)
    grownStates.set(states)
    ;[numbers, states, room] = [grown, grownStates, 2 * room]
  }
  return {
    add(time, open, high, low, close, volume, state) {
      if (size === room) grow()
      numbers[size] = time
      numbers[room + size] = open
      numbers[2 * room + size] = high
      numbers[3 * room + size] = low
      numbers[4 * room + size] = close
      numbers[5 * room + size] = volume
      states[size] = state
      size += 1
    },
    end: () => ({
      count: size,
      time: column(0).slice(),
      open: column(1).slice(),
      high: column(2).slice(),
      low: column(3).slice(),
      close: column(4).slice(),
      volume: column(5).slice(),
      state: states.slice(0, size),
    }),
  }
}

/**
 * Aggregates bars to a longer interval of `seconds`, aligned to the epoch: first open, highest high, lowest low, last
 * close, sum of volumes. A longer bar is `filled` only if all its parts are.
 *
 * @example two minute bars (1, 3, 1, 2) and (2, 2, 1, 1) make one bar (1, 3, 1, 1)
 */
export function aggregateBars(bars: Columns, seconds: number): Columns {
  const out = createColumns(Math.ceil(bars.count / 2) + 1)
  for (let i = 0; i < bars.count;) {
    const time = Math.floor(bars.time[i]! / seconds) * seconds
    const open = bars.open[i]!
    let [high, low, close, volume, state] = [-Infinity, Infinity, open, 0, FILLED as number]
    for (; i < bars.count && bars.time[i]! < time + seconds; i += 1) {
      high = Math.max(high, bars.high[i]!)
      low = Math.min(low, bars.low[i]!)
      close = bars.close[i]!
      volume += bars.volume[i]!
      if (state === FILLED || bars.state[i] === REVISED) state = bars.state[i]!
    }
    out.add(time, open, high, low, close, volume, state)
  }
  return out.end()
}

export interface BadPrint {
  /** Index of the bar that spiked. */
  readonly index: number
  /** Close before it. The corrected bar is flat at this price. */
  readonly price: number
  /** Index of the bar that proved the spike wrong. */
  readonly provedBy: number
}

/**
 * Finds bad prints: bars that left the price by more than 8 local scales and came back at once. The result is causal:
 * bars after `provedBy` change nothing. The first 30 bars set the scale and are never bad prints.
 */
export function badPrints(bars: Columns): BadPrint[] {
  const found: BadPrint[] = []
  const filter = createPrintFilter()
  const out: FilteredBar = { open: 0, high: 0, low: 0, close: 0, verdict: 'good' }
  let waiting: { index: number; price: number }[] = []
  for (let i = 0; i < bars.count; i += 1) {
    const price = filter.close
    filterPrint(filter, out, bars.open[i]!, bars.high[i]!, bars.low[i]!, bars.close[i]!)
    if (out.verdict === 'held') {
      waiting.push({ index: i, price })
      continue
    }
    if (out.verdict === 'reverted') found.push(...waiting.map((bar) => ({ ...bar, provedBy: i })))
    waiting = []
  }
  return found
}
