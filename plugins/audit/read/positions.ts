import type { Fill, Remainder, Trade, UnmarkedPosition } from '../trade-ledger.ts'

/** A fill as the file states it. Its fee leaves out what was paid in kind. */
export interface Execution extends Omit<Fill, 'leg'> {
  /** Units of the instrument that were paid as a fee; they leave the position. */
  readonly kind: number
  /** Profit that the file states for this fill; NaN if it states none. */
  readonly pnl: number
  /** 1 or -1 for the long or the short position of an account that holds both at once; 0 if there is one. */
  readonly book: 0 | 1 | -1
}

export interface PositionHistory {
  /** Trips from flat to flat, and the closed parts of positions that are still open. */
  readonly trades: readonly Trade[]
  /** By position, each in the order of time. */
  readonly fills: readonly Fill[]
  readonly open: readonly UnmarkedPosition[]
  readonly remainders: readonly Remainder[]
  /** Trades that are the closed part of an open position. */
  readonly partlyClosed: number
  /** Fills that close a position which the file does not open. */
  readonly unopened: number
}

/** What is left below this share of the largest size of a trip is not a position. */
const CRUMB_SHARE = 0.01
/** What is left above this share of the largest size is a position, even if it is less than a lot. */
const LOT_SHARE = 0.1
/** Different quantities that must be multiples of a lot before it is believed. */
const LOT_EVIDENCE = 3
/** Rounding of sums. */
const ROUNDING = 1e-9

/**
 * Turns fills into trips of positions. A trip begins when a position is opened from flat and ends when it is flat again,
 * with all entries and exits between. A fill through zero ends one trip and begins the next; its fee is divided by
 * quantity. What is left below a lot or 1 % of the largest size is a remainder: the next entry begins a new trip, and later
 * sales may use the remainder up. The fills must be in the order of time.
 *
 * A remainder counts in its trip at the price of the last exit; what it brings beyond that, when it is sold, counts in the
 * trip that sells it. For a position that ends flat, the sum of sign·qty·(exit - entry) - fees is the sum of cash.
 *
 * @example buys of 1 at 100 and 1 at 102, a sale of 2 at 103: one trade of 2 from 101 to 103
 */
export function positionHistory(executions: readonly Execution[]): PositionHistory {
  const books = new Map<string | number, Execution[]>()
  for (const execution of executions) {
    const { symbol, trial, book } = execution
    const key = (trial * 0x1000000 + symbol) * 3 + book
    const known = books.get(key)
    if (known) known.push(execution)
    else books.set(key, [execution])
  }
  const history: MutableHistory = { trades: [], fills: [], open: [], remainders: [], partlyClosed: 0, unopened: 0 }
  for (const fills of books.values()) new Book(fills, history).replay()
  return history
}

interface MutableHistory {
  readonly trades: Trade[]
  readonly fills: Fill[]
  readonly open: UnmarkedPosition[]
  readonly remainders: Remainder[]
  partlyClosed: number
  unopened: number
}

/** A remainder of which part may have been used up. */
interface Crumb extends Omit<Remainder, 'qty' | 'price'> {
  qty: number
  price: number
}

/** The position in one symbol and one trial. */
class Book {
  readonly #executions: readonly Execution[]
  readonly #history: MutableHistory
  /** Remainders, the oldest first; those that are left have the same sign. */
  readonly #crumbs: Crumb[] = []
  /** Index of the oldest remainder that is left. */
  #oldest = 0
  /** The trip of the newest remainder. */
  #crumbTrip: Trip | null = null
  /** Units of the remainders that are left. */
  #crumbUnits = 0
  #trip: Trip | null = null
  /** Whether fees were paid in kind, so that an order may close a little more than the position. */
  readonly #hasKind: boolean
  /** Whether the present order sells so little beyond the position that it opens none. */
  #isRestOwed = false
  /** Whether the present order only uses up remainders. */
  #coversCrumbs = false
  #lots: { up: number; down: number } | null = null

  constructor(executions: readonly Execution[], history: MutableHistory) {
    this.#executions = executions
    this.#hasKind = executions.some(({ kind }) => kind !== 0)
    this.#history = history
  }

  replay(): void {
    const executions = this.#executions
    for (let start = 0, end = 0; start < executions.length; start = end) {
      const first = executions[start]!
      let units = unitsOf(first)
      end = start + 1
      // Fills in the same direction at the same time are one order.
      for (let next = executions[end]; next?.time === first.time && next.sign === first.sign; next = executions[end]) {
        units += unitsOf(next)
        end += 1
      }
      const leg = this.#startOrder(first, units)
      for (let i = start; i < end; i += 1) {
        const execution = executions[i]!
        this.#take(execution)
        const { row, symbol, trial, sign, time, price, qty, fee, kind } = execution
        const paid = kind === 0 ? fee : (fee || 0) + kind * price
        this.#history.fills.push({ row, leg, symbol, trial, sign, time, price, qty, fee: paid })
      }
    }
    this.#finish()
  }

  /** Ends the trip before an order that does not belong to it. Returns whether the order opens or closes a position. */
  #startOrder({ sign, book }: Execution, units: number): Fill['leg'] {
    const trip = this.#trip
    if (!trip) return book !== 0 && sign !== book ? 'exit' : 'entry'
    const crumb = this.#crumbs[this.#oldest]
    const isOnlyCrumbs = crumb !== undefined && crumb.sign !== sign && units <= this.#crumbUnits * (1 + ROUNDING)
    if (trip.isFlat() && isOnlyCrumbs) {
      this.#coversCrumbs = true
      return 'exit'
    }
    this.#coversCrumbs = false
    if (trip.isFlat() && (sign === trip.sign || crumb?.sign !== trip.sign)) this.#close(trip)
    else if (sign === trip.sign && trip.hasExits() && this.#isCrumb(trip, trip.size)) this.#close(trip)
    if (!this.#trip || sign === trip.sign) return 'entry'
    const crumbs = this.#crumbs[this.#oldest]?.sign === trip.sign ? this.#crumbUnits : 0
    const rest = units - trip.size - crumbs
    this.#isRestOwed = rest > 0 && this.#hasKind && this.#isCrumb(trip, rest)
    return 'exit'
  }

  #take(order: Execution): void {
    const trip = this.#trip
    if (!trip) {
      if (order.book !== 0 && order.sign !== order.book) this.#history.unopened += 1
      else this.#trip = new Trip(order, 1)
    } else if (this.#coversCrumbs) this.#useCrumbs(trip, order, unitsOf(order))
    else if (order.sign === trip.sign) trip.enter(order, 1)
    else this.#exit(trip, order)
  }

  #exit(trip: Trip, order: Execution): void {
    const units = unitsOf(order)
    const share = Math.min(1, trip.size / units)
    if (share > 0) trip.exit(order, share)
    let left = units * (1 - share)
    if (left <= ROUNDING * trip.largest) return
    left -= this.#useCrumbs(trip, order, left)
    if (left <= ROUNDING * trip.largest) return
    if (order.book !== 0) this.#history.unopened += 1
    else if (this.#isRestOwed) this.#owe(trip, order, left)
    else {
      this.#close(trip)
      this.#trip = new Trip(order, left / units)
    }
  }

  /** Sells remainders of earlier trips with the last exit of this one. Their gain since then belongs to this trip. */
  #useCrumbs(trip: Trip, order: Execution, wanted: number): number {
    let used = 0
    let cost = 0
    for (let crumb = this.#crumbs[this.#oldest]; crumb?.sign === -order.sign; crumb = this.#crumbs[this.#oldest]) {
      if (used >= wanted) break
      const qty = Math.min(crumb.qty, wanted - used)
      used += qty
      cost += qty * crumb.price
      crumb.qty -= qty
      this.#crumbUnits -= qty
      if (crumb.qty <= ROUNDING * trip.largest) this.#oldest += 1
    }
    const share = used / unitsOf(order)
    if (used > 0) trip.exitExtra(order, share, -order.sign * trip.sign * (share * order.qty * order.price - cost))
    return used
  }

  /** Books what was sold beyond the position, too little to be a position itself. */
  #owe(trip: Trip, order: Execution, qty: number): void {
    const share = qty / unitsOf(order)
    trip.exitExtra(order, share, share * order.qty * order.price - qty * order.price)
    this.#keep(trip, -trip.sign as 1 | -1, qty, order.price, order.row)
  }

  /** Keeps a remainder at the price of the last exit. It first cancels remainders of the opposite sign. */
  #keep(trip: Trip, sign: 1 | -1, qty: number, price: number, row: number): void {
    let left = qty
    for (let crumb = this.#crumbs[this.#oldest]; crumb && crumb.sign !== sign; crumb = this.#crumbs[this.#oldest]) {
      if (left <= 0) break
      const cancelled = Math.min(left, crumb.qty)
      trip.exitValue -= sign * trip.sign * cancelled * (price - crumb.price)
      left -= cancelled
      crumb.qty -= cancelled
      this.#crumbUnits -= cancelled
      if (crumb.qty <= ROUNDING * trip.largest) this.#oldest += 1
    }
    if (left <= ROUNDING * trip.largest) return
    this.#crumbUnits += left
    const last = this.#crumbs.length > this.#oldest ? this.#crumbs.at(-1) : undefined
    if (last && this.#crumbTrip === trip) {
      last.price = (last.qty * last.price + left * price) / (last.qty + left)
      last.qty += left
      return
    }
    this.#crumbTrip = trip
    this.#crumbs.push({ row, symbol: trip.symbol, trial: trip.trial, sign, qty: left, price })
  }

  #close(trip: Trip): null {
    if (!trip.isFlat()) {
      const { sign, size, exitPrice, exitRow } = trip
      trip.value(size, exitPrice)
      this.#keep(trip, sign, size, exitPrice, exitRow)
    }
    this.#history.trades.push(trip.trade(1))
    return (this.#trip = null)
  }

  #finish(): void {
    const trip = this.#trip
    if (trip && trip.hasExits() && (trip.isFlat() || this.#isCrumb(trip, trip.size))) this.#close(trip)
    else if (trip) {
      const closed = trip.closedShare()
      if (closed > 0) {
        this.#history.trades.push(trip.trade(closed))
        this.#history.partlyClosed += 1
      }
      this.#history.open.push(trip.openPart(closed))
    }
    for (const crumb of this.#crumbs.slice(this.#oldest)) this.#history.remainders.push(crumb)
  }

  #isCrumb(trip: Trip, size: number): boolean {
    if (size < CRUMB_SHARE * trip.largest * (1 - ROUNDING)) return true
    if (size >= LOT_SHARE * trip.largest) return false
    const lots = (this.#lots ??= { up: lotOf(this.#executions, 1), down: lotOf(this.#executions, -1) })
    const lot = trip.sign === 1 ? lots.down : lots.up
    return size < lot * (1 - ROUNDING)
  }
}

/** A trip while it lasts. */
class Trip {
  readonly sign: 1 | -1
  readonly symbol: number
  readonly trial: number
  readonly row: number
  readonly entryTime: number
  /** What is held, positive. */
  size = 0
  largest = 0
  exitRow = -1
  exitPrice = Number.NaN
  exitValue = 0
  #exitTime = Number.NaN
  #entered = 0
  #entryValue = 0
  #exited = 0
  #entryFees = Number.NaN
  #exitFees = Number.NaN
  #kind = 0
  #pnl = Number.NaN

  constructor(order: Execution, share: number) {
    this.sign = order.sign
    this.symbol = order.symbol
    this.trial = order.trial
    this.row = order.row
    this.entryTime = order.time
    this.enter(order, share)
  }

  hasExits = (): boolean => this.#exited > 0
  isFlat = (): boolean => this.size === 0

  /** Adds a share of an order to the position. */
  enter(order: Execution, share: number): void {
    const { qty, price, fee, kind, pnl } = order
    this.#entered += share * qty
    this.#entryValue += share * qty * price
    this.#entryFees = plus(this.#entryFees, share * fee)
    this.#kind += share * kind
    this.#pnl = plus(this.#pnl, share === 1 ? pnl : Number.NaN)
    this.size += share * unitsOf(order)
    this.largest = Math.max(this.largest, this.size)
  }

  /** Takes a share of an order from the position. */
  exit(order: Execution, share: number): void {
    const { qty, price, fee, kind, pnl, time, row } = order
    this.#exited += share * qty
    this.exitValue += share * qty * price
    this.#exitFees = plus(this.#exitFees, share * fee)
    this.#kind += share * kind
    // The profit of a fill through zero is that of the part which closes.
    this.#pnl = plus(this.#pnl, pnl)
    this.size -= share * unitsOf(order)
    if (this.size <= ROUNDING * this.largest) this.size = 0
    this.#exitTime = time
    this.exitRow = row
    this.exitPrice = price
  }

  /** Counts a share of an order that trades more than the position: its fee, and its gain, which is signed as exits are. */
  exitExtra({ fee }: Execution, share: number, gain: number): void {
    this.exitValue += gain
    this.#exitFees = plus(this.#exitFees, share * fee)
  }

  /** Counts what is left as if it were closed at a price. */
  value(qty: number, price: number): void {
    this.#exited += qty
    this.exitValue += qty * price
    this.size = 0
  }

  /** The share of the entries that the exits have closed. */
  closedShare = (): number => (this.#exited > 0 ? this.#exited / (this.#exited + this.size) : 0)

  /** The trade of a share of the entries and of all exits. Fees in kind count at the mean exit price. */
  trade(share: number): Trade {
    const exitPrice = this.exitValue / this.#exited
    const paid = plus(share === 1 ? this.#entryFees : share * this.#entryFees, this.#exitFees)
    return {
      row: this.row,
      exitRow: this.exitRow,
      symbol: this.symbol,
      sign: this.sign,
      qty: share * this.#entered,
      entryTime: this.entryTime,
      exitTime: this.#exitTime,
      entryPrice: this.#entryValue / this.#entered,
      exitPrice,
      fees: this.#kind === 0 ? paid : (paid || 0) + share * this.#kind * exitPrice,
      pnl: this.#pnl,
      trial: this.trial,
    }
  }

  /** What is still open, with its share of the fees of the entries. Fees in kind count at the mean entry price. */
  openPart(closedShare: number): UnmarkedPosition {
    const entryPrice = this.#entryValue / this.#entered
    const share = 1 - closedShare
    const paid = share * this.#entryFees
    const { row, symbol, trial, sign, size: qty, entryTime } = this
    const fees = this.#kind === 0 ? paid : (paid || 0) + share * this.#kind * entryPrice
    return { row, symbol, trial, sign, qty, entryTime, entryPrice, fees }
  }
}

/** The sum of two amounts of which either may be unknown. */
const plus = (sum: number, value: number): number =>
  Number.isNaN(value) ? sum : Number.isNaN(sum) ? value : sum + value

/** By how much an order changes the position, positive: a fee in kind makes a purchase smaller and a sale larger. */
const unitsOf = ({ sign, qty, kind }: Execution): number => qty - sign * kind

/** The largest power of ten of which all orders on one side are multiples; 0 if there are too few different ones. */
function lotOf(executions: readonly Execution[], sign: 1 | -1): number {
  const orders = new Map<number, number>()
  for (const { sign: side, time, qty } of executions) if (side === sign) orders.set(time, (orders.get(time) ?? 0) + qty)
  const quantities = new Set([...orders.values()].map((qty) => Number(qty.toPrecision(12))))
  if (quantities.size < LOT_EVIDENCE) return 0
  let exponent = 18
  for (const qty of quantities) {
    exponent = Math.min(exponent, Math.floor(Math.log10(qty)))
    while (exponent > -18 && Math.abs(qty / 10 ** exponent - Math.round(qty / 10 ** exponent)) > 1e-6) exponent -= 1
  }
  return 10 ** exponent
}
