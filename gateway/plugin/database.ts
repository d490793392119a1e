/**
 * The database as plugins see it: a query builder over SQLite and PostgreSQL. The gateway passes Knex, which has more
 * methods; a plugin may rely on the ones declared here. Values are always bound and never become part of the SQL text.
 *
 * Where you begin a query, name the type of the rows that come back: `await db<Row>('gold_prices').where({ day }).first()`
 * is a `Row | undefined`, and `await db<{ newest: number | null }>('gold_prices').max({ newest: 'slot' }).first()` has
 * `newest`. Without a name, results are `unknown`.
 */

/** An SQL fragment made by `db.raw`. Await it to run it as a statement of its own. */
export interface Raw extends Promise<unknown> {
  toString(): string
}

/** A column ("at as newest" names the result), or an object that maps the names of results to columns. */
type Aggregated = string | Readonly<Record<string, string | Raw>>

export interface Query<Result = unknown> extends Promise<Result> {
  select(...columns: (string | Raw | readonly string[])[]): Query<Result>
  /** Resolves with the first row, or undefined. */
  first(...columns: (string | Raw | readonly string[])[]): Query<First<Result>>
  distinct(...columns: string[]): Query<Result>

  /** Conditions in brackets; equality of every field; or one comparison, "=" by default. */
  where(group: (query: Query) => void): this
  where(fields: object): this
  where(column: string, value: unknown): this
  where(column: string, operator: string, value: unknown): this
  orWhere(column: string, operator: string, value: unknown): this
  whereNot(column: string, value: unknown): this
  whereIn(column: string, values: readonly unknown[]): this
  whereNull(column: string): this
  whereNotNull(column: string): this
  whereBetween(column: string, range: readonly [from: unknown, to: unknown]): this
  whereRaw(sql: string, values?: readonly unknown[]): this

  join(table: string, one: string, other: string): this
  join(table: string, on: (clause: JoinClause) => void): this

  groupBy(...columns: string[]): this
  orderBy(column: string, direction?: 'asc' | 'desc'): this
  orderBy(columns: readonly (string | { readonly column: string; readonly order?: 'asc' | 'desc' })[]): this
  orderByRaw(sql: string): this
  limit(count: number): this
  /** Locks the rows until the transaction ends. SQLite ignores it: it has one writer at a time. */
  forUpdate(): this

  count(column: Aggregated): Query<Result>
  countDistinct(column: Aggregated): Query<Result>
  sum(column: Aggregated): Query<Result>
  min(column: Aggregated): Query<Result>
  max(column: Aggregated): Query<Result>

  insert(rows: object | readonly object[]): Insertion
  /** Resolves with the number of rows that changed. */
  update(fields: object): Query<number>
  delete(): Query<number>
  /** Resolves with these columns of the rows that changed. */
  returning(columns: string | readonly string[]): Query
}

type First<Result> = Result extends readonly (infer Row)[] ? Row | undefined : Result

export interface Insertion extends Query {
  onConflict(columns?: string | readonly string[]): {
    /** Keeps the row that is there. */
    ignore(): Insertion
    /** Replaces the row that is there, or only the named fields. */
    merge(fields?: object | readonly string[]): Insertion
  }
}

export interface JoinClause {
  on(one: string, other: string): this
  andOn(one: string, other: string): this
}

export interface Database {
  <Row = unknown>(table: string): Query<Row[]>
  raw(sql: string, values?: readonly unknown[]): Raw
  /**
   * Runs work in a transaction. It is committed when the work resolves and rolled back when it throws. Query the
   * transaction inside, not the database: SQLite has one connection, and both would wait for each other.
   */
  transaction<Result>(work: (transaction: Database) => Promise<Result>): Promise<Result>
  /** Inserts many rows in chunks, in a transaction. */
  batchInsert(table: string, rows: readonly object[], chunkSize?: number): Promise<unknown>
  readonly schema: Schema
}

/** Changes to tables, for migrations. */
export interface Schema {
  createTable(table: string, define: (table: TableBuilder) => void): Promise<void>
  alterTable(table: string, change: (table: TableBuilder) => void): Promise<void>
  dropTable(table: string): Promise<void>
  hasTable(table: string): Promise<boolean>
}

export interface TableBuilder {
  increments(column: string): Column
  integer(column: string): Column
  bigInteger(column: string): Column
  double(column: string): Column
  boolean(column: string): Column
  text(column: string): Column
  binary(column: string): Column
  /** A column of any SQL type, e.g. "numeric(38, 0)". */
  specificType(column: string, type: string): Column
  primary(columns: readonly string[]): unknown
  unique(columns: readonly string[]): unknown
  index(columns: string | readonly string[], name?: string): unknown
  dropColumn(column: string): unknown
}

export interface Column {
  notNullable(): Column
  nullable(): Column
  primary(): Column
  unique(): Column
  defaultTo(value: string | number | boolean | null): Column
}

/** Returns true for PostgreSQL and false for SQLite, for the few statements that must differ. */
export function isPostgres(db: Database): boolean {
  const { client } = db as unknown as { readonly client?: { readonly config?: { readonly client?: unknown } } }
  return client?.config?.client === 'pg'
}
