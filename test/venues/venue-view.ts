/** What one request sees of the market: the truth as its venue quotes it, bent by the faults of the data. */
import type { Fault, FaultName } from './faults.ts'
import type { Bar, Book, ScriptedMarket } from './scripted-market.ts'

export interface VenueView {
  /** The clock of the venue, epoch milliseconds. It differs from the test's clock while a fault of the clock goes on. */
  readonly now: number
  /** The newest moment of which the venue has data, epoch milliseconds: now, unless its data are frozen. */
  readonly dataEnd: number
  /** True if a fault has taken the symbol off the venue. */
  isDelisted(symbol: string): boolean
  /** Bars that open in [from, to), epoch seconds, oldest first. The last one may still be forming, as on real venues. */
  bars(symbol: string, from: number, to: number): Bar[]
  book(symbol: string, levels: number): Book
  /** The last price. */
  price(symbol: string): number
}

/** Creates the view of one request. */
export function createView(market: ScriptedMarket, venue: string, clock: number, faults: readonly Fault[]): VenueView {
  const fault = (name: FaultName, symbol: string | null): Fault | undefined =>
    faults.find((one) => one.name === name && (one.symbol === undefined || one.symbol === symbol))
  const shift = (name: FaultName): number => {
    const one = fault(name, null)
    return one ? (one.seconds ?? 30) * 1000 : 0
  }
  const now = clock + shift('clock_ahead') - shift('clock_behind')
  const endOf = (symbol: string | null): number => Math.min(now, fault('frozen', symbol)?.since ?? Infinity)
  const factorOf = (symbol: string): number => {
    const scaled = fault('price_factor', symbol)
    return scaled ? (scaled.factor ?? 1.05) : 1
  }

  function barOf(symbol: string, time: number): Bar | null {
    const end = endOf(symbol)
    if (time * 1000 > end) return null
    const gap = fault('gap', symbol)
    if (gap && time >= (gap.from ?? floorMinute(gap.since)) && time < (gap.to ?? Infinity)) return null
    const flat = fault('flat', symbol)
    if (flat && time >= floorMinute(flat.since)) {
      const { close, volume, trades } = market.barAt(venue, symbol, floorMinute(flat.since) - 60)
      return { time, open: close, high: close, low: close, close, volume, trades }
    }
    if (time * 1000 + 60_000 > end) return market.forming(venue, symbol, end)
    return market.barAt(venue, symbol, time)
  }

  function bent(symbol: string, bar: Bar, isNewest: boolean): Bar {
    const tenth = (bar.time / 60) % 10
    const scaled = fault('price_factor', symbol)
    const factor = scaled && bar.time >= floorMinute(scaled.since) ? factorOf(symbol) : 1
    const next = {
      ...bar,
      open: bar.open * factor,
      high: bar.high * factor,
      low: bar.low * factor,
      close: bar.close * factor,
    }
    if (fault('false_wick', symbol) && tenth === 3) next.high *= 1.03
    if (fault('false_wick', symbol) && tenth === 8) next.low *= 0.97
    if (fault('zero_price', symbol) && isNewest) [next.low, next.close] = [0, 0]
    if (fault('impossible_bar', symbol) && isNewest) next.low = next.high * 1.001
    return next
  }

  return {
    now,
    dataEnd: endOf(null),
    isDelisted: (symbol) => fault('delisted', symbol) !== undefined,
    bars(symbol, from, to) {
      const found: Bar[] = []
      const end = Math.min(to, floorMinute(endOf(symbol)) + 60)
      for (let time = Math.ceil(from / 60) * 60; time < end; time += 60) {
        const bar = barOf(symbol, time)
        if (bar) found.push(bar)
      }
      if (faults.length === 0) return found
      const closed = floorMinute(endOf(symbol)) - 60
      return found.map((bar) => {
        const isUnfinished = bar.time === closed && fault('unfinished', symbol) !== undefined
        const real = isUnfinished ? market.forming(venue, symbol, closed * 1000 + 30_000) : bar
        return bent(symbol, real, bar.time >= closed)
      })
    },
    book(symbol, levels) {
      const at = Math.min(endOf(symbol), fault('flat', symbol)?.since ?? Infinity)
      const { bids, asks } = market.book(venue, symbol, at, levels)
      const side = (list: Book['bids']): Book['bids'] =>
        list.map(([price, quantity]) => [price * factorOf(symbol), quantity])
      if (fault('impossible_bar', symbol)) return { bids: side(asks), asks: side(bids) }
      if (fault('zero_price', symbol)) return { bids: [[0, 1], ...side(bids)], asks: side(asks) }
      return { bids: side(bids), asks: side(asks) }
    },
    price: (symbol) =>
      market.price(symbol, Math.min(endOf(symbol), fault('flat', symbol)?.since ?? Infinity)) * factorOf(symbol),
  }
}

/** The open of the minute of a moment (epoch milliseconds), in epoch seconds. */
const floorMinute = (ms: number): number => Math.floor(ms / 60_000) * 60
