/**
 * `npm run lab -- signer`: what it costs to have receipts signed by the signer process. Prints the CPU
 * time of the asking process for each receipt, all of its threads, and how long a call waits, by how many calls ask at once.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createLog } from '../../../gateway/observe/log.ts'
import { connectSigner } from '../../../gateway/stores/signer-client.ts'
import { createTokens } from '../../../gateway/tokens/access-tokens.ts'
import { createKey } from '../../../gateway/tokens/key-set.ts'
import { defer, newFolder, number, readOptions, root, sayTable } from '../experiment.ts'
import { cpuMicros } from './cpu-time.ts'

const { receipts } = readOptions({
  receipts: number('N', 'receipts that are signed in each measurement', 20_000, 1),
}).values
const folder = newFolder()
const socket = join(folder, 'socket')
const tokenKeys = JSON.stringify({ keys: [await createKey()] })

/** A receipt of the usual size. */
const statement = (nth: number) => ({
  version: 1,
  network: 'eip155:84532',
  resourceUrl: 'http://127.0.0.1:4021/v1/regime/current',
  payer: `0x${'b2'.repeat(20)}`,
  issuedAt: 1_795_000_000,
  transaction: `0x${'1'.repeat(64)}`,
  scheme: 'exact',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  payTo: `0x${'a1'.repeat(20)}`,
  amount: '5000',
  nonce: `0x${String(nth).padStart(64, '0')}`,
  requestDigest: `sha256:${'2'.repeat(64)}`,
  responseDigest: `sha256:${'3'.repeat(64)}`,
})

type Sign = (nth: number) => string | Promise<string>

/** Signs all receipts, so many at once. Returns microseconds of CPU per receipt, and milliseconds of waiting. */
async function measure(sign: Sign, atOnce: number): Promise<{ readonly cpu: number; readonly wait: number }> {
  const before = cpuMicros()
  let waited = 0
  for (let signed = 0; signed < receipts; signed += atOnce) {
    const began = performance.now()
    await Promise.all(Array.from({ length: atOnce }, async (_, at) => sign(signed + at)))
    waited += performance.now() - began
  }
  return { cpu: (cpuMicros() - before) / receipts, wait: waited / (receipts / atOnce) }
}

const child = spawn(process.execPath, ['--import', 'tsx/esm', 'gateway/main.ts', '--as', 'signer'], {
  cwd: root,
  env: { PATH: process.env['PATH'], SIGNER_SOCKET: socket, TOKEN_KEYS: tokenKeys, DATA_DIR: folder },
  stdio: 'inherit',
})
defer(() => child.kill('SIGTERM'))
const client = await connectSigner(socket, createLog('warn'), 60_000)
defer(() => client.close())
const options = { dataDir: null, issuer: 'http://127.0.0.1:4021', now: () => new Date() }
const local = await createTokens({ ...options, keys: tokenKeys })
const ways: readonly (readonly [string, Sign])[] = [
  ['in this process', (nth) => local.sign('x402-receipt', statement(nth))],
  ['by the signer', (nth) => client.signStatement('x402-receipt', statement(nth))],
]
const rows = [['', 'at once', 'µs CPU of this process', 'a call waits, ms']]
for (const atOnce of [1, 8, 32])
  for (const [name, sign] of ways) {
    await measure(sign, atOnce)
    const { cpu, wait } = await measure(sign, atOnce)
    rows.push([name, String(atOnce), cpu.toFixed(0), wait.toFixed(2)])
  }
sayTable(rows)
