/** The chain's program: the anvil binary that npm installs for this platform, run on its own and not as our child. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const PORT_TRIES = 20
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

/** Path of the platform's binary. Throws, saying what to do, where its optional package is not installed. */
export function anvilBinary(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@foundry-rs/anvil-${platform}-${ARCHITECTURES[arch] ?? arch}`
  // The package npm puts beside @foundry-rs/anvil. The `anvil` command is a Node wrapper, and would outlive a kill.
  const { resolve } = createRequire(import.meta.url)
  for (const file of ['anvil', 'anvil.exe'])
    try {
      return resolve(`${name}/bin/${file}`)
    } catch {
      continue
    }
  throw new Error(
    `The sandbox chain needs ${name}, which is not installed. Run "npm ci --include=optional"; where that package ` +
      'does not exist for this platform, set NETWORK=base-sepolia with PAY_TO and a settler instead.',
  )
}

export interface AnvilOptions {
  readonly port: number
  readonly chainId: number
  /** A saved state to begin with, where the file exists. */
  readonly stateFile: string
  /** What the program has to say when it fails. */
  readonly logFile: string
}

/**
 * Starts the chain on 127.0.0.1, in a process group of its own: Ctrl-C must not reach it before its state is saved.
 * `--prune-history` keeps old states out of ~/.foundry; blocks, receipts and logs stay.
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

/** Why the program ended, in its own words. */
export function lastWords(logFile: string): string {
  return existsSync(logFile) ? readFileSync(logFile, 'utf8').trim().slice(-500) : ''
}

/** `preferred` where nobody listens there (a process that has just ended may hold it a moment longer), else any. */
export async function freePort(preferred = 0): Promise<number> {
  for (let tries = preferred === 0 ? PORT_TRIES : 0; tries < PORT_TRIES; tries++) {
    if (await listenOnce(preferred).catch(() => null)) return preferred
    await pause(50)
  }
  return listenOnce(0)
}

async function listenOnce(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
