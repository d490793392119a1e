import { InvalidInput, ServiceError } from 'tollgate/plugin'
import { type TableLimits, type TableHandler, MAX_CELL, MAX_COLUMNS } from './csv-table.ts'
import { cellFormatOf } from './cell-values.ts'

type Row = Readonly<Record<string, unknown>>

const BRACKETS = /^\uFEFF?\s*[[{]/

/** Whether the file is JSON: no table begins with a bracket. */
export const isJson = (bytes: Buffer): boolean => BRACKETS.test(bytes.subarray(0, 64).toString('utf8'))

/**
 * Reads a JSON file as a table: an array of objects, or the longest one found inside, those called trades first, as in
 * freqtrade's backtest result (strategy, name, trades) and LEAN's (totalPerformance, closedTrades). Columns are the names
 * of the first 500 objects; what is itself a list or an object is left out, but for the value of LEAN's symbols.
 * Returns the number of rows. Throws InvalidInput, or ServiceError body_too_large beyond `maxRows`.
 */
export function readJson(bytes: Buffer, { file, maxRows }: TableLimits, reader: TableHandler): number {
  const refuse = (msg: string, type: string, ...at: readonly (string | number)[]): InvalidInput =>
    new InvalidInput([{ loc: ['body', file, ...at], msg, type }])
  if (bytes.length > MAX_BYTES) {
    const fields = { max_bytes: MAX_BYTES }
    throw new ServiceError('body_too_large', `${file} is JSON of more than 16 MB; send CSV, which is streamed.`, {
      fields,
    })
  }
  const rows = longestOf(tablesIn(parse(bytes, refuse), '', 0))
  if (!rows) throw refuse('Is JSON without a list of trades in it.', 'no_rows')
  if (rows.length > maxRows) {
    const fields = { max_rows: maxRows }
    throw new ServiceError('body_too_large', `${file} has more than ${maxRows} rows; send fewer.`, { fields })
  }
  const sample = rows.slice(0, SAMPLE)
  const names = [...new Set(sample.flatMap(namesOf))]
  if (names.length > MAX_COLUMNS)
    throw refuse(`The trades have ${names.length} fields; ${MAX_COLUMNS} are the most.`, 'too_many_columns', 'header')
  const cellsOf = (row: Row): string[] => names.map((name) => cellOf(row[name]))
  // Numbers of JSON have their own decimal points, whatever separates the cells of a table.
  reader.header(names, cellFormatOf(sample.map(cellsOf), ','))
  for (const [index, row] of rows.entries()) {
    const cells = cellsOf(row)
    const long = cells.findIndex((cell) => cell.length > MAX_CELL)
    if (long >= 0)
      throw refuse(`Row ${index}, ${names[long]} is longer than ${MAX_CELL} characters.`, 'cell_too_long', index)
    reader.row(cells, index)
  }
  return rows.length
}

/** JSON is held in memory as a whole. */
const MAX_BYTES = 16_000_000
const DEEPEST = 4
/** Rows that show which columns there are, and how numbers and dates are written. */
const SAMPLE = 500

function parse(bytes: Buffer, refuse: (msg: string, type: string) => InvalidInput): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw refuse('Begins like JSON and is none. Send a CSV file, or a JSON list of trades.', 'json')
  }
}

interface Table {
  readonly isTrades: boolean
  readonly rows: readonly Row[]
}

function tablesIn(value: unknown, name: string, depth: number): Table[] {
  if (Array.isArray(value))
    return value.length > 0 && value.every(isRow) ? [{ isTrades: /trades$/i.test(name), rows: value }] : []
  if (!isRow(value) || depth === DEEPEST) return []
  return Object.entries(value).flatMap(([key, inner]) => tablesIn(inner, key, depth + 1))
}

function longestOf(tables: readonly Table[]): readonly Row[] | undefined {
  const named = tables.filter(({ isTrades }) => isTrades)
  return (named.length > 0 ? named : tables).toSorted((a, b) => b.rows.length - a.rows.length)[0]?.rows
}

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)

const namesOf = (row: Row): string[] => Object.keys(row).filter((name) => leafOf(row[name]) !== undefined)

/** What stands in a cell; undefined for a list or an object but LEAN's symbols: {"value": "SPY"}, or a list of one. */
function leafOf(value: unknown): unknown {
  const one: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value
  return isRow(one) ? one['value'] : Array.isArray(one) ? undefined : (one ?? null)
}

function cellOf(value: unknown): string {
  const leaf = leafOf(value)
  if (typeof leaf === 'string') return leaf.trim()
  return typeof leaf === 'number' || typeof leaf === 'boolean' ? String(leaf) : ''
}
