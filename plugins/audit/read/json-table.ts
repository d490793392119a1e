import { ServiceError } from 'tollgate/plugin'
import {
  MAX_CELL,
  MAX_COLUMNS,
  tableError,
  type TableHandler,
  type TableLimits,
  tooManyRows,
} from '../../lib/tables/csv-table.ts'
import { cellFormatOf } from '../../lib/tables/cell-values.ts'

type Row = Readonly<Record<string, unknown>>

const BRACKETS = /^\uFEFF?\s*[[{]/

/** Whether the file is JSON. A table never begins with a bracket. */
export const isJson = (bytes: Buffer): boolean => BRACKETS.test(bytes.subarray(0, 64).toString('utf8'))

export interface JsonHandler extends TableHandler {
  /** Called once with the names of lists of trades that are left out, if there are any. */
  leftOut?(names: readonly string[]): void
}

/**
 * Reads a JSON file as a table and returns the number of rows. The table is an array of objects, or the longest array
 * inside the file. Arrays with a name that ends in "trades" come first, as in backtest results of freqtrade (strategy,
 * name, trades) and LEAN (totalPerformance, closedTrades). Where several strategies have such an array, the table has the
 * trades of all, and a column "trial" with their names. The columns are the keys of 500 to 1,000 objects of each. Nested
 * lists and objects are ignored, except the value of LEAN's symbols. Throws InvalidInput, or ServiceError body_too_large
 * beyond `maxRows`.
 */
export function readJson(bytes: Buffer, limits: TableLimits, handler: JsonHandler): number {
  const { file, maxRows } = limits
  if (bytes.length > MAX_BYTES) {
    const fields = { max_bytes: MAX_BYTES }
    const message = `${file} is a JSON file of more than 16 MB. Send CSV, which can be larger.`
    throw new ServiceError('body_too_large', message, { fields })
  }
  const { tables, leftOut } = choose(tablesIn(parse(bytes, file), [], 0))
  const count = tables.reduce((sum, { rows }) => sum + rows.length, 0)
  if (count === 0) throw tableError(file, 'The file is JSON without a list of trades.', 'no_rows')
  if (count > maxRows) throw tooManyRows(limits)
  const columns = columnsOf(tables)
  if (columns.names.length > MAX_COLUMNS) {
    const msg = `The trades have ${columns.names.length} fields. At most ${MAX_COLUMNS} are allowed.`
    throw tableError(file, msg, 'too_many_columns', 'header')
  }
  // JSON numbers always have decimal points, as in a table with commas between cells.
  handler.header(columns.names, cellFormatOf(columns.sample, ','), columns.sample)
  if (leftOut.length > 0) handler.leftOut?.(leftOut)
  let index = 0
  for (const table of tables)
    for (const row of table.rows) {
      const cells = columns.cellsOf(row, table)
      const long = cells.findIndex((cell) => cell.length > MAX_CELL)
      if (long >= 0) {
        const msg = `Row ${index}, ${columns.names[long]} is longer than ${MAX_CELL} characters.`
        throw tableError(file, msg, 'cell_too_long', index)
      }
      const arranged = handler.arrange ? handler.arrange(cells, index) : cells
      if (arranged) handler.row(arranged, index)
      index += 1
    }
  return count
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

/** A list of objects in the file. */
interface Table {
  /** The names that lead to it, from the outside. */
  readonly path: readonly string[]
  readonly rows: readonly Row[]
}

function tablesIn(value: unknown, path: readonly string[], depth: number): Table[] {
  if (Array.isArray(value)) {
    if (value.length === 0 || !value.every(isRow)) return []
    // A list of results, each with its own trades.
    const inner = value.every((row) => hasTrades(row))
      ? value.flatMap((row, index) => tablesIn(row, [...path, resultName(row, index)], depth + 1))
      : []
    return inner.length > 0 ? inner : [{ path, rows: value }]
  }
  if (!isRow(value) || depth === MAX_DEPTH) return []
  // LEAN lists orders by number, and numbers their directions.
  const rows = Object.entries(value)
  if (rows.length > 0 && rows.every(([key, row]) => /^\d+$/.test(key) && isRow(row)))
    return [{ path, rows: rows.map(([, row]) => withDirection(row as Row)) }]
  return rows.flatMap(([key, inner]) => tablesIn(inner, [...path, key], depth + 1))
}

const isTrades = (name: string | undefined): boolean => /trades$/i.test(name ?? '')
/** Whether an object is a result with a list of trades, and not a trade with a list of its parts. */
const hasTrades = (row: Row): boolean =>
  Object.entries(row).some(([key, inner]) => isTrades(key) && Array.isArray(inner)) &&
  !Object.keys(row).some((key) => /price|rate$/i.test(key))

/** The name of a result in a list of results. */
function resultName(row: Row, index: number): string {
  const name = row['strategy_name'] ?? row['strategy'] ?? row['name'] ?? row['id']
  return typeof name === 'string' || typeof name === 'number' ? String(name) : String(index + 1)
}

interface Chosen {
  readonly tables: readonly Table[]
  /** Names of lists of trades that are not in `tables`. */
  readonly leftOut: readonly string[]
}

/** LEAN repeats the trades by periods. */
const isWindow = ({ path }: Table): boolean => path.some((name) => /^rolling ?_?window$/i.test(name))

/** An order of LEAN with its direction in words. */
function withDirection(order: Row): Row {
  const { direction } = order
  return direction === 0 || direction === 1 ? { ...order, direction: direction === 0 ? 'buy' : 'sell' } : order
}

/** How much the name of a list promises trades. */
function rankOf({ path }: Table): number {
  const name = path.at(-1)
  if (isTrades(name)) return 2
  return /(?:orders?|fills|executions|transactions|deals|positions|history)$/i.test(name ?? '') ? 1 : 0
}

/**
 * Chooses the longest of the lists whose name promises most, and with it those that differ from it only in the name of the
 * strategy: the name before the last one.
 */
function choose(all: readonly Table[]): Chosen {
  const whole = all.filter((table) => !isWindow(table))
  const rank = Math.max(...whole.map(rankOf))
  const candidates = whole.filter((table) => rankOf(table) === rank)
  const [longest] = candidates.toSorted((one, other) => other.rows.length - one.rows.length)
  if (!longest) return { tables: [], leftOut: [] }
  if (rank < 2) return { tables: [longest], leftOut: [] }
  const tables = candidates.filter((table) => familyOf(table) === familyOf(longest))
  const others = candidates.filter((table) => !tables.includes(table))
  return { tables, leftOut: others.map(({ path }) => path.join('.')) }
}

const familyOf = ({ path }: Table): string => JSON.stringify([path.slice(0, -2), path.at(-1), path.length])

const TRIAL = 'trial'

/** The first rows, and as many from all over the list. */
function spread(rows: readonly Row[]): readonly Row[] {
  const step = Math.ceil(rows.length / SAMPLE)
  return step === 1
    ? rows
    : [...rows.slice(0, SAMPLE), ...rows.filter((_, index) => index >= SAMPLE && index % step === 0)]
}

function columnsOf(tables: readonly Table[]) {
  const samples = tables.map((table) => ({ table, rows: spread(table.rows) }))
  const fields = [...new Set(samples.flatMap(({ rows }) => rows.flatMap(namesOf)))]
  const hasTrials = tables.length > 1 && !fields.includes(TRIAL)
  const cellsOf = (row: Row, { path }: Table): string[] => {
    const cells = fields.map((name) => cellOf(row[name]))
    return hasTrials ? [path.at(-2) ?? '', ...cells] : cells
  }
  return {
    names: hasTrials ? [TRIAL, ...fields] : fields,
    sample: samples.flatMap(({ table, rows }) => rows.map((row) => cellsOf(row, table))),
    cellsOf,
  }
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
