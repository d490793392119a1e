/** The columns of a ledger while their uses are found out. */
import type { CellFormat } from '../../lib/tables/cell-values.ts'
import type { ColumnContent } from '../../lib/tables/column-contents.ts'
import type { ColumnName } from '../../lib/tables/column-names.ts'
import type { Field } from './column-words.ts'

export interface Columns {
  readonly names: readonly string[]
  readonly parsed: readonly ColumnName[]
  readonly contents: readonly ColumnContent[]
  /** Rows from all over the file. */
  readonly rows: readonly (readonly string[])[]
  readonly format: CellFormat
  /** Column of each field. */
  readonly found: Partial<Record<Field, number>>
  /** The use of each column that has one, and how it was recognised if not by its name. */
  readonly uses: Map<number, { readonly as: string; readonly why: string | null }>
  /** Why columns are not used. */
  readonly reasons: Map<number, string>
}

/** Uses a column as a field. */
export function take({ found, uses }: Columns, field: Field, index: number, why: string | null = null): void {
  found[field] ??= index
  uses.set(index, { as: snakeCase(field), why })
}

/** A field in the words of the report: "entry_time". */
export const snakeCase = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
