/** Where a row of a request holds the columns of bars, and the errors of rows. */
import { InvalidInput } from 'tollgate/plugin'
import { PRICE_FIELDS } from '../lib/tables/bar-columns.ts'

/** The columns of numbers. */
export const NUMBERS = [...PRICE_FIELDS, 'volume'] as const
export type NumberField = (typeof NUMBERS)[number]

/** The key of an object or the index of an array. */
export type Key = string | number
/** Where a row holds each column. */
export type Places = Readonly<Record<'time' | 'clock' | NumberField, Key | undefined>>

/** Where an error is, as its `loc` names it. */
export type Loc = readonly (string | number)[]

export function invalid(loc: Loc, msg: string, type: string): InvalidInput {
  return new InvalidInput([{ loc, msg, type }])
}
