/** What a venue must offer so that its funding rates can be read, and what the parsers of venues share. */
import { isRow, type Row } from '../../lib/feeds/payloads.ts'
import type { Excluded, FundingRate, VenueName } from '../funding-rate.ts'

export interface VenueRequest {
  readonly path: string
  /** A JSON body makes it a POST. */
  readonly body?: object
  /** Refresh period of a payload that rarely changes. Without it every poll fetches the payload. */
  readonly everySeconds?: number
  /** How long the last answer may stand in for one that failed, seconds; default: six refresh periods. */
  readonly keepSeconds?: number
  /** True if the rates can be read without it: it then counts as `absent`. */
  readonly optional?: boolean
  /** Returns true for a usable answer; otherwise the last one is used. */
  readonly fits?: (payload: unknown) => boolean
  /** Replaces the answer in a recording that lacks it. Undefined if the answer is required. */
  readonly absent?: unknown
  /** Recognises the answer to this request among those of a venue with several requests. */
  readonly answeredBy?: (payload: unknown) => boolean
}

export interface Parsed {
  readonly rates: readonly FundingRate[]
  readonly untold: readonly Excluded[]
}

/** How the settled rates of a venue are asked for. */
export interface SettledRequest {
  /** Seconds that one answer covers, whatever the interval of the contract is. */
  readonly windowSeconds: number
  /** The request for the settlements of a contract in a window, epoch seconds, both ends included. */
  request(instrument: string, from: number, to: number): { readonly path: string; readonly body?: object }
  /** Reads the settlements of an answer. Throws PayloadError for a payload that differs from the documentation. */
  parse(payload: unknown): readonly SettledRate[]
}

export interface SettledRate {
  /** Epoch seconds, without the milliseconds by which a venue is late. */
  readonly time: number
  /** Fraction for the interval that ended then. */
  readonly rate: string
}

/** Requests and parser of one venue. */
export interface Venue {
  readonly name: VenueName
  readonly url: string
  /** Requests by our own names. `parse` gets the payloads by the same names. */
  readonly requests: Readonly<Record<string, VenueRequest>>
  /**
   * Reads the payloads of one poll at `at`, epoch seconds. Skips everything but perpetuals. A perpetual without a rate or
   * an interval, or with figures that contradict each other, is listed in `untold`. Throws PayloadError for a payload that
   * differs from the venue's documentation.
   */
  parse(payloads: Readonly<Record<string, unknown>>, at: number): Parsed
  readonly settled: SettledRequest
  readonly book: BookRequest
}

/** How the order book of a contract is asked for. */
export interface BookRequest {
  request(instrument: string): { readonly path: string; readonly body?: object }
  /** The lists of levels, each of which begins with price and quantity. Throws PayloadError for another answer. */
  sides(payload: unknown): { readonly bids: unknown; readonly asks: unknown }
  /** True if quantities are numbers of contracts (`contractSize`), not coins. */
  readonly inContracts?: boolean
}

/** The levels of a list of objects. */
export function levelsOf(rows: readonly Row[], price: string, quantity: string): unknown[][] {
  return rows.map((row) => [row[price], row[quantity]])
}

/** The settlements among the rows of an answer. Rows without a time or a rate are skipped. */
export function settledRows(
  rows: readonly Row[],
  read: (row: Row) => { readonly time: number | null; readonly rate: string | null },
): SettledRate[] {
  return rows.flatMap((row) => {
    const { time, rate } = read(row)
    return time === null || rate === null ? [] : [{ time: Math.round(time), rate }]
  })
}

/** The venue's answer differs from its documentation. */
export class PayloadError extends Error {
  override readonly name = 'PayloadError'
}

/** The list at a path of a payload. Throws PayloadError that names the path. */
export function requireList(payload: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = path.reduce<unknown>((value, name) => (isRow(value) ? value[name] : undefined), payload)
  if (!Array.isArray(found)) throw new PayloadError(`no list at ${path.join('.') || 'the top'} of the answer`)
  return found as unknown[]
}

/** The objects of the list at a path. Throws PayloadError like `requireList`. */
export function rowsOf(payload: unknown, ...path: readonly string[]): Row[] {
  return requireList(payload, ...path).filter(isRow)
}

/** The text itself; an empty one for any other value. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A rate as the venue reports it. Null for a field that it does not report. */
export interface ReportedRate extends Omit<FundingRate, 'rate' | 'intervalHours'> {
  readonly rate: string | null
  readonly intervalHours: number | null
}

/** Collects the rows of a payload read at `at`. Skips rows without a name, and never dates a rate later than `at`. */
export function createParsed(at: number) {
  const rates: FundingRate[] = []
  const untold: Excluded[] = []
  return {
    rates,
    untold,
    add({ rate, intervalHours, ...row }: ReportedRate): void {
      const { instrument, predictedRate } = row
      if (instrument === '') return
      if (rate === null) untold.push({ instrument, rate, reason: 'the venue reports no rate' })
      else if (intervalHours === null) untold.push({ instrument, rate, reason: 'the venue reports no interval' })
      else {
        const isReportedRate = predictedRate !== null && Number.isFinite(Number(predictedRate))
        const observed = Math.min(row.observed, at)
        rates.push({ ...row, rate, intervalHours, predictedRate: isReportedRate ? predictedRate : null, observed })
      }
    },
  }
}

/** The first full hour after a time, epoch seconds. */
export function nextHour(at: number): number {
  return (Math.floor(at / 3600) + 1) * 3600
}
