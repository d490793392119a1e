/**
 * Anvil, the program that runs the sandbox chain: npm installs its binary for this platform. It is spawned as a process
 * of its own that outlives the gateway.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Hex } from '../config/networks.ts'
import { createRpc, type Rpc, RpcError } from '../methods/exact-evm/nodes/rpc.ts'
import { isAlive } from './processes.ts'

const PORT_TRIES = 20
const START_MS = 15_000
const ANSWER_MS = 5_000
/** Ports are offered from here on. The ones that systems give to outgoing connections lie above (32768 on Linux). */
const FIRST_PORT = 20_000
const PORTS = 12_000
/** Coprime to the number of ports, so that processes with neighbouring ids begin far apart. */
const STRIDE = 4_801
let offered = 0
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** Returns the path of the platform's binary. Throws with instructions if its optional package is not installed. */
export function anvilBinary(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@foundry-rs/anvil-${platform}-${ARCHITECTURES[arch] ?? arch}`
  // The binary itself, not the `anvil` command of @foundry-rs/anvil: that is a Node wrapper which would outlive a kill.
  const { resolve } = createRequire(import.meta.url)
  for (const file of ['anvil', 'anvil.exe'])
    try {
      return resolve(`${name}/bin/${file}`)
    } catch {
      continue
    }
  throw new Error(
    `The sandbox chain needs ${name}, which is not installed. Run "npm ci --include=optional". If that package does ` +
      'not exist for this platform, set NETWORK=base-sepolia with PAY_TO and a settler instead.',
  )
}

export interface AnvilOptions {
  readonly port: number
  readonly chainId: number
  /** A saved state to start from, if the file exists. */
  readonly stateFile: string
  /** Receives the program's output, which explains a failed start. */
  readonly logFile: string
}

/**
 * Starts the chain on 127.0.0.1 in a process group of its own, so that Ctrl-C does not end it before its state is saved.
 * `--prune-history` keeps old states out of ~/.foundry; blocks, receipts and logs are kept.
 */
export function spawnAnvil({ port, chainId, stateFile, logFile }: AnvilOptions): ChildProcess {
  const args = ['--host', '127.0.0.1', '--port', String(port), '--chain-id', String(chainId), '--accounts', '0']
  args.push('--prune-history', '256', '--quiet', '--color', 'never')
  if (existsSync(stateFile)) args.push('--load-state', stateFile)
  const output = openSync(logFile, 'w', 0o600)
  try {
    const child = spawn(anvilBinary(), args, { detached: true, windowsHide: true, stdio: ['ignore', output, output] })
    child.unref()
    return child
  } finally {
    closeSync(output)
  }
}

/** Returns the end of the program's output, or "" if there is none. */
export function lastOutput(logFile: string): string {
  return existsSync(logFile) ? readFileSync(logFile, 'utf8').trim().slice(-500) : ''
}

/** Returns the RPC address of a chain on this machine. */
export function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`
}

/**
 * Returns "<chain id> <genesis hash>" of the chain behind a port, or null if none answers. A chain that is too busy to
 * answer gets five seconds, as long as its process lives.
 */
export async function identify(port: number, pid: number): Promise<string | null> {
  const deadline = Date.now() + ANSWER_MS
  do {
    try {
      const [id, genesis] = await identity(createRpc(urlOf(port), 2))
      return `${Number(id)} ${genesis}`
    } catch (error) {
      // No answer may mean a busy chain; a closed port or a refusal never does.
      if (error instanceof RpcError && error.fault !== 'unknown') return null
      await pause(50)
    }
  } while (Date.now() < deadline && (await isAlive(pid)))
  return null
}

/** Waits for a starting chain and returns its genesis hash; null if it ends or does not answer in time. */
export async function awaitGenesis(port: number, ended: () => boolean): Promise<Hex | null> {
  const rpc = createRpc(urlOf(port), 2)
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline && !ended()) {
    try {
      return (await identity(rpc))[1]
    } catch {
      await pause(10)
    }
  }
  return null
}

async function identity(rpc: Rpc): Promise<[id: Hex, genesis: Hex]> {
  const id = await rpc.call<Hex>('eth_chainId')
  const block = await rpc.call<{ hash: Hex } | null>('eth_getBlockByNumber', '0x0', false)
  if (!block) throw new RpcError('refused', 'The chain has no first block.')
  return [id, block.hash]
}

/**
 * Returns `preferred` if nothing listens there, else any free port. A process that has just ended may hold its port a
 * moment longer, so the preferred port is tried for a second.
 */
export async function freePort(preferred = 0): Promise<number> {
  for (let tries = preferred === 0 ? PORT_TRIES : 0; tries < PORT_TRIES; tries++) {
    if (await bindOnce(preferred).catch(() => null)) return preferred
    await pause(50)
  }
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const port = nextPort()
    if (await bindOnce(port).catch(() => null)) return port
  }
  return bindOnce(0)
}

/**
 * Offers each port once per process, and to another process only much later, since some time passes before the caller
 * listens.
 */
function nextPort(): number {
  offered += 1
  return FIRST_PORT + ((process.pid * STRIDE + offered) % PORTS)
}

async function bindOnce(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
