/**
 * Order books with few levels that cost the same to walk, and their compact encoding. A thousand levels become some fifty
 * and a few hundred bytes.
 */
import type { Book, Level } from './order-book.ts'

/**
 * Walking the thinned book costs the same as walking the full one, up to this share of the impact (the cost beyond the half
 * spread), or up to TOLERANCE_BPS where that is more. It holds at every size that both books can fill.
 */
export const TOLERANCE = 0.01
/** See TOLERANCE, basis points of the price. */
export const TOLERANCE_BPS = 0.002
/** The most levels of a side. What lies behind them is cut off. */
const MAX_LEVELS = 100
/** Levels are merged up to this share of the tolerance. The rest is for sizes between levels, and for the rounding. */
const THINNING = 0.8
/** The most steps within a level at which the error is compared. */
const MOST_STEPS = 20

/**
 * Merges levels behind the best ones. A merged level has the quantity of its levels together and their average price, so
 * the walk through all of it costs exactly the same, and the walk that ends within it at most TOLERANCE more.
 *
 * @example thinBook({ bids: [[99, 1]], asks: [[101, 1], [101.0001, 1], [101.0001, 1]] }).asks // [[101, 1], [101.0001, 2]]
 */
export function thinBook({ bids, asks }: Book): Book {
  const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]]
  if (bid === undefined || ask === undefined) return { bids, asks }
  const middle = (bid + ask) / 2
  return { bids: thinSide(bids, middle), asks: thinSide(asks, middle) }
}

/** The best level, and the others merged as far as the tolerance allows. */
function thinSide(levels: readonly Level[], middle: number): Level[] {
  const half = Math.abs(levels[0]![0] / middle - 1) * 1e4
  const kept: Level[] = [levels[0]!]
  let worth = levels[0]![0] * levels[0]![1]
  let quantity = levels[0]![1]
  for (let start = 1; start < levels.length && kept.length < MAX_LEVELS;) {
    let end = start + 1
    while (end < levels.length && isMergeable(levels, start, end + 1, { worth, quantity, middle, half })) end += 1
    const merged = levels.slice(start, end)
    const sum = merged.reduce((total, [, size]) => total + size, 0)
    const value = merged.reduce((total, [price, size]) => total + price * size, 0)
    kept.push(merged.length === 1 ? merged[0]! : [value / sum, sum])
    worth += value
    quantity += sum
    start = end
  }
  return kept
}

/** What has been walked before a level. */
interface Before {
  readonly worth: number
  readonly quantity: number
  readonly middle: number
  readonly half: number
}

/**
 * True if the levels from `start` to before `end` may become one. The error is compared with the tolerance where a level
 * ends, and at steps within a level that is large beside what has been walked before.
 */
function isMergeable(levels: readonly Level[], start: number, end: number, before: Before): boolean {
  let [sum, value] = [0, 0]
  for (let i = start; i < end; i += 1) {
    sum += levels[i]![1]
    value += levels[i]![0] * levels[i]![1]
  }
  const average = value / sum
  const costOf = (worth: number, quantity: number): number => Math.abs(worth / quantity / before.middle - 1) * 1e4
  let { worth, quantity } = before
  for (let i = start; i < end; i += 1) {
    const [price, size] = levels[i]!
    const steps = Math.min(MOST_STEPS, Math.max(1, Math.ceil((10 * price * size) / worth)))
    for (let step = 0; step < steps; step += 1) {
      worth += (price * size) / steps
      quantity += size / steps
      const cost = costOf(worth, quantity)
      const error = Math.abs(costOf(worth, before.quantity + (worth - before.worth) / average) - cost)
      if (error > THINNING * Math.max(TOLERANCE_BPS, TOLERANCE * (cost - before.half))) return false
    }
  }
  return true
}

const VERSION = 1
/** Version, best bid and best ask. */
const HEAD = 17
/** Prices behind the best one are written in this share of the middle: a hundred-thousandth of a basis point. */
const PRICE_UNIT = 1e-9

/** A book as bytes: the best prices exactly, the others to 1e-5 bps, and quantities to seven digits. */
export function encodeBook({ bids, asks }: Book): Buffer {
  const [bid, ask] = [bids[0]![0], asks[0]![0]]
  const unit = PRICE_UNIT * ((bid + ask) / 2)
  const head = Buffer.alloc(HEAD)
  head.writeUInt8(VERSION, 0)
  head.writeDoubleLE(bid, 1)
  head.writeDoubleLE(ask, 9)
  const parts: Uint8Array[] = [head]
  for (const side of [bids, asks]) {
    parts.push(wholeNumber(side.length))
    let before = 0
    for (const [price, quantity] of side) {
      const distance = Math.round(Math.abs(price - side[0]![0]) / unit)
      const size = Buffer.alloc(4)
      size.writeFloatLE(quantity)
      parts.push(wholeNumber(distance - before), size)
      before = distance
    }
  }
  return Buffer.concat(parts)
}

/** The book of `encodeBook`. Throws RangeError for bytes of a later release, and for bytes that are cut off. */
export function decodeBook(bytes: Uint8Array): Book {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (buffer.length < HEAD || buffer.readUInt8(0) !== VERSION)
    throw new RangeError('an order book that this release cannot read')
  const best = [buffer.readDoubleLE(1), buffer.readDoubleLE(9)] as const
  const unit = PRICE_UNIT * ((best[0] + best[1]) / 2)
  let at = HEAD
  const next = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = buffer[at]
      if (byte === undefined) throw new RangeError('an order book that is cut off')
      at += 1
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  const side = (first: number, sign: 1 | -1): Level[] => {
    let distance = 0
    return Array.from({ length: next() }, (): Level => {
      distance += next()
      const price = first + sign * distance * unit
      if (at + 4 > buffer.length) throw new RangeError('an order book that is cut off')
      at += 4
      return [price, buffer.readFloatLE(at - 4)]
    })
  }
  return { bids: side(best[0], -1), asks: side(best[1], 1) }
}

/** A whole number, seven bits a byte, the low ones first. */
function wholeNumber(value: number): Uint8Array {
  const bytes: number[] = []
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128)
  return Uint8Array.from([...bytes, value])
}
