/** The tables: current listings and visits, and every version of every record with the time from which it was known. */
import type { Migration } from 'tollgate/plugin'

/** Creates the tables, which are described at the top of this file. */
export const migrations: readonly Migration[] = [
  async (db) => {
    await db.schema.createTable('directory_listings', (table) => {
      table.text('source').notNullable()
      table.text('id').notNullable()
      table.integer('rank').notNullable()
      table.text('listing').notNullable()
      table.bigInteger('seen').notNullable()
      // The last sweep that found it. A complete sweep removes what it did not find.
      table.bigInteger('sweep').notNullable()
      table.primary(['source', 'id'])
      table.index('id')
    })
    await db.schema.createTable('directory_entries', (table) => {
      table.text('id').primary()
      table.bigInteger('first_seen').notNullable()
      table.text('payees').notNullable()
      table.bigInteger('payto_changed')
      table.text('health').notNullable()
      table.bigInteger('next_visit')
      table.index('next_visit')
    })
    await db.schema.createTable('directory_visits', (table) => {
      table.text('id').notNullable()
      table.bigInteger('at').notNullable()
      table.integer('ok').notNullable()
      table.index(['id', 'at'])
    })
    await db.schema.createTable('directory_records', (table) => {
      table.text('id').notNullable()
      table.bigInteger('known_at').notNullable()
      table.bigInteger('superseded_at')
      table.text('record').notNullable()
      table.text('kind').notNullable()
      table.text('protocols').notNullable()
      table.text('networks').notNullable()
      table.text('tags').notNullable()
      table.text('words').notNullable()
      table.text('name_key').notNullable()
      table.double('price_usd')
      table.integer('alive').notNullable()
      table.integer('hidden').notNullable()
      table.bigInteger('first_seen').notNullable()
      table.index(['id', 'superseded_at'])
      table.index('superseded_at')
    })
    await db.schema.createTable('directory_sweeps', (table) => {
      table.increments('id')
      table.text('source').notNullable()
      table.bigInteger('known_at').notNullable()
      table.text('error')
      table.integer('rows').notNullable()
      table.text('dropped').notNullable()
      table.index(['source', 'known_at'])
    })
    await db.schema.createTable('directory_notes', (table) => {
      table.text('name').primary()
      table.text('value').notNullable()
    })
    await db.schema.createTable('directory_origins', (table) => {
      table.text('origin').primary()
      table.bigInteger('next_visit').notNullable()
    })
  },
  async (db) => {
    // How many records are listed now, and how many of them are alive. Every change of records adds to these numbers.
    await db.schema.createTable('directory_counts', (table) => {
      table.text('name').primary()
      table.bigInteger('n').notNullable()
    })
    const listed = 'select count(*) from directory_records where superseded_at is null and hidden = 0'
    await db.raw(`insert into directory_counts (name, n)
      values ('records', (${listed})), ('alive', (${listed} and alive = 1))`)
  },
]

export interface EntryRow {
  readonly id: string
  readonly first_seen: number
  readonly payees: string
  readonly payto_changed: number | null
  readonly health: string
}

export interface ListingRow {
  readonly source: string
  readonly id: string
  readonly rank: number
  readonly listing: string
  readonly seen: number
}

export interface SweepRow {
  readonly known_at: number
  readonly error: string | null
  readonly rows: number
  /** JSON: number of skipped rows by reason. */
  readonly dropped: string
}
