/** Reads from a request in which format it wants the rows of the answer. */
import { InvalidInput } from '../../errors.ts'
import type { Operation } from '../../plugin/catalog.ts'
import type { Table } from '../../catalog/table.ts'

/** The media type of each format. */
export const ROW_MEDIA = {
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
  parquet: 'application/vnd.apache.parquet',
} as const
export type RowFormat = keyof typeof ROW_MEDIA

export const ROW_FORMATS = Object.keys(ROW_MEDIA) as readonly RowFormat[]

type Fields = Readonly<Record<string, unknown>>

/** The query field that asks for a format, unless the operation has one of this name. */
const FIELD = 'format'
/** The format stands in the query by this name until the input is checked, so that a purchase is bound to it. */
const NOTE = ':format'

/**
 * Returns the query with a note of the format that a call asks for: none for JSON. A query field goes before the Accept
 * header, and is taken out.
 * @param accepted the format that the Accept header prefers, if it is one of these
 * @throws InvalidInput for a query field that names no format
 */
export function noteFormat({ hasFormat }: Table, query: Fields, accepted: RowFormat | null): Fields {
  if (NOTE in query) throw new InvalidInput('Is not a field of this operation.', ['query', NOTE])
  if (hasFormat || query[FIELD] === undefined) return accepted === null ? query : { ...query, [NOTE]: accepted }
  const { [FIELD]: named, ...rest } = query
  if (named === 'json') return rest
  const format = ROW_FORMATS.find((each) => each === named)
  if (format) return { ...rest, [NOTE]: format }
  const msg = `Write json, ${ROW_FORMATS.slice(0, -1).join(', ')} or ${ROW_FORMATS.at(-1)}.`
  throw new InvalidInput([{ loc: ['query', FIELD], msg, type: 'enum', input: named }])
}

/** Takes the note out of the query of an operation: what is left is its input. */
export function takeFormat(
  { rows }: Pick<Operation, 'rows'>,
  query: Fields,
): { readonly query: Fields; readonly format: RowFormat | null } {
  if (rows === null || !(NOTE in query)) return { query, format: null }
  const { [NOTE]: noted, ...rest } = query
  return { query: rest, format: noted as RowFormat }
}
