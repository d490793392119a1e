/** The sandbox that runs on this machine, and its wallet with test money, as the gateway describes them. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Hex } from '../gateway/config/networks.ts'

export interface SandboxDescription {
  readonly base_url: string
  readonly rpc_url: string
  readonly chain_id: number
  readonly buyer: { readonly address: Hex; readonly private_key: Hex }
}

/** Returns the newest DATA_DIR/<any>/sandbox.json, or null if there is none. */
export function findSandbox(dataDir: string): SandboxDescription | null {
  const files = list(dataDir)
    .map((folder) => join(dataDir, folder, 'sandbox.json'))
    .map((file) => ({ file, modified: statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null }))
    .filter((found): found is { file: string; modified: number } => found.modified !== null)
    .toSorted((one, other) => other.modified - one.modified)
  return files[0] ? (JSON.parse(readFileSync(files[0].file, 'utf8')) as SandboxDescription) : null
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
  } catch {
    return []
  }
}

/** Returns true if the address is the sandbox's. All names of the loopback interface count as the same. */
export function isSandbox(url: URL, sandbox: SandboxDescription | null): sandbox is SandboxDescription {
  return sandbox !== null && place(url) === place(new URL(sandbox.base_url))
}

function place({ protocol, hostname, port }: URL): string {
  return `${protocol}//${/^(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0)$/.test(hostname) ? 'loopback' : hostname}:${port}`
}
