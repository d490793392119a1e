/** Stores the addresses of the founding list. Each has a random id that only appears in the operator's e-mails. */
import { randomBytes } from 'node:crypto'
import type { Database, Migration } from 'tollgate/plugin'
import { countSignUp, sharesTable } from './daily-shares.ts'

export const migrations: readonly Migration[] = [
  async (db) => {
    await db.schema.createTable('founding_members', (table) => {
      table.text('id').primary()
      // In lower case, so that two spellings of one mailbox are one member.
      table.text('mailbox').notNullable().unique()
      table.text('email').notNullable()
      table.text('source').notNullable()
      table.bigInteger('joined').notNullable()
    })
  },
  sharesTable,
]

export interface Member {
  /** 144 random bits, base64url: whoever has it can delete the row. */
  readonly id: string
  /** As first entered. */
  readonly email: string
  readonly source: string
  /** Epoch milliseconds. */
  readonly joined: number
}

interface Members {
  /**
   * Stores an address. An address that is already stored does not change.
   * @throws RateLimited or Unavailable if there were too many sign-ups today
   */
  join(email: string, source: string, joined: Date, client: string): Promise<void>
  /** Deletes the address with this id. Ignores an unknown id. */
  leave(id: string): Promise<void>
  /** Returns all members in the order in which they joined. */
  all(): Promise<Member[]>
}

const ID_BYTES = 18

/** Opens the stored members of the founding list. */
export function openMembers(db: Database): Members {
  return {
    async join(email, source, joined, client) {
      const id = randomBytes(ID_BYTES).toString('base64url')
      const row = { id, mailbox: email.toLowerCase(), email, source, joined: joined.getTime() }
      await db.transaction(async (transaction) => {
        await countSignUp(transaction, client, joined)
        await transaction('founding_members').insert(row).onConflict('mailbox').ignore()
      })
    },
    async leave(id) {
      await db('founding_members').where({ id }).delete()
    },
    async all() {
      return db<Member>('founding_members').select('id', 'email', 'source', 'joined').orderBy(['joined', 'id'])
    },
  }
}

/** Formats a member for the operator's mailing program. Send `unsubscribe_url` as List-Unsubscribe too (RFC 8058). */
export function rowOf({ id, email, source, joined }: Member, baseUrl: string) {
  return { email, source, joined: new Date(joined).toISOString(), unsubscribe_url: `${baseUrl}/founding/leave/${id}` }
}
