/**
 * The folder of a local chain that outlives the gateway. The running chain is recognised by its process record, its
 * chain id and its genesis hash; otherwise a new one starts from the last saved state. Blocks, receipts, logs, balances
 * and used authorizations survive a save; the states of old blocks do not.
 */
import { writeFileSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Hex } from '../config/networks.ts'
import { createRpc, type Rpc } from '../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../plugin/plugin.ts'
import { makePrivateFolder } from '../stores/private-files.ts'
import { anvilBinary, awaitGenesis, freePort, identify, lastOutput, spawnAnvil, urlOf } from './anvil.ts'
import { readJson, withLock, writeAtomically } from './shared-files.ts'
import { commandOf, endProcess, isAlive } from './processes.ts'

/** The record of the chain's process. It is kept after a stop, so that the next start uses the same port. */
interface ChainRecord {
  readonly pid: number | null
  readonly port: number
  readonly chainId: number
  /** Null while the chain starts. */
  readonly genesis: Hex | null
  /** The folder it was started from: a copied folder must not adopt the chain of the original. */
  readonly folder: string
  /** The gateways that use it, as "<pid> <id>". The last one to leave stops it. */
  readonly users: readonly string[]
}

export interface Chain {
  readonly rpcUrl: string
  readonly rpc: Rpc
  readonly pid: number
  /** True if another running gateway uses this chain too. */
  readonly shared: boolean
}

export interface ChainFolder {
  /** Returns the running chain, or starts one from the last saved state. */
  attach(): Promise<Chain>
  /** Writes the state of the chain to the folder. */
  save(chain: Chain): Promise<void>
  /** Stops using the chain. The last gateway to leave saves and stops it. */
  detach(chain: Chain): Promise<void>
}

/** Shared by the functions of this file. */
interface Context {
  /** The real path, so that two links to one folder are one folder. */
  readonly folder: string
  readonly chainId: number
  readonly log: Logger
  /** This gateway in the list of users: "<pid> <id>". */
  readonly self: string
}

const START_TRIES = 3
/** How long saving a chain that is stopped may take. */
const SAVE_MS = 5_000

/** Opens the folder, creating it if needed. Throws if the platform has no chain program. */
export async function openChainFolder(options: {
  readonly folder: string
  readonly chainId: number
  readonly log: Logger
}): Promise<ChainFolder> {
  const { chainId, log } = options
  makePrivateFolder(options.folder)
  const folder = await realpath(options.folder)
  const context: Context = { folder, chainId, log, self: `${process.pid} ${crypto.randomUUID()}` }
  const locked = <Result>(work: () => Promise<Result>): Promise<Result> => withLock(join(folder, 'lock'), work)
  anvilBinary()
  return {
    attach: () => locked(() => attach(context)),
    save: (chain) => save(context, chain),
    detach: (chain) => locked(() => detach(context, chain)),
  }
}

/** Saves and stops the chain of a folder whose gateway was killed, unless another gateway uses it. */
export async function endAbandonedChain(folder: string, log: Logger): Promise<void> {
  const real = await realpath(folder).catch(() => null)
  if (real === null) return
  const context: Context = { folder: real, chainId: 0, log, self: '' }
  await withLock(join(real, 'lock'), async () => {
    const record = await readRecord(context)
    if (!record || record.pid === null || record.folder !== real || !(await isAlive(record.pid))) return
    const users = await otherUsers(context, record)
    if (users.length > 0) return writeRecord(context, { ...record, users })
    await end(context, record, { rpc: createRpc(urlOf(record.port), SAVE_MS / 1000), pid: record.pid })
  })
}

function readRecord({ folder }: Context): Promise<ChainRecord | null> {
  return readJson<ChainRecord>(join(folder, 'process.json'))
}

function writeRecord({ folder }: Context, record: ChainRecord): Promise<void> {
  return writeAtomically(join(folder, 'process.json'), text(record))
}

/** The users of a chain whose process still lives, without this gateway. */
async function otherUsers({ self }: Context, record: ChainRecord): Promise<string[]> {
  const living: string[] = []
  for (const user of record.users) if (user !== self && (await isAlive(Number.parseInt(user)))) living.push(user)
  return living
}

async function attach(context: Context): Promise<Chain> {
  const { folder, chainId, log, self } = context
  const record = await readRecord(context)
  if (record && record.chainId !== chainId)
    throw new Error(`${folder} holds a chain with id ${record.chainId}, not ${chainId}: use another DATA_DIR.`)
  const found = record?.folder === folder ? await adopt(context, record) : null
  const running = found ?? (await start(context, record?.port))
  const users = found ? await otherUsers(context, found) : []
  await writeRecord(context, { ...running, users: [...users, self] })
  if (found) log.info({ pid: found.pid, port: found.port }, 'sandbox: using the chain that is already running')
  const rpcUrl = urlOf(running.port)
  return { rpcUrl, rpc: createRpc(rpcUrl, 60), pid: running.pid as number, shared: users.length > 0 }
}

/** Returns the recorded chain if it still runs. A chain that hangs is ended; another program is left alone. */
async function adopt({ chainId, log }: Context, record: ChainRecord): Promise<ChainRecord | null> {
  const { pid, port, genesis } = record
  if (pid === null || !(await isAlive(pid))) return null
  if (genesis !== null && (await identify(port, pid)) === `${chainId} ${genesis}`) return record
  const command = await commandOf(pid)
  if (command.includes('anvil') && command.includes(`--port ${port} `)) {
    log.warn({ pid, port }, 'sandbox: the running chain does not answer as expected; stopping it')
    await endProcess(pid)
  }
  return null
}

async function start({ folder, chainId }: Context, preferred?: number): Promise<ChainRecord> {
  const [stateFile, logFile] = [join(folder, 'state.json'), join(folder, 'anvil.log')]
  for (let triesLeft = START_TRIES; ; triesLeft--) {
    const port = await freePort(preferred)
    const child = spawnAnvil({ port, chainId, stateFile, logFile })
    let failure = ''
    child.once('error', (error) => (failure = error.message))
    const ended = (): boolean => failure !== '' || child.exitCode !== null || child.signalCode !== null
    if (child.pid !== undefined) {
      const record = { pid: child.pid, port, chainId, genesis: null, folder, users: [] }
      // Written synchronously: after a crash the next gateway must find this process.
      writeFileSync(join(folder, 'process.json'), text(record), { mode: 0o600 })
      const genesis = await awaitGenesis(port, ended)
      if (genesis) return { ...record, genesis }
      await endProcess(child.pid)
    }
    // Lets the child's 'error' event arrive, which explains the failure.
    await pause(0)
    const output = failure || lastOutput(logFile)
    if (triesLeft === 1 || !/address.*in use/i.test(output))
      throw new Error(
        `The sandbox chain did not start: ${output || 'it does not answer'}. If its saved state is damaged, remove ${folder} to begin a new chain.`,
      )
  }
}

async function save({ folder }: Context, { rpc }: Pick<Chain, 'rpc'>): Promise<void> {
  const dump = await rpc.call<Hex>('anvil_dumpState')
  await writeAtomically(join(folder, 'state.json'), await promisify(gunzip)(Buffer.from(dump.slice(2), 'hex')))
}

async function detach(context: Context, chain: Chain): Promise<void> {
  const record = await readRecord(context)
  // Another gateway has started a new chain since, and is responsible for it.
  if (record?.pid !== chain.pid) return
  const users = await otherUsers(context, record)
  if (users.length > 0) return writeRecord(context, { ...record, users })
  await end(context, record, chain)
}

/** Saves and stops an unused chain. One that does not answer is stopped without: it was saved as it went. */
async function end(context: Context, record: ChainRecord, chain: Pick<Chain, 'rpc' | 'pid'>): Promise<void> {
  const timeout = pause(SAVE_MS, null, { ref: false }).then(() => Promise.reject(new Error('it does not answer')))
  await Promise.race([save(context, chain), timeout]).catch((error: unknown) =>
    context.log.error({ err: error }, 'sandbox: the state could not be saved'),
  )
  await endProcess(chain.pid)
  await writeRecord(context, { ...record, pid: null, users: [] })
}

function text(record: ChainRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`
}
