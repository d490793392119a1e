/**
 * A gateway for `npm run lab -- bench`: the built one, with the project's own catalog and made-up data, on a test network.
 * Everything is real, also the check of signatures and the journal file, except for the chain: every payment settles at
 * once with a made-up transaction hash. Configured by environment variables, as `npm start` is. With a number of workers
 * as its second argument it runs so many on one port, and each adds the number of its requests to the file COUNTS.
 */
import cluster from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGateway } from '../../../../dist/gateway/compose.js'
import { readConfig } from '../../../../dist/gateway/config/config.js'
import '../../soak/heap-on-signal.mjs'

const workers = Number(process.argv[3] ?? 1)
if (workers > 1 && cluster.isPrimary) startWorkers()
else await startGateway()

/** The first one makes the data that the others find. */
function startWorkers() {
  cluster.fork().once('listening', () => {
    for (let more = 1; more < workers; more++) cluster.fork()
  })
  process.once('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM')
    cluster.on('exit', () => Object.keys(cluster.workers).length > 0 || process.exit(0))
  })
}

async function startGateway() {
  const network = JSON.parse(process.argv[2])
  const read = readConfig()
  // Without a node to read, nothing compares the journal with a chain that does not exist.
  const config = { ...read, rpcUrl: null, networks: read.networks.map((each) => ({ ...each, rpcUrl: null })) }

  // Random for this process. No settler draws random bytes for each payment, so the bench should not pay for them.
  const prefix = randomBytes(24).toString('hex')
  let hashes = 0
  const everyMs = Number(process.env.SETTLE_EVERY_MS ?? 0)
  const newHash = () => `0x${prefix}${(hashes++).toString(16).padStart(16, '0')}`
  const settler = {
    kind: 'scripted',
    check: async (_payment, _requirements, { proven = true } = {}) =>
      proven ? null : { reason: 'invalid_exact_evm_payload_signature', message: 'No wallet signed this payment.' },
    async settle(_payment, { payTo }, { record }) {
      const transaction = newHash()
      const intent = { kind: 'chain', transaction, raw: newHash(), sender: payTo, senderNonce: 0, fromBlock: 0 }
      if (!(await record(intent))) return { state: 'pending', transaction: null }
      if (everyMs > 0) await sleep(everyMs - (Date.now() % everyMs))
      return { state: 'settled', transaction }
    },
    status: async ({ intent }) => ({ state: 'pending', transaction: intent?.transaction ?? null }),
    health: () => ({ ready: true }),
    close: async () => {},
  }

  const settlement = { network, payTo: config.payTo, settler, sandbox: null, close: async () => {} }
  const gateway = await createGateway(config, { settlement })
  if (process.env.COUNTS) {
    let requests = 0
    gateway.server.on('request', () => (requests += 1))
    process.once('exit', () => appendFileSync(process.env.COUNTS, `${requests}\n`))
  }
  await gateway.listen()
  process.once('SIGTERM', () => void gateway.close().then(() => process.exit(0)))
}
