import { costPerSide, type Preset } from '../cost-presets.ts'
import type { Reference } from '../reference/reference-bars.ts'
import { dayStart, type ReferenceSeries } from '../reference/bar-series.ts'
import { DAY, type Fill, type OpenPosition, type TradeLedger } from '../trade-ledger.ts'
import type { Trial } from './trials.ts'
import { entryValue } from './trade-returns.ts'
import { type Step, type SteppedTrip, stepsOf } from './trip-steps.ts'

/** The trials of a ledger as series of days. */
export interface PortfolioDays {
  /** Days since 1970 on which a market was open, ascending, from the first entry to the last exit of any trial. */
  readonly days: Int32Array
  /** The places of the judged trial in `days`: its first day, and the one after its last. */
  readonly from: number
  readonly to: number
  /** Profit of each day after costs, for one unit per trade, by the index of the trial. */
  readonly units: ReadonlyMap<number, Float64Array>
  /** Profit of the judged trial in money; null if quantities are missing or currencies differ. */
  readonly money: Float64Array | null
  /** Mean return of holding the symbols of the judged trial; NaN on days for which none of them has a bar. */
  readonly holding: Float64Array
  /** Return of the benchmark of the request; NaN on days without a bar, null without bars. */
  readonly benchmark: Float64Array | null
  /** Share of the days with a position on which every position has a price of that day. */
  readonly markedShare: number
  /** Sum of the squared results of the trips of the judged trial, open ones included, for one unit each. */
  readonly tripSquares: number
  /** Open positions of the judged trial at their last prices. */
  readonly open: readonly MarkedPosition[]
}

export interface MarkedPosition {
  readonly position: OpenPosition
  /** Last known price, of the bars or of the file, and its day. */
  readonly price: number
  readonly day: number
  /** Return of one unit after the costs of the entry. */
  readonly unit: number
}

interface Parts {
  readonly ledger: TradeLedger
  readonly trials: readonly Trial[]
  readonly judged: Trial
  readonly preset: Preset
  readonly extraBps: number
}

/** A ledger that spans more days has an unreadable time in it. */
const MAX_DAYS = 60_000
/** Trials times days. Above this number, only the judged trial is marked. */
const MAX_CELLS = 5_000_000
/** A market that is closed for more days in a row is not closed: its prices are missing. */
const MAX_CLOSED_DAYS = 5

/**
 * Marks the positions of a ledger day by day, one symbol at a time. A day's mark is the close of the symbol's bar, otherwise
 * the price of its last fill on that day. The unit profit of a trade is its sign times the change of the mark, divided by
 * its entry price; the costs of each side are paid on its day. Of a trip with several entries, the unit is what it has held. Without a mark, the profit falls on the next day with one.
 * An open position is held to its last known price. The work grows with trades plus days, because the weights of open
 * trades are running sums.
 *
 * @example long from 100, closes 102 and 101, out at 103 the day after: 0.02, -0.01 and 0.02 before costs
 */
export class PortfolioMarker {
  readonly #parts: Parts
  readonly #first: number
  readonly #length: number
  /** By the index of the trial. */
  readonly #trials: ReadonlyMap<number, Trial>
  readonly #trades: readonly Map<number, number[]>[]
  readonly #positions: readonly OpenPosition[][]
  readonly #units = new Map<number, Float64Array>()
  readonly #money: Float64Array | null
  readonly #holding: Means
  #benchmark: Float64Array | null = null
  readonly #prices: Prices
  readonly #running: RunningPosition
  readonly #priced: Uint8Array
  readonly #covered: Uint8Array
  readonly #held: Uint8Array
  readonly #unmarked: Uint8Array
  readonly #open: MarkedPosition[] = []
  #from = Infinity
  #to = -Infinity
  #tripSquares = 0

  /** Null if the ledger spans too many days. */
  static of(parts: Parts): PortfolioMarker | null {
    const { first, last } = extentOf(parts.ledger)
    return last - first < MAX_DAYS ? new PortfolioMarker(parts, first, last) : null
  }

  private constructor(parts: Parts, first: number, last: number) {
    const { ledger, trials, judged } = parts
    this.#parts = parts
    this.#first = first
    const length = last - first + 1
    this.#length = length
    const marked = trials.length * length <= MAX_CELLS ? trials : [judged]
    this.#trials = new Map(marked.map((trial) => [trial.index, trial]))
    for (const { index } of marked) this.#units.set(index, new Float64Array(length))
    this.#trades = tradesBySymbol(marked, ledger.symbols.length)
    this.#positions = ledger.symbols.map((): OpenPosition[] => [])
    for (const position of ledger.openPositions) this.#positions[position.symbol]?.push(position)
    this.#money = hasMoney(ledger, judged) ? new Float64Array(length) : null
    this.#holding = emptyMeans(length)
    this.#prices = {
      close: new Float64Array(length),
      before: new Float64Array(length),
      isMarked: new Uint8Array(length),
      to: 0,
    }
    this.#running = new RunningPosition(length)
    this.#priced = new Uint8Array(length)
    this.#covered = new Uint8Array(length)
    this.#held = new Uint8Array(length)
    this.#unmarked = new Uint8Array(length)
  }

  /** Adds the profits of a symbol to the days. `fills` are all fills of the symbol. */
  add(symbol: number, fills: readonly Fill[], { series, isNyse }: Reference): void {
    const { ledger, judged } = this.#parts
    const inNewYork = ledger.zoned && !ledger.daily && isNyse
    const dayAt: DayAt = (time) => dayStart(time, inNewYork) / DAY - this.#first
    const bars = series?.hasEveryDay ? series : null
    const trades = this.#trades[symbol]!
    const positions = this.#positions[symbol]!.filter(({ trial }) => this.#units.has(trial))
    this.#readPrices(fills, positions.length > 0, bars, dayAt)
    const count = [...trades.values()].reduce((sum, { length }) => sum + length, positions.length / 2)
    const byTrial = fills.length > 2 * count ? fillsByTrial(fills) : null
    for (const index of new Set([...trades.keys(), ...positions.map(({ trial }) => trial)])) {
      const trial = this.#trials.get(index)!
      this.#running.start(this.#units.get(index)!, trial === judged ? this.#money : null)
      this.#holdTrades(trial, trades.get(index) ?? [], byTrial?.get(index), dayAt)
      for (const position of positions)
        if (position.trial === index) this.#holdOpen(position, byTrial?.get(index), dayAt)
      const { from, to } = this.#running
      this.#from = Math.min(this.#from, from)
      this.#to = Math.max(this.#to, to)
      this.#running.mark(this.#prices, trial === judged ? this.#noteDay : null)
    }
    if (!trades.has(judged.index) && !positions.some(({ trial }) => trial === judged.index)) return
    if (bars) addReturns(this.#holding, bars, this.#first)
  }

  /** Sets the bars of the benchmark of the request. */
  setBenchmark(series: ReferenceSeries): void {
    const returns = emptyMeans(this.#length)
    addReturns(returns, series, this.#first)
    this.#benchmark = meansOf(returns)
  }

  finish(): PortfolioDays {
    const at = this.#openDays()
    // A profit on a day without a market, such as a fill on a holiday, falls on the next day with one.
    const joined = (values: Float64Array): Float64Array => {
      const sums = new Float64Array(at.length)
      let next = 0
      for (let day = this.#from; day <= this.#to; day += 1) {
        while (next < at.length - 1 && at[next]! < day) next += 1
        sums[next]! += values[day]!
      }
      return sums
    }
    const picked = (values: Float64Array): Float64Array => Float64Array.from(at, (day) => values[day]!)
    const held = Array.from(at.keys()).filter((place) => this.#held[at[place]!] === 1)
    const unmarked = held.filter((place) => this.#unmarked[at[place]!] === 1)
    return {
      days: at.map((day) => this.#first + day),
      from: held[0] ?? 0,
      to: (held.at(-1) ?? -1) + 1,
      units: new Map([...this.#units].map(([index, values]) => [index, joined(values)])),
      money: this.#money && joined(this.#money),
      holding: picked(meansOf(this.#holding)),
      benchmark: this.#benchmark && picked(this.#benchmark),
      markedShare: held.length > 0 ? 1 - unmarked.length / held.length : 0,
      tripSquares: this.#tripSquares,
      open: this.#open,
    }
  }

  /** The days on which a market was open: those with a price, and working days of which no bars tell. */
  #openDays(): Int32Array {
    const length = Math.max(0, this.#to - this.#from + 1)
    const days = Array.from({ length }, (_, i) => this.#from + i)
    const weekends = days.filter((day) => isWeekend(this.#first + day))
    const tradesOnWeekends = 2 * weekends.filter((day) => this.#priced[day] === 1).length > weekends.length
    const isOpen = (day: number): boolean =>
      this.#priced[day] === 1 || (this.#covered[day] === 0 && (tradesOnWeekends || !isWeekend(this.#first + day)))
    return Int32Array.from(days.filter(isOpen))
  }

  /** Reads the marks of a symbol from its first fill on: to its last one, or to the end if a position is open. */
  #readPrices(fills: readonly Fill[], isOpen: boolean, bars: ReferenceSeries | null, dayAt: DayAt): void {
    const { close, before, isMarked } = this.#prices
    const { from, last } = daysOfFills(fills, dayAt)
    const to = isOpen ? this.#length - 1 : last
    this.#prices.to = to
    close.fill(Number.NaN, from, to + 1)
    // Fills of one symbol come in no order: a day's last one is found with its time, kept in `before` meanwhile.
    before.fill(-Infinity, from, to + 1)
    for (const { time, price } of fills) {
      const day = dayAt(time)
      if (time < before[day]!) continue
      before[day] = time
      close[day] = price
    }
    const [first, end] = bars ? [daysOf(bars, 0) - this.#first, daysOf(bars, -1) - this.#first] : [Infinity, -Infinity]
    for (let i = 0; bars && i < bars.time.length; i += 1) {
      const day = Math.floor(bars.time[i]! / DAY) - this.#first
      if (day >= from && day <= to) close[day] = bars.close[i]!
    }
    let [known, age] = [Number.NaN, Infinity]
    for (let day = from; day <= to; day += 1) {
      before[day] = known
      age += 1
      const isCovered = day >= first && day <= end
      if (isCovered) this.#covered[day] = 1
      if (!Number.isNaN(close[day]!)) {
        known = close[day]!
        age = 0
        this.#priced[day] = 1
      }
      isMarked[day] = age === 0 || (isCovered ? age <= MAX_CLOSED_DAYS : isWeekend(this.#first + day)) ? 1 : 0
    }
  }

  #holdTrades(trial: Trial, places: readonly number[], fills: readonly Fill[] | undefined, dayAt: DayAt): void {
    const { instruments } = this.#parts.ledger
    const { gross, net } = trial.returns
    const isJudged = trial === this.#parts.judged
    for (const place of places) {
      const trade = trial.trades[place]!
      const half = (gross[place]! - net[place]!) / 2
      const value = this.#money ? entryValue(trade, instruments) : 0
      this.#hold({ trip: trade, fills, entryCost: half, exitCost: half, value, isJudged }, dayAt)
    }
  }

  /** Holds an open position to the last known price. Its exit costs nothing yet. */
  #holdOpen(position: OpenPosition, fills: readonly Fill[] | undefined, dayAt: DayAt): void {
    const { sign, entryPrice, entryTime, lastTime, lastPrice, trial } = position
    const { close, to } = this.#prices
    const first = dayAt(entryTime)
    let last = to
    while (last > first && Number.isNaN(close[last]!)) last -= 1
    const isLater = last > dayAt(lastTime)
    const price = isLater ? close[last]! : lastPrice
    const noon = (this.#first + last + 0.5) * DAY
    const trip = { ...position, exitTime: isLater ? noon : lastTime, exitPrice: price }
    const cost = this.#entryCost(position)
    const value = this.#money ? entryValue(position, this.#parts.ledger.instruments) : 0
    const isJudged = trial === this.#parts.judged.index
    this.#hold({ trip, fills, entryCost: cost, exitCost: 0, value, isJudged }, dayAt)
    if (!isJudged) return
    const unit = sign * (price / entryPrice - 1) - cost
    this.#open.push({ position, price, day: this.#first + last, unit })
  }

  /** Holds a trip for one unit, and takes the costs of a side on its days. Adds the square of its result to the sum. */
  #hold(charged: Charged, dayAt: DayAt): void {
    const { trip, fills, entryCost, exitCost, value, isJudged } = charged
    const steps = fills && stepsOf(trip, fills)
    if (steps) return this.#holdSteps(charged, steps, dayAt)
    const { sign, entryTime, entryPrice, exitTime, exitPrice } = trip
    const [entry, exit] = [dayAt(entryTime), dayAt(exitTime)]
    const weight = sign / entryPrice
    this.#running.hold({ entry, exit, weight, value, entryPrice, exitPrice }, this.#prices)
    this.#running.pay(entry, entryCost, value)
    this.#running.pay(exit, exitCost, value)
    if (isJudged) this.#tripSquares += (weight * (exitPrice - entryPrice) - entryCost - exitCost) ** 2
  }

  /**
   * Holds a trip step by step. Its unit is the largest value that it has held until then. Were it that of all entries, which
   * is known at the end only, those who buy more while they lose would seem to win: their losses are on large positions.
   */
  #holdSteps(charged: Charged, steps: readonly Step[], dayAt: DayAt): void {
    const { trip, entryCost, exitCost, value, isJudged } = charged
    const { sign, qty, entryPrice, exitTime, exitPrice } = trip
    const cost = qty * entryPrice
    let [result, money] = [0, 0]
    for (const { fromTime, fromPrice, toTime, toPrice, qty: held, peak, entered, left } of steps) {
      const [entry, exit] = [dayAt(fromTime), dayAt(toTime)]
      const weight = (sign * held) / peak
      const peakValue = (value * peak) / cost
      this.#running.hold(
        { entry, exit, weight, value: peakValue, entryPrice: fromPrice, exitPrice: toPrice },
        this.#prices,
      )
      const [paid, charge] = [(entryCost * entered) / peak, (exitCost * left) / peak]
      this.#running.pay(entry, paid, peakValue)
      this.#running.pay(exit, charge, peakValue)
      const profit = weight * (toPrice - fromPrice)
      result += profit - paid - charge
      money += profit * peakValue
    }
    // Fees in kind and remainders make a small difference.
    this.#running.settle(dayAt(exitTime), sign * (exitPrice / entryPrice - 1) * value - money)
    if (isJudged) this.#tripSquares += result * result
  }

  /** Costs of an entry as a share of its value: the fees of the file replace the commission of the preset. */
  #entryCost(position: OpenPosition): number {
    const { ledger, preset, extraBps } = this.#parts
    const { fees } = position
    const paid = fees / entryValue(position, ledger.instruments)
    const perSide = (costPerSide(preset) + extraBps) * 1e-4
    return Number.isFinite(paid) && fees !== 0 ? perSide - preset.commission * 1e-4 + paid : perSide
  }

  readonly #noteDay = (day: number): void => {
    this.#held[day] = 1
    if (this.#prices.isMarked[day] === 0) this.#unmarked[day] = 1
  }
}

/** The day of a time, counted from the first day of the ledger. */
type DayAt = (time: number) => number

/** The marks of one symbol. */
interface Prices {
  /** Last price of each day; NaN if none is known. */
  readonly close: Float64Array
  /** Last price before the day; NaN if none is known. */
  readonly before: Float64Array
  /** 1 on days with a price, and on days on which the market of the symbol was closed. */
  readonly isMarked: Uint8Array
  /** The last day for which they are read. */
  to: number
}

interface Charged {
  readonly trip: SteppedTrip
  /** Those of its symbol and trial; undefined if every trade has one entry and one exit. */
  readonly fills: readonly Fill[] | undefined
  /** Shares of the value at the entry. */
  readonly entryCost: number
  readonly exitCost: number
  /** Value at the entry, in money. */
  readonly value: number
  readonly isJudged: boolean
}

interface Held {
  readonly entry: number
  readonly exit: number
  /** Sign times the quantity, divided by the value of the unit. */
  readonly weight: number
  /** Value at the entry, in money. */
  readonly value: number
  readonly entryPrice: number
  readonly exitPrice: number
}

/** The weights of the trades of one trial in one symbol, as changes from day to day. */
class RunningPosition {
  /** Sums of the weights of the trades that are open for the whole day, of one unit each and in money. */
  readonly #weights: Float64Array
  readonly #values: Float64Array
  /** Number of trades that are open at some time of the day. */
  readonly #counts: Int32Array
  #units: Float64Array = new Float64Array()
  #money: Float64Array | null = null
  from = Infinity
  to = -Infinity

  constructor(days: number) {
    this.#weights = new Float64Array(days + 1)
    this.#values = new Float64Array(days + 1)
    this.#counts = new Int32Array(days + 1)
  }

  /** Begins with the profits of a trial by day, which the other methods add to. */
  start(units: Float64Array, money: Float64Array | null): void {
    this.#units = units
    this.#money = money
    this.from = Infinity
    this.to = -Infinity
  }

  /** Adds the profits of the first and of the last day of a trade, and remembers the days between. */
  hold({ entry, exit, weight, value, entryPrice, exitPrice }: Held, { close, before }: Prices): void {
    this.from = Math.min(this.from, entry)
    this.to = Math.max(this.to, exit)
    this.#counts[entry]! += 1
    this.#counts[exit + 1]! -= 1
    if (entry === exit) return this.pay(exit, weight * (entryPrice - exitPrice), value)
    this.pay(entry, weight * (entryPrice - close[entry]!), value)
    this.pay(exit, weight * (before[exit]! - exitPrice), value)
    this.#weights[entry + 1]! += weight
    this.#weights[exit]! -= weight
    this.#values[entry + 1]! += weight * value
    this.#values[exit]! -= weight * value
  }

  /** Takes a share of the value of a trade from the profit of a day. */
  pay(day: number, share: number, value: number): void {
    this.#units[day]! -= share
    if (this.#money) this.#money[day]! -= share * value
  }

  /** Adds an amount to the profit of a day in money. */
  settle(day: number, amount: number): void {
    if (this.#money) this.#money[day]! += amount
  }

  /** Adds the profits of the days between entries and exits, names the days with a trade, and forgets the trades. */
  mark({ close, before }: Prices, note: ((day: number) => void) | null): void {
    const [units, money] = [this.#units, this.#money]
    let [weight, value, count] = [0, 0, 0]
    for (let day = this.from; day <= this.to; day += 1) {
      count += this.#counts[day]!
      // Sums of sums are not quite 0 again when nothing is held.
      weight = count === 0 ? 0 : weight + this.#weights[day]!
      value = count === 0 ? 0 : value + this.#values[day]!
      if (count === 0) continue
      note?.(day)
      if (weight === 0 || Number.isNaN(close[day]!)) continue
      const move = close[day]! - before[day]!
      units[day]! += weight * move
      if (money) money[day]! += value * move
    }
    this.#weights.fill(0, this.from, this.to + 2)
    this.#values.fill(0, this.from, this.to + 2)
    this.#counts.fill(0, this.from, this.to + 2)
  }
}

function daysOfFills(fills: readonly Fill[], dayAt: DayAt): { readonly from: number; readonly last: number } {
  let [from, last] = [Infinity, -Infinity]
  for (const { time } of fills) {
    const day = dayAt(time)
    from = Math.min(from, day)
    last = Math.max(last, day)
  }
  return { from, last }
}

const daysOf = ({ time }: ReferenceSeries, place: number): number => Math.floor(time.at(place)! / DAY)

/** The first and the last day of a ledger, since 1970. A zone moves a day by one at most. */
function extentOf({ trades, fills, openPositions }: TradeLedger): { readonly first: number; readonly last: number } {
  let [first, last] = [Infinity, -Infinity]
  const include = (time: number): void => {
    first = Math.min(first, time)
    last = Math.max(last, time)
  }
  for (const { entryTime, exitTime } of trades) {
    include(entryTime)
    include(exitTime)
  }
  for (const { time } of fills) include(time)
  for (const { entryTime, lastTime } of openPositions) {
    include(entryTime)
    include(lastTime)
  }
  return { first: Math.floor(first / DAY) - 1, last: Math.floor(last / DAY) }
}

/** The fills of a symbol by trial, each in the order of time. */
function fillsByTrial(fills: readonly Fill[]): Map<number, Fill[]> {
  const groups = new Map<number, Fill[]>()
  for (const fill of fills) {
    const group = groups.get(fill.trial)
    if (group) group.push(fill)
    else groups.set(fill.trial, [fill])
  }
  for (const group of groups.values()) group.sort((one, other) => one.time - other.time)
  return groups
}

/** For each symbol, the places of its trades in the trades of each trial. */
function tradesBySymbol(trials: readonly Trial[], symbols: number): Map<number, number[]>[] {
  const groups = Array.from({ length: symbols }, () => new Map<number, number[]>())
  for (const { index, trades } of trials)
    for (let place = 0; place < trades.length; place += 1) {
      const group = groups[trades[place]!.symbol]!
      const places = group.get(index)
      if (places) places.push(place)
      else group.set(index, [place])
    }
  return groups
}

/** Whether profits in money can be added up: all quantities are known, and all amounts are in one currency. */
function hasMoney({ instruments, openPositions }: TradeLedger, { index, trades }: Trial): boolean {
  const held = [...trades, ...openPositions.filter(({ trial }) => trial === index)]
  const currencies = new Set(held.map(({ symbol }) => instruments[symbol]?.currency ?? null))
  return currencies.size <= 1 && held.every(({ qty }) => Number.isFinite(qty))
}

/** Means over symbols, by day. */
interface Means {
  readonly sum: Float64Array
  readonly symbols: Uint32Array
}

const emptyMeans = (length: number): Means => ({ sum: new Float64Array(length), symbols: new Uint32Array(length) })

const meansOf = ({ sum, symbols }: Means): Float64Array =>
  sum.map((total, day) => (symbols[day]! > 0 ? total / symbols[day]! : Number.NaN))

/** Adds the returns of a series from close to close. The first bar counts from its open. */
function addReturns({ sum, symbols }: Means, { time, open, close, split }: ReferenceSeries, first: number): void {
  let [before, factor] = [open[0]!, 1]
  for (let i = 0; i < time.length; i += 1) {
    const day = Math.floor(time[i]! / DAY)
    factor *= split?.[i] ?? 1
    if (i + 1 < time.length && Math.floor(time[i + 1]! / DAY) === day) continue
    if (day >= first && day < first + sum.length) {
      sum[day - first]! += (close[i]! * factor) / before - 1
      symbols[day - first]! += 1
    }
    before = close[i]!
    factor = 1
  }
}

/** Saturday or Sunday. The first day of 1970 was a Thursday. */
function isWeekend(day: number): boolean {
  const weekday = (((day + 4) % 7) + 7) % 7
  return weekday === 0 || weekday === 6
}
