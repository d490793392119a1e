import { ServiceError } from 'tollgate/plugin'
import { MAX_CELL, MAX_COLUMNS, tableError, type TableHandler, type TableLimits, tooManyRows } from './csv-table.ts'
import { cellFormatOf } from './cell-values.ts'

type Row = Readonly<Record<string, unknown>>

const BRACKETS = /^\uFEFF?\s*[[{]/

/** Whether the file is JSON. A table never begins with a bracket. */
export const isJson = (bytes: Buffer): boolean => BRACKETS.test(bytes.subarray(0, 64).toString('utf8'))

/**
 * Reads a JSON file as a table and returns the number of rows. The table is an array of objects, or the longest array
 * inside the file. Arrays with a name that ends in "trades" come first, as in backtest results of freqtrade (strategy,
 * name, trades) and LEAN (totalPerformance, closedTrades). The columns are the keys of the first 500 objects. Nested lists
 * and objects are ignored, except the value of LEAN's symbols. Throws InvalidInput, or ServiceError body_too_large beyond
 * `maxRows`.
 */
export function readJson(bytes: Buffer, limits: TableLimits, handler: TableHandler): number {
  const { file, maxRows } = limits
  if (bytes.length > MAX_BYTES) {
    const fields = { max_bytes: MAX_BYTES }
    const message = `${file} is a JSON file of more than 16 MB. Send CSV, which can be larger.`
    throw new ServiceError('body_too_large', message, { fields })
  }
  const rows = longestOf(tablesIn(parse(bytes, file), '', 0))
  if (!rows) throw tableError(file, 'The file is JSON without a list of trades.', 'no_rows')
  if (rows.length > maxRows) throw tooManyRows(limits)
  const sample = rows.slice(0, SAMPLE)
  const names = [...new Set(sample.flatMap(namesOf))]
  if (names.length > MAX_COLUMNS) {
    const msg = `The trades have ${names.length} fields. At most ${MAX_COLUMNS} are allowed.`
    throw tableError(file, msg, 'too_many_columns', 'header')
  }
  const cellsOf = (row: Row): string[] => names.map((name) => cellOf(row[name]))
  // JSON numbers always have decimal points, as in a table with commas between cells.
  handler.header(names, cellFormatOf(sample.map(cellsOf), ','))
  for (const [index, row] of rows.entries()) {
    const cells = cellsOf(row)
    const long = cells.findIndex((cell) => cell.length > MAX_CELL)
    if (long >= 0) {
      const msg = `Row ${index}, ${names[long]} is longer than ${MAX_CELL} characters.`
      throw tableError(file, msg, 'cell_too_long', index)
    }
    handler.row(cells, index)
  }
  return rows.length
}

/** A JSON file is read as a whole, so it must fit in memory. */
const MAX_BYTES = 16_000_000
const MAX_DEPTH = 4
/** Number of rows that determine the columns and the format of numbers and dates. */
const SAMPLE = 500

function parse(bytes: Buffer, file: TableLimits['file']): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    const msg = 'The file begins like JSON but is not valid JSON. Send CSV or a JSON list of trades.'
    throw tableError(file, msg, 'json')
  }
}

interface Table {
  readonly isTrades: boolean
  readonly rows: readonly Row[]
}

function tablesIn(value: unknown, name: string, depth: number): Table[] {
  if (Array.isArray(value))
    return value.length > 0 && value.every(isRow) ? [{ isTrades: /trades$/i.test(name), rows: value }] : []
  if (!isRow(value) || depth === MAX_DEPTH) return []
  return Object.entries(value).flatMap(([key, inner]) => tablesIn(inner, key, depth + 1))
}

function longestOf(tables: readonly Table[]): readonly Row[] | undefined {
  const named = tables.filter(({ isTrades }) => isTrades)
  return (named.length > 0 ? named : tables).toSorted((a, b) => b.rows.length - a.rows.length)[0]?.rows
}

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)

const namesOf = (row: Row): string[] => Object.keys(row).filter((name) => leafOf(row[name]) !== undefined)

/** The value of a cell; undefined for a list or an object, except LEAN's {"value": "SPY"} and lists of one value. */
function leafOf(value: unknown): unknown {
  const one: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value
  return isRow(one) ? one['value'] : Array.isArray(one) ? undefined : (one ?? null)
}

function cellOf(value: unknown): string {
  const leaf = leafOf(value)
  if (typeof leaf === 'string') return leaf.trim()
  return typeof leaf === 'number' || typeof leaf === 'boolean' ? String(leaf) : ''
}
