/** Reads fields of JSON that somebody else wrote. */

export type Row = Readonly<Record<string, unknown>>

/** True for a JSON object that is no list. */
export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object itself, or an empty one. */
export const rowOf = (value: unknown): Row => (isRow(value) ? value : {})

/** The list itself, or an empty one. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
