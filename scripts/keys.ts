/** `npm run keys`: prints new keys for production without storing them. `--rotate` adds a token key in DATA_DIR. */
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { readConfig } from '../gateway/config/config.ts'
import { createKey, rotateKeys } from '../gateway/tokens/key-set.ts'
import { readFlags } from './command-line.ts'

const USAGE = `npm run keys [-- --rotate]

Prints new keys for production and stores none. --rotate puts a new token key in front of those in DATA_DIR.`

async function newKeys(): Promise<string> {
  const settleKey = generatePrivateKey()
  return `Token keys sign the access tokens that plans sell. Keep them secret; every gateway process needs the same set.
To rotate, put a new key in front and keep the old ones until the last token they signed has expired.

TOKEN_KEYS='${JSON.stringify({ keys: [await createKey()] })}'

The settlement key pays the gas if the gateway settles itself (with SETTLE_RPC_URL). It cannot move revenue. Send a
little ETH of the network to its address. PAY_TO must be another address, whose key is kept elsewhere.

SETTLE_KEY=${settleKey}
address    ${privateKeyToAddress(settleKey)}
`
}

async function rotate(): Promise<string> {
  const { dataDir, tokenKeys } = readConfig()
  if (tokenKeys !== null)
    return 'TOKEN_KEYS is set, so the keys in DATA_DIR are not used. Put a new key in front of that set instead.\n'
  const [first, ...rest] = (await rotateKeys(dataDir)).keys
  return `${first?.kid} will sign from the next start of the gateway; ${rest.length} older ${rest.length === 1 ? 'key still verifies' : 'keys still verify'}.
Stored in ${dataDir}/token-keys.json.
`
}

const { values } = readFlags(USAGE, { options: { rotate: { type: 'boolean', default: false } } })
process.stdout.write(await (values.rotate ? rotate() : newKeys()))
