/** The keys that sign decisions. One key signs at a time and is replaced regularly; all keys stay published. */
import type { Database, Migration } from 'tollgate/plugin'
import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

export interface PublishedKey {
  readonly address: Hex
  /** Uncompressed secp256k1 point. */
  readonly publicKey: Hex
  /** Epoch seconds. */
  readonly validFrom: number
  /** Null for the current key. */
  readonly validUntil: number | null
}

export interface Keys {
  /** Signs a text with the current key as EIP-191 "personal sign". */
  sign(text: string): Promise<{ readonly signer: Hex; readonly value: Hex }>
  /** All keys, newest first. The first one is the current key. */
  published(): Promise<readonly PublishedKey[]>
  /** Replaces a generated key that is older than `rotateDays`. A key from the settings is never replaced. */
  rotate(): Promise<void>
}

interface Row {
  readonly serial: number
  readonly address: Hex
  readonly public_key: Hex
  /** Null for a key from the settings, which is not stored. */
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

interface KeyOptions {
  readonly db: Database
  /** Private key from the settings, or null to generate one. It is never stored. */
  readonly configuredKey: Hex | null
  readonly rotateDays: number
  /** Epoch seconds. */
  readonly now: () => number
}

/**
 * Opens the keys. Adds one if there is none, or if the current one does not match the settings. Processes that start at
 * the same time agree on one key.
 */
export async function openKeys({ db, configuredKey, rotateDays, now }: KeyOptions): Promise<Keys> {
  const rows = () => db<Row>('preflight_keys')
  const latest = async (): Promise<Row | undefined> => rows().orderBy('serial', 'desc').first()

  /** Adds a key after `last`. If another process was faster, its key is used. */
  async function addKey(last: Row | undefined): Promise<void> {
    const privateKey = configuredKey ?? generatePrivateKey()
    const { address, publicKey } = privateKeyToAccount(privateKey)
    const serial = (last?.serial ?? 0) + 1
    const at = now()
    const row: Row = {
      serial,
      address,
      public_key: publicKey,
      private_key: configuredKey ? null : privateKey,
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
  const isCurrent = configuredKey
    ? first?.address === privateKeyToAccount(configuredKey).address
    : Boolean(first?.private_key)
  if (!isCurrent) await addKey(first)

  return {
    async sign(text) {
      const privateKey = configuredKey ?? (await latest())?.private_key
      if (!privateKey) throw new Error('another process replaced the signing key with one from its settings')
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
      if (!configuredKey && last && now() - last.valid_from >= rotateDays * DAY) await addKey(last)
    },
  }
}
