/** Reads fields of JSON from other services. */

export type Row = Readonly<Record<string, unknown>>

/** True for a JSON object. A list is not one. */
export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object itself, or an empty one. */
export const rowOf = (value: unknown): Row => (isRow(value) ? value : {})

/** The list itself, or an empty one. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
