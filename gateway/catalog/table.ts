/** Which list of an answer is a table, and what its columns are. */
import { fieldsOf } from './schemas.ts'
import type { Catalog, JsonSchema, Operation } from '../plugin/catalog.ts'
import { isObject } from '../validation/json.ts'

/** The value of `rows` for an answer that is a list itself. */
export const WHOLE_ANSWER = '$'

/** What a column holds: `time` is text of RFC 3339, `json` anything. */
export type ColumnKind = 'text' | 'integer' | 'number' | 'boolean' | 'time' | 'json'

export interface Column {
  readonly name: string
  readonly kind: ColumnKind
}

export interface Table {
  /** The field of the answer that is the list, or `$`. */
  readonly rows: string
  /** The columns that the schema of the answer describes, in its order. */
  readonly columns: readonly Column[]
  /** Whether the operation has a query field `format` or `cursor` of its own. */
  readonly hasFormat: boolean
  readonly hasCursor: boolean
}

const tables = new WeakMap<Operation, Table>()

/** The table in the answers of an operation; null if the catalog names none. */
export function tableOf(operation: Operation, { schemas }: Pick<Catalog, 'schemas'>): Table | null {
  const { rows, query, response } = operation
  if (rows === null) return null
  let table = tables.get(operation)
  if (!table) {
    const asked = fieldsOf(query, schemas)
    const columns = Object.entries(rowFields(response, rows, schemas)).map(([name, schema]) => ({
      name,
      kind: kindOf(schema),
    }))
    table = { rows, columns, hasFormat: 'format' in asked, hasCursor: 'cursor' in asked }
    tables.set(operation, table)
  }
  return table
}

/** The schema of the list `rows` in an answer; undefined if the answer has no such list. */
export function listSchema(
  response: JsonSchema | null,
  rows: string,
  schemas: Catalog['schemas'],
): JsonSchema | undefined {
  // As a field of an object, the whole answer is found like any other list.
  const whole: JsonSchema = { properties: { [WHOLE_ANSWER]: response ?? {} } }
  const list = fieldsOf(rows === WHOLE_ANSWER ? whole : response, schemas)[rows]
  return typesIn(list ?? {}).has('array') ? list : undefined
}

function rowFields(response: JsonSchema | null, rows: string, schemas: Catalog['schemas']): Record<string, JsonSchema> {
  const items = listSchema(response, rows, schemas)?.['items']
  return isObject(items) ? { ...fieldsOf(items, schemas) } : {}
}

/** The kind of a column whose values follow a schema. Any of them may be null. */
function kindOf(schema: JsonSchema): ColumnKind {
  const types = typesIn(schema)
  types.delete('null')
  if (types.has('number')) types.delete('integer')
  const [type, ...others] = types
  if (others.length > 0) return 'json'
  if (type === 'string') return schema['format'] === 'date-time' ? 'time' : 'text'
  return type === 'integer' || type === 'number' || type === 'boolean' ? type : 'json'
}

/** The types that a schema allows, as far as `type`, `enum`, `const` and choices say. */
function typesIn(schema: JsonSchema): Set<string> {
  if (schema['type'] !== undefined) return new Set([schema['type']].flat() as string[])
  if ('const' in schema) return new Set([typeOf(schema['const'])])
  if (Array.isArray(schema['enum'])) return new Set(schema['enum'].map(typeOf))
  const choices = [schema['anyOf'], schema['oneOf'], schema['allOf']].flat().filter(isObject)
  return new Set(choices.flatMap((choice) => [...typesIn(choice)]))
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/**
 * The columns of some rows: those that the schema describes, and then those that the rows have besides. A column whose values
 * do not all fit its kind gets one that they fit, so that nothing of a value is lost.
 */
export function columnsOf({ columns }: Pick<Table, 'columns'>, rows: readonly Row[]): readonly Column[] {
  const kinds = new Map(columns.map(({ name, kind }) => [name, kind]))
  const names = new Set(columns.map(({ name }) => name))
  for (const row of rows) for (const name of Object.keys(row)) names.add(name)
  return [...names].map((name) => {
    const wanted: readonly ColumnKind[] = [kinds.get(name) ?? 'boolean', 'number', 'text']
    const fitting = wanted.find((kind) => rows.every((row) => fits(kind, row[name])))
    return { name, kind: fitting ?? 'json' }
  })
}

/** Times to the millisecond, in UTC: a Date holds them without loss. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/

function fits(kind: ColumnKind, value: unknown): boolean {
  if (value === null || value === undefined) return true
  switch (kind) {
    case 'text':
      return typeof value === 'string'
    case 'time':
      return typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value))
    case 'integer':
      return Number.isSafeInteger(value)
    case 'number':
    case 'boolean':
      return typeof value === kind
    case 'json':
      return true
  }
}

/** One row: an object. */
export type Row = Readonly<Record<string, unknown>>

/** The rows of an answer. An item that is no object is a row with the one field `value`. */
export function rowsOf(value: unknown, { rows }: Pick<Table, 'rows'>): readonly Row[] {
  const list = rows === WHOLE_ANSWER ? value : isObject(value) ? value[rows] : undefined
  return Array.isArray(list) ? list.map((item): Row => (isObject(item) ? item : { value: item as unknown })) : []
}
