import { type Book, type Level, walkBook } from '../lib/quant/book.ts'
import { squareRootImpact } from '../lib/quant/impact.ts'
import type { Inputs } from './inputs.ts'

/** What an immediate order of a size pays beyond the half spread. */
export interface Immediate {
  readonly impactBps: number
  readonly source: 'book_walk' | 'book_walk_and_square_root' | 'square_root'
  /** Levels taken, best first; empty without a book. */
  readonly levels: readonly Level[]
  /** All that rests on the side that is taken, in USD; null without a book. */
  readonly depthUsd: number | null
}

/** Average cost of an immediate order over σ √(Q/ADV), as measured by walking recorded books. */
export const IMPACT_COEFFICIENT = 0.4
/** A hair inside the book's depth, so that rounding never says it is too thin. */
const INSIDE = 1 - 1e-12

/**
 * Impact of an immediate order: the walk of the book as far as it reaches, W(Q) less the half spread; beyond its depth
 * D the walk of all of it plus what the square-root law adds from D to Q, L(Q) - L(D); without a book L(Q) alone. It
 * never falls with size.
 *
 * Source: definition of the walk; the law of Donier and Bonart (2015), L(Q) = 0.4 σ √(Q/ADV).
 *
 * @example immediateImpact({ ... sigmaDaily: 0.02, advUsd: 1e9, book: null }, 'buy', 1e6).impactBps // 2.52982…
 */
export function immediateImpact(inputs: Inputs, side: 'buy' | 'sell', notionalUsd: number): Immediate {
  const { book, spreadBps } = inputs
  if (!book) return { impactBps: lawBps(inputs, notionalUsd), source: 'square_root', levels: [], depthUsd: null }
  const resting = side === 'buy' ? book.asks : book.bids
  const depthUsd = resting.reduce((sum, [price, quantity]) => sum + price * quantity, 0)
  const walked = Math.min(notionalUsd, depthUsd * INSIDE)
  const walk = walkOf(book, side, walked)
  const impactBps = Math.max(0, walk.costBps - spreadBps / 2)
  const levels = resting.slice(0, walk.levels)
  if (notionalUsd <= depthUsd) return { impactBps, source: 'book_walk', levels, depthUsd }
  const beyond = lawBps(inputs, notionalUsd) - lawBps(inputs, depthUsd)
  return { impactBps: impactBps + beyond, source: 'book_walk_and_square_root', levels, depthUsd }
}

function lawBps({ sigmaDaily, advUsd }: Inputs, notionalUsd: number): number {
  const order = { quantity: notionalUsd, dailyVolume: advUsd, dailyVolatility: sigmaDaily }
  return 1e4 * squareRootImpact({ ...order, coefficient: IMPACT_COEFFICIENT })
}

function walkOf(book: Book, side: 'buy' | 'sell', notionalUsd: number) {
  const walk = walkBook(book, side, notionalUsd)
  if (!walk) throw new RangeError('a book that is held has two sides and is walked within its depth')
  return walk
}
