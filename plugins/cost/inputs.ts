import type { Book } from '../lib/quant/book.ts'

/** The numbers an estimate is made of. */
export interface Inputs {
  /** Quoted or estimated spread, bps. */
  readonly spreadBps: number
  /** Standard deviation of the price over a trading day, a fraction. */
  readonly sigmaDaily: number
  /** Average turnover of a trading day, USD. */
  readonly advUsd: number
  /** Minutes of a trading day: 1440 around the clock, 390 for US equities. */
  readonly dayMinutes: number
  /** Error of half the spread, bps: 0.8 times the mean error of the spread's source. */
  readonly halfSpreadErrorBps: number
  readonly book: Book | null
}
