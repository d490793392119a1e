/** The keys of the sandbox: made once, kept with it, worthless on any real network. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { randomBytes } from 'node:crypto'
import secp256k1 from 'secp256k1'
import { getAddress } from 'viem/utils'
import type { Hex } from '../config/networks.ts'
import { readJson, writeWhole } from './files.ts'

export interface Keys {
  /** Pays the gas of settlements. */
  readonly settle: Hex
  readonly payee: Hex
  readonly buyer: Hex
}

/** Reads the keys, or makes them (mode 0600) where there are none. */
export async function readKeys(file: string): Promise<Keys> {
  const kept = await readJson<Partial<Keys>>(file)
  const keys = {
    settle: kept?.settle ?? newKey(),
    payee: kept?.payee ?? newKey(),
    buyer: kept?.buyer ?? newKey(),
  }
  if (!kept?.settle || !kept.payee || !kept.buyer) await writeWhole(file, `${JSON.stringify(keys, null, 2)}\n`)
  return keys
}

export function newKey(): Hex {
  for (;;) {
    const key = randomBytes(32)
    if (secp256k1.privateKeyVerify(key)) return `0x${key.toString('hex')}`
  }
}

/**
 * The account of a private key, with checksum (EIP-55).
 * @example addressOf('0x' + '1'.padStart(64, '0')) → '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf'
 */
export function addressOf(key: Hex): Hex {
  const point = secp256k1.publicKeyCreate(Buffer.from(key.slice(2), 'hex'), false)
  return getAddress(`0x${Buffer.from(keccak_256(point.subarray(1)).subarray(12)).toString('hex')}`)
}
