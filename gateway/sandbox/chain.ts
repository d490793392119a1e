/**
 * A local chain that outlives the gateway: one per folder. It is found again by its process record, its RPC answer,
 * its chain id and its genesis hash, or begun from the last saved state. Blocks, receipts, logs, balances and used
 * authorizations all survive a save; states of old blocks do not.
 */
import { writeFileSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Hex } from '../config/networks.ts'
import { createRpc, type Rpc } from '../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../plugin/plugin.ts'
import { anvilBinary, freePort, lastWords, spawnAnvil } from './anvil.ts'
import { readJson, writeWhole } from './files.ts'
import { awaitGenesis, identify, urlOf } from './identity.ts'
import { commandOf, endProcess, isAlive } from './processes.ts'
import { inTurn } from './turn.ts'

/** What is known of the chain's process: written when it starts, kept when it stops so that the port stays the same. */
interface ChainRecord {
  readonly pid: number | null
  readonly port: number
  readonly chainId: number
  /** Null while it starts. */
  readonly genesis: Hex | null
  /** A copied folder must not take over the chain of the original. */
  readonly folder: string
  /** Who uses it: "<pid> <id>". The last one to leave stops it. */
  readonly users: readonly string[]
}

export interface Chain {
  readonly rpcUrl: string
  readonly rpc: Rpc
  readonly pid: number
  /** Whether another living gateway uses this chain too. */
  readonly shared: boolean
}

export interface ChainFolder {
  /** The living chain, or a new one from the last saved state. */
  attach(): Promise<Chain>
  /** Writes the state of the chain to the folder. */
  save(chain: Chain): Promise<void>
  /** Leaves the chain; the last to leave saves and stops it. */
  detach(chain: Chain): Promise<void>
}

const STARTS = 3

export async function openChainFolder(options: {
  readonly folder: string
  readonly chainId: number
  readonly log: Logger
}): Promise<ChainFolder> {
  const { chainId, log } = options
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
  const folder = await realpath(options.folder)
  const file = (name: string): string => join(folder, name)
  const me = `${process.pid} ${crypto.randomUUID()}`
  const turn = <Result>(work: () => Promise<Result>): Promise<Result> => inTurn(file('lock'), work)

  const readRecord = (): Promise<ChainRecord | null> => readJson<ChainRecord>(file('process.json'))
  const others = async (record: ChainRecord | null): Promise<string[]> => {
    const living: string[] = []
    for (const user of record?.users ?? []) if (user !== me && (await isAlive(Number.parseInt(user)))) living.push(user)
    return living
  }

  async function attach(): Promise<Chain> {
    const record = await readRecord()
    if (record && record.chainId !== chainId)
      throw new Error(`${folder} holds a chain with id ${record.chainId}, not ${chainId}: use another DATA_DIR.`)
    const found = record?.folder === folder ? await adopt(record) : null
    const running = found ?? (await start(record?.port))
    const users = found ? await others(found) : []
    await writeWhole(file('process.json'), text({ ...running, users: [...users, me] }))
    if (found)
      log.info({ pid: found.pid, port: found.port }, 'sandbox: the chain of the last run lives on; it is used again')
    const rpcUrl = urlOf(running.port)
    return { rpcUrl, rpc: createRpc(rpcUrl, 60), pid: running.pid as number, shared: users.length > 0 }
  }

  /** The chain of the record if it lives and answers as itself. One that hangs is ended; a foreign process is not. */
  async function adopt(record: ChainRecord): Promise<ChainRecord | null> {
    const { pid, port, genesis } = record
    if (pid === null || !(await isAlive(pid))) return null
    if (genesis !== null && (await identify(port, pid)) === `${chainId} ${genesis}`) return record
    const command = await commandOf(pid)
    if (command.includes('anvil') && command.includes(`--port ${port} `)) {
      log.warn({ pid, port }, 'sandbox: the chain of the last run does not answer as itself; it is stopped')
      await endProcess(pid)
    }
    return null
  }

  async function start(preferred?: number): Promise<ChainRecord> {
    for (let left = STARTS; ; left--) {
      const port = await freePort(preferred)
      const child = spawnAnvil({ port, chainId, stateFile: file('state.json'), logFile: file('anvil.log') })
      let failure = ''
      child.once('error', (error) => (failure = error.message))
      const ended = (): boolean => failure !== '' || child.exitCode !== null || child.signalCode !== null
      if (child.pid !== undefined) {
        const record = { pid: child.pid, port, chainId, genesis: null, folder, users: [] }
        // At once and in one go: whoever comes after a crash must find the process.
        writeFileSync(file('process.json'), text(record), { mode: 0o600 })
        const genesis = await awaitGenesis(port, ended)
        if (genesis) return { ...record, genesis }
        await endProcess(child.pid)
      }
      await pause(0)
      const words = failure || lastWords(file('anvil.log'))
      if (left === 1 || !/address.*in use/i.test(words))
        throw new Error(
          `The sandbox chain did not start: ${words || 'no answer'}. If its saved state is at fault, remove ${folder} to begin a new chain.`,
        )
    }
  }

  async function save({ rpc }: Chain): Promise<void> {
    const dump = await rpc.call<Hex>('anvil_dumpState')
    await writeWhole(file('state.json'), await promisify(gunzip)(Buffer.from(dump.slice(2), 'hex')))
  }

  async function detach(chain: Chain): Promise<void> {
    const record = await readRecord()
    // Somebody else has started another one since, and sees to it.
    if (record?.pid !== chain.pid) return
    const users = await others(record)
    if (users.length > 0) return writeWhole(file('process.json'), text({ ...record, users }))
    await save(chain).catch((error: unknown) => log.error({ err: error }, 'sandbox: the last state was not saved'))
    await endProcess(chain.pid)
    await writeWhole(file('process.json'), text({ ...record, pid: null, users: [] }))
  }

  anvilBinary()
  return { attach: () => turn(attach), save, detach: (chain) => turn(() => detach(chain)) }
}

function text(record: ChainRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`
}
