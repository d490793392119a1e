import { InvalidInput, ServiceError } from '#gateway'
import { type CsvLimits, type CsvReader, MAX_CELL, MAX_COLUMNS } from './csv.ts'

type Row = Readonly<Record<string, unknown>>

const BRACKETS = /^\uFEFF?\s*[[{]/

/** Whether the file is JSON: no table begins with a bracket. */
export const isJson = (bytes: Buffer): boolean => BRACKETS.test(bytes.subarray(0, 64).toString('utf8'))

/**
 * Reads a JSON file as a table: an array of objects, or the first one found inside, as in freqtrade's backtest result
 * (strategy, name, trades). Columns are the names of the first object; what is itself a list or an object is left out.
 * Returns the number of rows. Throws InvalidInput, or ServiceError body_too_large beyond `maxRows`.
 */
export function readJson(bytes: Buffer, { file, maxRows }: CsvLimits, reader: CsvReader): number {
  const refuse = (msg: string, type: string, ...at: readonly (string | number)[]): InvalidInput =>
    new InvalidInput([{ loc: ['body', file, ...at], msg, type }])
  if (bytes.length > MAX_BYTES) {
    const fields = { max_bytes: MAX_BYTES }
    throw new ServiceError('body_too_large', `${file} is JSON of more than 16 MB; send CSV, which is streamed.`, {
      fields,
    })
  }
  const rows = tableIn(parse(bytes, refuse), 0)
  if (!rows) throw refuse('Is JSON without a list of trades in it.', 'no_rows')
  if (rows.length > maxRows) {
    const fields = { max_rows: maxRows }
    throw new ServiceError('body_too_large', `${file} has more than ${maxRows} rows; send fewer.`, { fields })
  }
  const names = Object.entries(rows[0] as Row).flatMap(([name, value]) => (isNested(value) ? [] : [name]))
  if (names.length > MAX_COLUMNS)
    throw refuse(`The trades have ${names.length} fields; ${MAX_COLUMNS} are the most.`, 'too_many_columns', 'header')
  // Cells of JSON have their own decimal points, whatever separates those of a table.
  reader.header(names, ',')
  for (const [index, row] of rows.entries()) {
    const cells = names.map((name) => cellOf(row[name]))
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

function parse(bytes: Buffer, refuse: (msg: string, type: string) => InvalidInput): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw refuse('Begins like JSON and is none. Send a CSV file, or a JSON list of trades.', 'json')
  }
}

function tableIn(value: unknown, depth: number): readonly Row[] | null {
  if (Array.isArray(value)) return value.length > 0 && value.every(isRow) ? value : null
  if (!isRow(value) || depth === DEEPEST) return null
  const inner = 'trades' in value ? [value['trades']] : Object.values(value)
  for (const one of inner) {
    const found = tableIn(one, depth + 1)
    if (found) return found
  }
  return null
}

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)
const isNested = (value: unknown): boolean => typeof value === 'object' && value !== null

function cellOf(value: unknown): string {
  if (typeof value === 'string') return value.trim()
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}
