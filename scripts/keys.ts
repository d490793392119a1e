/** `npm run keys`: fresh keys for production, printed and not kept. `--rotate`: a new first token key in DATA_DIR. */
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { readConfig } from '../gateway/config/config.ts'
import { createKey, rotateKeys } from '../gateway/tokens/key-set.ts'
import { readFlags } from './command-line.ts'

const USAGE = `npm run keys [-- --rotate]

Prints fresh keys for production and keeps none. --rotate puts a new token key before those of DATA_DIR.`

async function fresh(): Promise<string> {
  const settleKey = generatePrivateKey()
  return `Token keys sign the access tokens that plans sell. Keep them secret; every gateway process needs the same set.
Put another key in front to rotate, and keep the old ones until their last token has ended.

TOKEN_KEYS='${JSON.stringify({ keys: [await createKey()] })}'

The settlement key pays the gas of settlements, for a gateway that settles by itself (with SETTLE_RPC_URL). It can move
no revenue. Send a little ETH of the network to its address; PAY_TO is another address, whose key stays elsewhere.

SETTLE_KEY=${settleKey}
address    ${privateKeyToAddress(settleKey)}
`
}

async function rotated(): Promise<string> {
  const { dataDir, tokenKeys } = readConfig()
  if (tokenKeys !== null)
    return 'TOKEN_KEYS is set, so the keys of DATA_DIR are not used: put a new key in front of that set.\n'
  const [first, ...rest] = (await rotateKeys(dataDir)).keys
  return `${first?.kid} signs from the next start of the gateway on; ${rest.length} older ${rest.length === 1 ? 'key goes' : 'keys go'} on verifying.
Kept in ${dataDir}/token-keys.json.
`
}

const { values } = readFlags(USAGE, { options: { rotate: { type: 'boolean', default: false } } })
process.stdout.write(await (values.rotate ? rotated() : fresh()))
