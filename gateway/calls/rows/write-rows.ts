/** Writes the rows of an answer as CSV, NDJSON or Parquet, in slices, so that a long list does not delay other calls. */
import { setImmediate } from 'node:timers/promises'
import { ByteWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer'
import Papa from 'papaparse'
import type { RowFormat } from './asked-format.ts'
import { type Column, columnsOf, type ColumnKind, type Row, type Table } from '../../catalog/table.ts'

/** Rows that are written at once. */
const SLICE = 2_000
/** Parquet compresses each group of rows by itself, so a group has more of them. */
const GROUP = 10_000

/**
 * Returns the bytes, in pieces. CSV (RFC 4180) has a line of names, an empty field for null, and JSON where a value is an
 * object or a list. NDJSON has the rows as they are. Parquet has types: TIMESTAMP for times in UTC to the millisecond,
 * INT64, DOUBLE, BOOLEAN, STRING, and JSON.
 * @param beside what the answer says beside its rows; Parquet keeps it in its metadata as `answer`
 */
export function writeRows(
  format: RowFormat,
  table: Pick<Table, 'columns'>,
  rows: readonly Row[],
  beside: object,
): Promise<readonly Buffer[]> {
  if (format === 'ndjson') return inSlices(rows, (slice) => slice.map((row) => `${JSON.stringify(row)}\n`).join(''))
  const columns = columnsOf(table, rows)
  return format === 'csv' ? csv(columns, rows) : parquet(columns, rows, beside)
}

async function inSlices(rows: readonly Row[], write: (slice: readonly Row[]) => string): Promise<Buffer[]> {
  const pieces: Buffer[] = []
  for (let at = 0; at < rows.length; at += SLICE) {
    if (at > 0) await setImmediate()
    pieces.push(Buffer.from(write(rows.slice(at, at + SLICE))))
  }
  return pieces
}

const csvOf = (records: readonly (readonly (string | null)[])[]): string => `${Papa.unparse(records as string[][])}\r\n`

async function csv(columns: readonly Column[], rows: readonly Row[]): Promise<readonly Buffer[]> {
  const names = columns.map(({ name }) => name)
  const lines = await inSlices(rows, (slice) => csvOf(slice.map((row) => names.map((name) => asText(row[name])))))
  return [Buffer.from(csvOf([names])), ...lines]
}

function asText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const PARQUET_TYPES = {
  text: 'STRING',
  integer: 'INT64',
  number: 'DOUBLE',
  boolean: 'BOOLEAN',
  time: 'TIMESTAMP',
  json: 'JSON',
} as const satisfies Record<ColumnKind, string>

async function parquet(columns: readonly Column[], rows: readonly Row[], beside: object): Promise<readonly Buffer[]> {
  const dataOf = (slice: readonly Row[]) =>
    columns.map(({ name, kind }) => ({
      name,
      type: PARQUET_TYPES[kind],
      data: slice.map((row) => asParquet(kind, row[name])),
    }))
  const writer = new ByteWriter()
  const file = new ParquetWriter({
    writer,
    schema: schemaFromColumnData({ columnData: dataOf([]) }),
    kvMetadata: [{ key: 'answer', value: JSON.stringify(beside) }],
    createdBy: 'tollgate',
  })
  for (let at = 0; at < rows.length; at += GROUP) {
    if (at > 0) await setImmediate()
    await file.write({ columnData: dataOf(rows.slice(at, at + GROUP)), rowGroupSize: GROUP })
  }
  await file.finish()
  return [Buffer.from(writer.getBytes())]
}

function asParquet(kind: ColumnKind, value: unknown): unknown {
  if (value === undefined) return null
  if (value === null) return null
  if (kind === 'integer') return BigInt(value as number)
  return kind === 'time' ? new Date(value as string) : value
}
