import { type Database, isPostgres } from 'tollgate/plugin'

/**
 * SQL that inserts many rows of one series in one statement, far faster than a row at a time. It takes two parameters:
 * the id of the series, and the rows as a JSON array of arrays in the order of `columns`. It ignores rows that are
 * already stored. `columns` maps the names of columns to their SQL types; names and types are not escaped.
 *
 * @example db.raw(bulkInsertSql(db, 'market_bars', { t_open: 'bigint', close: 'double precision' }), [7, '[[60,101.5]]'])
 */
export function bulkInsertSql(db: Database, table: string, columns: Readonly<Record<string, string>>): string {
  const source = isPostgres(db) ? 'json_array_elements(?::json) as t(value)' : 'json_each(?) as t'
  const picked = Object.values(columns).map((type, i) => `cast(t.value->>${i} as ${type})`)
  return `insert into ${table} (series, ${Object.keys(columns).join(', ')})
    select cast(? as integer), ${picked.join(', ')} from ${source} where true on conflict do nothing`
}
