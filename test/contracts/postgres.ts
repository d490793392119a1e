/** A schema of its own on a real PostgreSQL server, dropped after the test. */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { POSTGRES_URL } from '../support/services.ts'

const SERVER = POSTGRES_URL

export interface Schema {
  /** Connections to this address see only this schema. */
  readonly url: string
  sql(text: string): Promise<readonly object[]>
  drop(): Promise<void>
}

/** Creates the schema. Returns null if no server answers; the test then skips. */
export async function openSchema(): Promise<Schema | null> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const url = `${SERVER}?options=${encodeURIComponent(`-c search_path=${name}`)}`
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  try {
    await client.connect()
  } catch {
    return null
  }
  await client.query(`CREATE SCHEMA ${name}`)
  return {
    url,
    async sql(text) {
      return ((await client.query(text)) as { readonly rows?: readonly object[] }).rows ?? []
    },
    async drop() {
      try {
        await client.query(`SET client_min_messages = warning; DROP SCHEMA ${name} CASCADE`)
      } finally {
        await client.end()
      }
    },
  }
}
