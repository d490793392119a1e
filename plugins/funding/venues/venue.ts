import { isRow, type Row } from '../../lib/feeds/payloads.ts'
import type { Excluded, FundingRate, VenueName } from '../funding-rate.ts'

export interface VenueRequest {
  readonly path: string
  /** A JSON body makes it a POST. */
  readonly body?: object
  /** Asked for less often than the rates: what changes seldom. */
  readonly everySeconds?: number
  /** True where the answer is what it should be; else the one before is used. */
  readonly fits?: (payload: unknown) => boolean
  /** What stands for the answer in a recording that lacks it; undefined where nothing can. */
  readonly absent?: unknown
  /** Knows the answer to this request among those of a venue that is asked several things. */
  readonly answeredBy?: (payload: unknown) => boolean
}

export interface Parsed {
  readonly rates: readonly FundingRate[]
  readonly untold: readonly Excluded[]
}

/** How one venue is asked and read. Everything else is the same for all. */
export interface Venue {
  readonly name: VenueName
  readonly url: string
  /** By a word of our own; `parse` gets the payloads by the same words. */
  readonly requests: Readonly<Record<string, VenueRequest>>
  /**
   * Reads the payloads of one poll, taken at `at` (epoch seconds). What is no perpetual is passed over, a perpetual
   * without rate or interval is `untold`. Throws PayloadError where a payload is not what the venue documents.
   */
  parse(payloads: Readonly<Record<string, unknown>>, at: number): Parsed
}

/** The venue answered with something else than its documentation says. */
export class PayloadError extends Error {
  override readonly name = 'PayloadError'
}

/** The list at a place of a payload. Throws PayloadError with the names on the way. */
export function requireList(payload: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = path.reduce<unknown>((value, name) => (isRow(value) ? value[name] : undefined), payload)
  if (!Array.isArray(found)) throw new PayloadError(`no list at ${path.join('.') || 'the top'} of the answer`)
  return found as unknown[]
}

/** Those of the list that are objects. Throws as `requireList` does. */
export function rowsOf(payload: unknown, ...path: readonly string[]): Row[] {
  return requireList(payload, ...path).filter(isRow)
}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A rate as a parser finds it; null where the venue does not tell. */
export interface Told extends Omit<FundingRate, 'rate' | 'intervalHours'> {
  readonly rate: string | null
  readonly intervalHours: number | null
}

/** Collects the rows of a payload taken at `at`; one without a name is none, and a venue whose clock is ahead has not seen the future. */
export function createParsed(at: number) {
  const rates: FundingRate[] = []
  const untold: Excluded[] = []
  return {
    rates,
    untold,
    add({ rate, intervalHours, ...row }: Told): void {
      const { instrument, predictedRate } = row
      if (instrument === '') return
      if (rate === null) untold.push({ instrument, rate, reason: 'the venue tells no rate' })
      else if (intervalHours === null) untold.push({ instrument, rate, reason: 'the venue tells no interval' })
      else {
        const isTold = predictedRate !== null && Number.isFinite(Number(predictedRate))
        const observed = Math.min(row.observed, at)
        rates.push({ ...row, rate, intervalHours, predictedRate: isTold ? predictedRate : null, observed })
      }
    },
  }
}

/** The first full hour after a moment, epoch seconds. */
export function nextHour(at: number): number {
  return (Math.floor(at / 3600) + 1) * 3600
}
