/** Ledgers whose edge is known, with the bars of their symbols. The same seed gives the same ledger. */
import { nyseClosed } from '../../../plugins/lib/time/nyse-calendar.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'

export interface Simulated {
  readonly file: string
  readonly bars: string
}

/** Makes a ledger from a seed. */
export type Simulation = (seed: number) => Simulated

interface Bar {
  readonly day: string
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
}

interface SimulatedTrade {
  readonly symbol: string
  readonly sign: 1 | -1
  readonly qty: number
  readonly entry: readonly [day: string, price: number]
  readonly exit: readonly [day: string, price: number]
  readonly trial: string
}

interface Dice {
  readonly uniform: () => number
  readonly normal: () => number
  readonly coin: () => 1 | -1
}

function diceOf(seed: number): Dice {
  const uniform = seededRandom(seed)
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
  return { uniform, normal, coin: () => (uniform() < 0.5 ? 1 : -1) }
}

const DAILY = 0.015

/** Days without weekends and holidays from a Monday in 2012 on. */
const sessions: string[] = []
function sessionAt(index: number): string {
  let time = Date.UTC(2012, 0, 2) + sessions.length * 86_400_000
  if (sessions.length > 0) time = Date.parse(sessions.at(-1)!) + 86_400_000
  for (; sessions.length <= index; time += 86_400_000) {
    const day = new Date(time).toISOString().slice(0, 10)
    if (nyseClosed(day) === null) sessions.push(day)
  }
  return sessions[index]!
}

/** Daily bars of symbols whose returns share a factor. `loading` is the share of the factor in the deviation, 0 to 1. */
function makeMarket(dice: Dice, symbols: number, days: number, { drift = 0, loading = 0 } = {}): Bar[][] {
  const prices = Array.from({ length: symbols }, () => 100)
  const market = prices.map((): Bar[] => [])
  for (let i = 0; i < days; i += 1) {
    const factor = dice.normal()
    for (const [symbol, price] of prices.entries()) {
      const open = price * Math.exp(0.1 * DAILY * dice.normal())
      const own = loading * factor + Math.sqrt(1 - loading * loading) * dice.normal()
      const close = open * Math.exp(drift - (DAILY * DAILY) / 2 + DAILY * own)
      const high = Math.max(open, close) * (1 + 0.3 * DAILY * dice.uniform())
      const low = Math.min(open, close) * (1 - 0.3 * DAILY * dice.uniform())
      market[symbol]!.push({ day: sessionAt(i), open, high, low, close })
      prices[symbol] = close
    }
  }
  return market
}

const inside = ({ low, high }: Bar, dice: Dice): number => low + (high - low) * (0.1 + 0.8 * dice.uniform())
const at = (bar: Bar, dice: Dice): readonly [string, number] => [bar.day, inside(bar, dice)]

function written(trades: readonly SimulatedTrade[], market: readonly Bar[][]): Simulated {
  const lines = trades.map(({ symbol, sign, qty, entry, exit, trial }) =>
    [trial, symbol, sign === 1 ? 'long' : 'short', qty, ...entry, ...exit].join(','),
  )
  const bars = market.flatMap((list, index) =>
    list.map(({ day, open, high, low, close }) => [`S${index}`, day, open, high, low, close].join(',')),
  )
  return {
    file: ['trial,symbol,side,qty,entry_time,entry_price,exit_time,exit_price', ...lines, ''].join('\n'),
    bars: ['symbol,date,open,high,low,close', ...bars, ''].join('\n'),
  }
}

interface Sequence {
  readonly trades: number
  /** Days from entry to exit, and from exit to the next entry. */
  readonly holding: number
  readonly pause: number
  /** Expected t statistic of the returns. */
  readonly t?: number
  readonly trial?: string
}

/** Trades of one symbol, one after the other, of which enough go the right way for the wanted t statistic. */
function sequence(bars: readonly Bar[], dice: Dice, { trades, holding, pause, t = 0, trial = 'a' }: Sequence) {
  // A normal move has a mean absolute value of √(2/π) deviations.
  const ratio = t / Math.sqrt(trades)
  const right = 0.5 + ratio / Math.sqrt(1 + ratio * ratio) / Math.sqrt(2 / Math.PI) / 2
  return Array.from({ length: trades }, (_, i): SimulatedTrade => {
    const first = i * (holding + pause)
    const [entry, exit] = [at(bars[first]!, dice), at(bars[first + holding]!, dice)]
    const move = exit[1] >= entry[1] ? 1 : -1
    const sign = dice.uniform() < right ? move : move === 1 ? -1 : 1
    return { symbol: 'S0', sign, qty: 100, entry, exit, trial }
  })
}

/** A small sample without an edge: fifteen trades of one day, far apart. */
export const sparse: Simulation = (seed) => {
  const dice = diceOf(seed)
  const [bars = []] = makeMarket(dice, 1, 301)
  return written(sequence(bars, dice, { trades: 15, holding: 1, pause: 19 }), [bars])
}

/** Independent trades without an edge. */
export const independent: Simulation = (seed) => {
  const dice = diceOf(seed)
  const [bars = []] = makeMarket(dice, 1, 1001)
  return written(sequence(bars, dice, { trades: 250, holding: 3, pause: 1 }), [bars])
}

/** Trades of five symbols with one factor, entered every day and held for ten, without an edge. */
export const overlapping =
  (side: 'long' | 'by_day' | 'by_trade'): Simulation =>
  (seed) => {
    const dice = diceOf(seed)
    const market = makeMarket(dice, 5, 510, { loading: 0.9 })
    const trades: SimulatedTrade[] = []
    for (let day = 0; day < 500; day += 1) {
      const common = dice.coin()
      for (const [symbol, bars] of market.entries()) {
        const sign = side === 'long' ? 1 : side === 'by_day' ? common : dice.coin()
        const [entry, exit] = [at(bars[day]!, dice), at(bars[day + 10]!, dice)]
        trades.push({ symbol: `S${symbol}`, sign, qty: 10, entry, exit, trial: 'a' })
      }
    }
    return written(trades, market)
  }

/** Independent trades without an edge whose size doubles after a loss, up to 1,024 times, and starts anew after a win. */
export const martingale: Simulation = (seed) => {
  const dice = diceOf(seed)
  const [bars = []] = makeMarket(dice, 1, 1001)
  let qty = 1
  const trades = sequence(bars, dice, { trades: 500, holding: 1, pause: 1 }).map((trade) => {
    const sized = { ...trade, qty }
    qty = trade.sign * (trade.exit[1] - trade.entry[1]) > 0 ? 1 : Math.min(1024, qty * 2)
    return sized
  })
  return written(trades, [bars])
}

/**
 * Fills without an edge that average down: each two percent under the last purchase the size doubles, up to 64 times, and
 * everything is sold one percent above the mean price, all at closes. Every trip wins; what is left at the end is open.
 */
export const averagingDown: Simulation = (seed) => {
  const [bars = []] = makeMarket(diceOf(seed), 1, 1001)
  const lines: string[] = []
  let [qty, value, last] = [0, 0, Infinity]
  for (const bar of bars) {
    const price = bar.close
    if (qty > 0 && price > (1.01 * value) / qty) {
      lines.push(`S0,sell,${qty},${bar.day},${price}`)
      ;[qty, value, last] = [0, 0, Infinity]
    } else if (qty === 0 || price < 0.98 * last) {
      const size = Math.min(64, Math.max(1, qty))
      lines.push(`S0,buy,${size},${bar.day},${price}`)
      qty += size
      value += size * price
      last = price
    }
  }
  return { ...written([], [bars]), file: ['symbol,side,qty,time,price', ...lines, ''].join('\n') }
}

/** Always long an index that rises by eight percent a year, in pieces of five days, for twelve years. */
export const alwaysLong =
  (gap: number): Simulation =>
  (seed) => {
    const dice = diceOf(seed)
    const days = 12 * 252
    const [bars = []] = makeMarket(dice, 1, days + 1, { drift: 0.08 / 252 })
    const trades: SimulatedTrade[] = []
    for (let day = 0; day + 5 <= days; day += 5 + gap)
      trades.push({
        symbol: 'S0',
        sign: 1,
        qty: 10,
        entry: at(bars[day]!, dice),
        exit: at(bars[day + 5]!, dice),
        trial: 'a',
      })
    return written(trades, [bars])
  }

/** Independent trades without an edge, of whose losers a share is left out. */
export const withoutLosers =
  (removed: number): Simulation =>
  (seed) => {
    const dice = diceOf(seed)
    const [bars = []] = makeMarket(dice, 1, 1001)
    const kept = sequence(bars, dice, { trades: 250, holding: 3, pause: 1 }).filter(
      ({ sign, entry, exit }) => sign * (exit[1] - entry[1]) >= 0 || dice.uniform() >= removed,
    )
    return written(kept, [bars])
  }

/** One trial with an edge whose t statistic is expected to be `t`, beside others without an edge. */
export const skilled =
  (t: number, trials: number): Simulation =>
  (seed) => {
    const dice = diceOf(seed)
    const [bars = []] = makeMarket(dice, 1, 1001)
    const shape = { trades: 250, holding: 3, pause: 1 }
    const others = Array.from({ length: trials - 1 }, (_, i) => sequence(bars, dice, { ...shape, trial: `b${i}` }))
    return written([...sequence(bars, dice, { ...shape, t }), ...others.flat()], [bars])
  }

/** Two to ten winning trades among few losers, with an edge. */
export const few: Simulation = (seed) => {
  const dice = diceOf(seed)
  const [bars = []] = makeMarket(dice, 1, 101)
  const trades = 2 + (seed % 9)
  return written(sequence(bars, dice, { trades, holding: 5, pause: 2, t: 3 * Math.sqrt(trades) }), [bars])
}
