/** The package as a stranger gets it: packed, and installed into a folder. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { requireBuild } from './process.ts'

const root = resolve(import.meta.dirname, '../..')

/** What `npm pack` says of a package. */
export interface Packed {
  readonly filename: string
  readonly size: number
  readonly entryCount: number
  readonly files: readonly { readonly path: string }[]
}

/** Runs a program without the environment of the tests, and returns what it printed. Throws with all of it if it fails. */
export function run(cwd: string, program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
  })
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`)
  return stdout
}

const npm = (cwd: string, ...args: readonly string[]): string => run(cwd, 'npm', ...args, '--loglevel=error')

/**
 * Packs the gateway and other projects and installs them in a folder, with the compiler in the version that `init` names.
 * Takes a minute. Returns what the gateway's package has.
 */
export function installPacked(folder: string, ...others: readonly string[]): Packed {
  requireBuild()
  const packed = [root, ...others].map((project): Packed => {
    const printed = npm(project, 'pack', '--json', '--pack-destination', folder)
    return (JSON.parse(printed.slice(printed.indexOf('[\n'))) as [Packed])[0]
  })
  const files = packed.map(({ filename }) => join(folder, filename))
  npm(folder, 'install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', ...files)
  const packages = join(folder, 'node_modules')
  mkdirSync(join(packages, '@types'), { recursive: true })
  for (const name of ['typescript', '@types/node'])
    if (!existsSync(join(packages, name))) symlinkSync(join(root, 'node_modules', name), join(packages, name))
  const compiler = join(packages, '.bin/tsc')
  if (!existsSync(compiler)) symlinkSync('../typescript/bin/tsc', compiler)
  return packed[0] as Packed
}
