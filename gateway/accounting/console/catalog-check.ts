/**
 * `npm run check` on demand: the files as they are now, built strictly in a process of its own with everything in
 * memory, so that neither a faulty plugin nor the work of building touches the gateway that serves.
 */
import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import type { Issue } from '../../validation/issue.ts'

export interface DryRun {
  readonly ok: boolean
  /** Null where there is no catalog at all. */
  readonly version: string | null
  readonly mistakes: readonly Issue[]
  readonly operations: number
}

const root = resolve(import.meta.dirname, '../../..')
const TIMEOUT_MS = 120_000
const MOST_BYTES = 16_000_000

/** Checks the folders of the configuration. Throws where the check itself cannot run. */
export async function dryRun({ environment }: Pick<Config, 'environment'>): Promise<DryRun> {
  const text = await output(['--import', 'tsx/esm', join(root, 'scripts', 'check.ts'), '--json'], environment)
  const { ok, version, mistakes, operations } = JSON.parse(text) as Omit<DryRun, 'operations'> & {
    readonly operations: readonly unknown[]
  }
  return { ok, version, mistakes, operations: operations.length }
}

/** What a check prints; it ends with 1 where it found mistakes. */
function output(args: readonly string[], env: Config['environment']): Promise<string> {
  const options = { cwd: root, env, timeout: TIMEOUT_MS, maxBuffer: MOST_BYTES }
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, options, (error, stdout) => {
      if (stdout.startsWith('{')) resolve(stdout)
      else reject(error ?? new Error('The check printed nothing.'))
    })
  })
}
