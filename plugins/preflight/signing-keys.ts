/** The keys that sign: one at a time, made on first start, followed by another from time to time; all stay listed. */
import type { Database, Migration } from 'tollgate/plugin'
import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

export interface PublishedKey {
  readonly address: Hex
  /** Uncompressed secp256k1 point. */
  readonly publicKey: Hex
  /** Epoch seconds. */
  readonly validFrom: number
  /** Null for the key that signs. */
  readonly validUntil: number | null
}

export interface Keys {
  /** Signs a text by EIP-191, "personal sign", with the current key. */
  sign(text: string): Promise<{ readonly signer: Hex; readonly value: Hex }>
  /** The current key first, then those before it, newest first. */
  published(): Promise<readonly PublishedKey[]>
  /** Puts a new key in place of one that is older than `rotateDays`. A key from the settings stays. */
  rotate(): Promise<void>
}

interface Row {
  readonly serial: number
  readonly address: Hex
  readonly public_key: Hex
  /** Null where the settings bring it. */
  readonly private_key: Hex | null
  readonly valid_from: number
  readonly valid_until: number | null
}

export const migrations: readonly Migration[] = [
  (db) =>
    db.schema.createTable('preflight_keys', (table) => {
      table.integer('serial').primary()
      table.text('address').notNullable()
      table.text('public_key').notNullable()
      table.text('private_key')
      table.bigInteger('valid_from').notNullable()
      table.bigInteger('valid_until')
    }),
]

const DAY = 86_400

export interface KeyOptions {
  readonly db: Database
  /** Signs instead of a key of our own; never stored. */
  readonly given: Hex | null
  readonly rotateDays: number
  /** Epoch seconds. */
  readonly now: () => number
}

/** Opens the keys, and makes the first. Processes that start together agree on one. */
export async function openKeys({ db, given, rotateDays, now }: KeyOptions): Promise<Keys> {
  const rows = () => db<Row>('preflight_keys')
  const latest = async (): Promise<Row | undefined> => rows().orderBy('serial', 'desc').first()

  /** Adds a key after `last`; where another process was faster, its key stands. */
  async function follow(last: Row | undefined): Promise<void> {
    const privateKey = given ?? generatePrivateKey()
    const { address, publicKey } = privateKeyToAccount(privateKey)
    const serial = (last?.serial ?? 0) + 1
    const at = now()
    const row: Row = {
      serial,
      address,
      public_key: publicKey,
      private_key: given ? null : privateKey,
      valid_from: at,
      valid_until: null,
    }
    await db.transaction(async (transaction) => {
      await transaction('preflight_keys').insert(row).onConflict('serial').ignore()
      await transaction('preflight_keys')
        .where('serial', '<', serial)
        .whereNull('valid_until')
        .update({ valid_until: at })
    })
  }

  const first = await latest()
  const fits = given ? first?.address === privateKeyToAccount(given).address : Boolean(first?.private_key)
  if (!fits) await follow(first)

  return {
    async sign(text) {
      const privateKey = given ?? (await latest())?.private_key
      if (!privateKey) throw new Error('the signing key was replaced by one from the settings of another process')
      const account = privateKeyToAccount(privateKey)
      return { signer: account.address, value: await account.signMessage({ message: text }) }
    },
    async published() {
      const all = await rows().orderBy('serial', 'desc')
      return all.map(({ address, public_key, valid_from, valid_until }) => ({
        address,
        publicKey: public_key,
        validFrom: valid_from,
        validUntil: valid_until,
      }))
    },
    async rotate() {
      const last = await latest()
      if (!given && last && now() - last.valid_from >= rotateDays * DAY) await follow(last)
    },
  }
}
