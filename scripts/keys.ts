/** `npm run keys`: makes new keys for production, in a file that only its owner reads. `--rotate` adds a token key. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { readStorageConfig } from '../gateway/config/config.ts'
import type { Hex } from '../gateway/config/networks.ts'
import { HELD_BY_SIGNER } from '../gateway/config/settlement.ts'
import { format } from '../gateway/http/view-formats.ts'
import { createKey, rotateKeys } from '../gateway/tokens/key-set.ts'
import { reportError } from './command-line.ts'
import { readFlags } from './flags.ts'
import { withCommands } from '../gateway/config/project-root.ts'

const USAGE = withCommands(`npm run keys [-- [--workers N] [--file keys.env | --print] | --rotate]

Makes new keys for production and writes them to a new file, keys.env by default, which only its owner can read.
--workers makes a settlement key for each of N workers. --print prints the keys instead and writes nothing.
--rotate puts a new token key in front of those in DATA_DIR.`)

const MAX_WORKERS = 64

/** The keys as the lines of an environment file, which a shell and systemd can read. */
async function newKeys(settleKeys: readonly Hex[]): Promise<string> {
  return `# Token keys sign the access tokens that plans sell. Keep them secret; every gateway process needs the same set.
# To rotate, put a new key in front and keep the old ones until the last token they signed has expired.
TOKEN_KEYS='${JSON.stringify({ keys: [await createKey()] })}'

# A settlement key pays the gas if the gateway settles itself (with SETTLE_RPC_URL). It cannot move revenue. Send a
# little ETH of the network to its address. PAY_TO must be another address, whose key is kept elsewhere. Each worker
# uses a key of its own.
${settleKeys.map((key) => `# address ${privateKeyToAddress(key)}`).join('\n')}
SETTLE_KEY=${settleKeys.length === 1 ? settleKeys[0] : `'${settleKeys.join(' ')}'`}
`
}

/** Writes new keys to a file, which must not exist, and returns what to do with it. */
async function storeKeys(name: string, settleKeys: readonly Hex[]): Promise<string> {
  const file = resolve(name)
  const more = settleKeys.length === 1 ? '' : ` -- --workers ${settleKeys.length}`
  try {
    writeFileSync(file, await newKeys(settleKeys), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    process.exitCode = 1
    const why = (error as NodeJS.ErrnoException).code === 'EEXIST' ? 'It exists already.' : (error as Error).message
    return `No keys were made: ${file} cannot be written. ${why} Name another file with --file.\n`
  }
  return `Wrote TOKEN_KEYS and SETTLE_KEY to ${file}. Only you can read it. Keep it out of the repository.
Settlements pay gas: send a little ETH of the network to ${settleKeys.map(privateKeyToAddress).join(' and to ')}.
To start with these keys: set -a; . ${format.shell(file)}; set +a; npm start${more}
`
}

async function rotate(): Promise<string> {
  const { dataDir, tokenKeys } = readStorageConfig()
  if (tokenKeys !== null) {
    process.exitCode = 1
    return tokenKeys === HELD_BY_SIGNER
      ? 'No key was made: the signer at SIGNER_SOCKET holds the token keys. Run this with the settings of the signer.\n'
      : 'No key was made: TOKEN_KEYS is set, so the keys in DATA_DIR are not used. Put a new key in front of that set instead.\n'
  }
  const [first, ...rest] = (await rotateKeys(dataDir)).keys
  return `${first?.kid} will sign from the next start of the gateway; ${rest.length} older ${rest.length === 1 ? 'key still verifies' : 'keys still verify'}.
Stored in ${dataDir}/token-keys.json.
`
}

const { values } = readFlags(USAGE, {
  options: {
    file: { type: 'string', default: 'keys.env' },
    workers: { type: 'string', default: '1' },
    print: { type: 'boolean', default: false },
    rotate: { type: 'boolean', default: false },
  },
})
const workers = Number(values.workers)
if (!Number.isInteger(workers) || workers < 1 || workers > MAX_WORKERS) {
  process.stderr.write(`--workers takes a whole number from 1 to ${MAX_WORKERS}, not "${values.workers}".\n`)
  process.exit(2)
}
const settleKeys = Array.from({ length: workers }, () => generatePrivateKey())
try {
  const make = values.rotate ? rotate : () => (values.print ? newKeys(settleKeys) : storeKeys(values.file, settleKeys))
  process.stdout.write(await make())
} catch (error) {
  reportError(error)
}
