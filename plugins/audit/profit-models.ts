/** Finds how the profits that a file states follow from its prices: contract size, commission, and their basis. */
import type { ProfitModel, Trade } from './trade-ledger.ts'
import { roundSize } from './contract-sizes.ts'

/** A cost that the stated profits contain and the file does not report. */
export interface HiddenCommission {
  /** Money a trade, money a unit for both sides, or a share of the value of each side. */
  readonly per: 'trade' | 'unit' | 'turnover'
  readonly amount: number
}

export interface FoundModel extends ProfitModel {
  readonly commission: HiddenCommission | null
}

/** A model must explain this share of the profits. */
const AGREEING_SHARE = 0.8
/** With fewer different moves, another size and commission would explain the profits as well. */
const MIN_MOVES = 4
/** The largest share of the value of one side that is a commission. */
const MAX_COMMISSION = 0.02
/** Trades that a model is searched with. */
const SAMPLE = 2000
/** Profits are written in hundredths. */
const CENT = 0.0101
/** A ratio of profit to move so near to 1 is no contract size. */
const NEAR_ONE = 0.05
/** Half a hundredth, by which a profit is rounded itself. */
const HALF_CENT = 0.005
/** A profit is wrong if it differs by this many times more than three quarters of the profits do. */
const OUTLYING = 4
const MOST = 0.75

/** A trade with a stated profit, as a model sees it. */
interface Point {
  readonly qty: number
  /** Sign times the move of the price, times the quantity. */
  readonly move: number
  readonly turnover: number
  readonly entryPrice: number
  readonly exitPrice: number
  readonly pnl: number
  readonly fees: number
}

interface Candidate {
  readonly size: number
  readonly isInverse: boolean
  readonly commission: HiddenCommission | null
}

export interface SearchParts {
  readonly trades: readonly Trade[]
  /** The size that the request or a column gives: no other is tried. */
  readonly stated: number | null
  /** The size that the name of the symbol means. */
  readonly known: number | null
}

/**
 * Finds the simplest model of the stated profits of one symbol: a known size without a commission first, then any size,
 * then both a size and a commission that is fixed for a trade or a unit or is a share of the value, and last a move that is
 * divided by the exit price. Returns null if no trade states a profit and a quantity.
 *
 * @example profits of 2·move - 1.5 for MNQ: size 2, a commission of 1.5 a trade
 */
export function findModel({ trades, stated, known }: SearchParts): FoundModel | null {
  const step = Math.max(1, Math.ceil(trades.length / SAMPLE))
  const points: Point[] = []
  let index = 0
  for (const { sign, qty, entryPrice, exitPrice, pnl, fees } of trades) {
    if (!Number.isFinite(pnl) || !Number.isFinite(qty)) continue
    index += 1
    if (index % step !== 0 && step > 1) continue
    const move = sign * qty * (exitPrice - entryPrice)
    points.push({ qty, move, turnover: qty * (entryPrice + exitPrice), entryPrice, exitPrice, pnl, fees: fees || 0 })
  }
  if (points.length === 0) return null
  const moves = distinctMoves(points)
  const sizes = stated === null ? [...new Set([1, ...(known === null ? [] : [known])])] : [stated]
  const found = search(points, { sizes, moves, isFixed: stated !== null, known })
  const few = `fewer than ${MIN_MOVES} different moves`
  if (!found) {
    const unverified = moves < MIN_MOVES ? few : 'no contract size and commission explains the stated profits'
    return { ...approximate(points, stated), unverified }
  }
  const { net, gross, isEither, tolerance } = judge(points, found)
  const basis = isEither ? null : net >= AGREEING_SHARE ? 'net' : gross >= AGREEING_SHARE ? 'gross' : null
  return { ...found, basis, tolerance, unverified: moves < MIN_MOVES ? few : null }
}

/** The profit that a model expects of a trade before reported fees, and before those. */
export function expectedProfit(
  model: FoundModel | Candidate,
  { qty, move, turnover, exitPrice }: Omit<Point, 'pnl' | 'fees' | 'entryPrice'>,
): number {
  const size = model.isInverse ? model.size / exitPrice : model.size
  return size * move - commissionOf(model.commission, qty, size * turnover)
}

/** Money of a hidden commission for a trade of a quantity, and of a value of both sides together. */
export function commissionOf(commission: HiddenCommission | null, qty: number, value: number): number {
  if (!commission) return 0
  const { per, amount } = commission
  return per === 'trade' ? amount : per === 'unit' ? amount * qty : amount * value
}

function distinctMoves(points: readonly Point[]): number {
  const moves = new Set<number>()
  for (const { move, qty } of points) {
    if (moves.size >= MIN_MOVES) break
    moves.add(Number((move / qty).toPrecision(6)))
  }
  return moves.size
}

interface SearchLimits {
  readonly sizes: readonly number[]
  readonly moves: number
  readonly isFixed: boolean
  readonly known: number | null
}

function search(points: readonly Point[], { sizes, moves, isFixed, known }: SearchLimits): Candidate | null {
  const hasFees = points.some(({ fees }) => fees !== 0)
  const plain = (size: number): Candidate => ({ size, isInverse: false, commission: null })
  const ratios = isFixed ? [] : ratiosOf(points, moves, known)
  const simple = [...sizes, ...ratios].map(plain)
  // A commission beside reported fees, or of a single move, would be a guess.
  const both = hasFees || moves < 2 ? [] : withCommission(points, sizes, isFixed ? 0 : moves)
  const inverse = isFixed || moves < MIN_MOVES ? [] : inverseSizes(points)
  const candidates = [...simple, ...both, ...inverse]
  const find = (slack: Slack): Candidate | undefined =>
    candidates.find((candidate) => agreement(points, candidate, slack) >= AGREEING_SHARE)
  return find(EXACT) ?? find(roundedSlack(points)) ?? null
}

/** By how much a profit may differ from the one that a model expects: a share of it, and steps of the price. */
interface Slack {
  readonly share: number
  readonly step: number
}

const EXACT: Slack = { share: 0, step: 0 }
const ROUNDED: Slack = { share: 0.01, step: 0 }

/** The slack of profits that were computed from prices with more decimals than the file shows. */
function roundedSlack(points: readonly Point[]): Slack {
  const decimals = points.flatMap(({ entryPrice, exitPrice }) => [entryPrice, exitPrice].map(decimalsOf))
  return { ...ROUNDED, step: 10 ** -Math.max(...decimals) }
}

const decimalsOf = (price: number): number => /\.(\d+)$/.exec(String(price))?.[1]?.length ?? 0

/** The share of the profits that a model explains, before or after the reported fees. */
function agreement(points: readonly Point[], model: Candidate, { share, step }: Slack): number {
  let agreeing = 0
  for (const point of points) {
    const expected = expectedProfit(model, point)
    const size = model.isInverse ? model.size / point.exitPrice : model.size
    const rounding = Math.max(1e-7 * size * point.turnover, step * size * point.qty)
    const slack = Math.max(CENT, rounding, share * Math.abs(expected))
    const distance = Math.min(Math.abs(point.pnl - expected), Math.abs(point.pnl - expected + point.fees))
    if (distance <= slack) agreeing += 1
  }
  return agreeing / points.length
}

/** The ratios of profit to move, before and after reported fees: sizes that contracts have, or those that many moves show. */
function ratiosOf(points: readonly Point[], moves: number, known: number | null): number[] {
  const ratios = points.flatMap(({ move, pnl, fees }) => (move === 0 ? [] : [pnl / move, (pnl + fees) / move]))
  const gross = median(ratios.filter((_, index) => index % 2 === 0))
  const net = median(ratios.filter((_, index) => index % 2 === 1))
  return [gross, net].flatMap((middle) => {
    if (!(middle > 0)) return []
    const near = known !== null && Math.abs(middle / known - 1) <= 0.002 ? known : roundSize(middle, 0.002)
    if (near === null) return moves >= MIN_MOVES && Math.abs(middle - 1) > NEAR_ONE ? [middle] : []
    const isShown =
      (near === known || points.length > 1) &&
      agreement(points, { size: near, isInverse: false, commission: null }, ROUNDED) >= AGREEING_SHARE
    return isShown ? [near] : []
  })
}

/** Models with a commission: of the given sizes, then of the slope of a line through profits and moves. */
function withCommission(points: readonly Point[], sizes: readonly number[], moves: number): Candidate[] {
  const slopes = (['trade', 'unit'] as const).flatMap((per) => {
    const slope = slopeOf(points, per)
    if (!(slope > 0)) return []
    const round = roundSize(slope, 0.002)
    return round !== null ? [round] : moves >= MIN_MOVES ? [slope] : []
  })
  const all = [...new Set([...sizes, ...(moves >= 2 && (moves > 2 || points.length >= 4) ? slopes : [])])]
  return all.flatMap((size) =>
    (['trade', 'unit', 'turnover'] as const).flatMap((per) => {
      const amounts = points.map(({ qty, move, pnl, turnover }) => {
        const cost = size * move - pnl
        return per === 'trade' ? cost : per === 'unit' ? cost / qty : cost / (size * turnover)
      })
      const amount = rounded(median(amounts), per)
      const share = median(
        points.map(({ qty, turnover }) => commissionOf({ per, amount }, qty, size * turnover) / (size * turnover)),
      )
      const commission = { per, amount }
      return share > 1e-7 && share <= MAX_COMMISSION ? [{ size, isInverse: false, commission }] : []
    }),
  )
}

/** A commission in hundredths of a cent, where it is near enough to one. */
function rounded(amount: number, per: HiddenCommission['per']): number {
  const near = Math.round(amount * 1e4) / 1e4
  return per !== 'turnover' && Math.abs(near - amount) < 1e-3 * Math.abs(amount) ? near : amount
}

/** The median slope of profit over move, by pairs of trades whose moves are far apart (Theil 1950). */
function slopeOf(points: readonly Point[], per: 'trade' | 'unit'): number {
  const line = points
    .map(({ move, pnl, qty }): [number, number] => (per === 'trade' ? [move, pnl] : [move / qty, pnl / qty]))
    .sort(([one], [other]) => one - other)
  const half = line.length >> 1
  const slopes = line.slice(0, half).flatMap(([x, y], index) => {
    const [otherX, otherY] = line[index + line.length - half]!
    return otherX > x ? [(otherY - y) / (otherX - x)] : []
  })
  return median(slopes)
}

function inverseSizes(points: readonly Point[]): Candidate[] {
  const ratio = (net: 0 | 1): number =>
    median(
      points.flatMap(({ move, pnl, fees, exitPrice }) => (move === 0 ? [] : [((pnl + net * fees) * exitPrice) / move])),
    )
  return [ratio(0), ratio(1)].flatMap((middle) => {
    const size = middle > 0 ? roundSize(middle, 0.005) : null
    return size === null ? [] : [{ size, isInverse: true, commission: null }]
  })
}

/** How many profits are before and after fees, and the tolerance that their own rounding needs. */
function judge(points: readonly Point[], model: Candidate) {
  const distances: number[] = []
  let [net, gross, fees] = [0, 0, 0]
  for (const point of points) {
    const expected = expectedProfit(model, point)
    const [before, after] = [Math.abs(point.pnl - expected), Math.abs(point.pnl - expected + point.fees)]
    distances.push(Math.max(0, Math.min(before, after) - HALF_CENT) / point.qty)
    if (point.fees === 0) continue
    fees += 1
    if (before <= after) gross += 1
    else net += 1
  }
  return { net: net / fees, gross: gross / fees, isEither: fees === 0, tolerance: OUTLYING * quantile(distances, MOST) }
}

/**
 * The size that profits give on the whole although they follow no model, as those in another currency do: their median
 * ratio to the move. 1 if they do not even agree in size.
 */
function approximate(points: readonly Point[], stated: number | null): Omit<FoundModel, 'unverified'> {
  const none = { basis: null, isInverse: false, commission: null, tolerance: Infinity }
  if (stated !== null) return { ...none, size: stated }
  const ratios = points.flatMap(({ move, pnl }) => (move === 0 ? [] : [pnl / move]))
  const middle = median(ratios)
  const near = ratios.filter((ratio) => Math.abs(ratio / middle - 1) <= 0.2).length
  const isSize = middle > 0 && ratios.length >= MIN_MOVES && near >= AGREEING_SHARE * ratios.length
  return { ...none, size: isSize ? middle : 1 }
}

const median = (values: readonly number[]): number => quantile(values, 0.5)

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}
