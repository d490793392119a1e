/**
 * `npm run licences`: checks that every package of the lock file has a licence that is allowed. `npm run docs` writes them
 * to docs/licences.md.
 */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { showUsage } from './flags.ts'

const USAGE = `npm run licences

Lists how many packages of package-lock.json have which licence. Exits with 1 if one has a licence that is not allowed, or none.`

/** Licences under which a package may be used and passed on with the gateway (SPDX). */
const ALLOWED: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'PSF-2.0',
  'Python-2.0',
  'Unlicense',
])

/** Licences under which a package may be used for development: it is not passed on. */
const ALLOWED_FOR_DEVELOPMENT: ReadonlySet<string> = new Set([...ALLOWED, 'MPL-2.0'])

/** Packages whose entry names no licence, with the one that they have: by name, or by the beginning of the name. */
const KNOWN: readonly (readonly [name: string, licence: string, source: string])[] = [
  ['memorystream', 'MIT', 'the old field "licenses" of its package.json'],
  ['@foundry-rs/anvil-', 'MIT OR Apache-2.0', 'the package that they are parts of'],
]

/** The parts of package-lock.json that are read. */
export interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

interface LockedPackage {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
}

export interface LicensedPackage {
  readonly name: string
  readonly version: string
  /** SPDX expression; null if none is known. */
  readonly licence: string | null
  readonly isForDevelopment: boolean
  readonly isAllowed: boolean
  readonly hasInstallScript: boolean
}

/** Reads package-lock.json of the project. */
export function readLockFile(root = resolve(import.meta.dirname, '..')): LockFile {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as LockFile
}

/** Lists the packages of a lock file by name, each version once. */
export function licensedPackages({ packages }: LockFile): readonly LicensedPackage[] {
  const byKey = new Map<string, LicensedPackage>()
  for (const [path, { version = '', license, dev = false, hasInstallScript = false }] of Object.entries(packages)) {
    if (path === '') continue
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const known = KNOWN.find(([start]) => name === start || (start.endsWith('-') && name.startsWith(start)))
    const licence = license ?? known?.[1] ?? null
    const isAllowed = licence !== null && allows(licence, dev ? ALLOWED_FOR_DEVELOPMENT : ALLOWED)
    const key = `${name}@${version}`
    // A package that runs anywhere is not only for development.
    const isForDevelopment = dev && (byKey.get(key)?.isForDevelopment ?? true)
    byKey.set(key, { name, version, licence, isForDevelopment, isAllowed, hasInstallScript })
  }
  return [...byKey.values()].sort((one, other) =>
    `${one.name}@${one.version}` < `${other.name}@${other.version}` ? -1 : 1,
  )
}

/**
 * Whether an SPDX expression leaves an allowed choice. Knows OR, AND and parentheses around the whole.
 *
 * @example allows('(MIT OR GPL-3.0)', new Set(['MIT'])) // true
 */
export function allows(expression: string, allowed: ReadonlySet<string>): boolean {
  const plain = expression.replace(/^\((.*)\)$/, '$1')
  return plain.split(' OR ').some((choice) => choice.split(' AND ').every((licence) => allowed.has(licence.trim())))
}

/** Packages by licence, the most frequent licence first. */
export function byLicence(packages: readonly LicensedPackage[]): ReadonlyMap<string, readonly LicensedPackage[]> {
  const groups = new Map<string, LicensedPackage[]>()
  for (const each of packages) {
    const licence = each.licence ?? 'none'
    groups.set(licence, [...(groups.get(licence) ?? []), each])
  }
  return new Map([...groups].sort(([a, one], [b, other]) => other.length - one.length || (a < b ? -1 : 1)))
}

/** The page docs/licences.md. */
export function licencesPage(lock: LockFile): string {
  const all = licensedPackages(lock)
  const table = (packages: readonly LicensedPackage[]): string =>
    [
      '| Licence | Packages |',
      '|---|---|',
      ...[...byLicence(packages)].map(
        ([licence, group]) => `| ${licence} | ${group.map(({ name, version }) => `${name} ${version}`).join(', ')} |`,
      ),
    ].join('\n')
  return [
    '<!-- Generated from package-lock.json by npm run docs. Do not edit. -->',
    '# Licences',
    'The licence of every package of the lock file, as its entry states it. `npm run licences` fails if one is not allowed; [scripts/licences.ts](../scripts/licences.ts) has the list of those that are.',
    '## Packages that run',
    table(all.filter(({ isForDevelopment }) => !isForDevelopment)),
    '## Packages for development',
    table(all.filter(({ isForDevelopment }) => isForDevelopment)),
    '## Packages whose entry names no licence',
    KNOWN.map(
      ([name, licence, source]) => `- \`${name}${name.endsWith('-') ? '…' : ''}\`: ${licence}, by ${source}.`,
    ).join('\n'),
  ].join('\n\n')
}

function run(): number {
  showUsage(USAGE)
  const packages = licensedPackages(readLockFile())
  for (const [licence, group] of byLicence(packages))
    process.stdout.write(`${String(group.length).padStart(5)}  ${licence}\n`)
  const refused = packages.filter(({ isAllowed }) => !isAllowed)
  for (const { name, version, licence } of refused)
    process.stderr.write(
      `${name} ${version}: ${licence ?? 'no licence'} is not allowed. Use another package, or allow it in scripts/licences.ts.\n`,
    )
  return refused.length === 0 ? 0 : 1
}

if (process.argv[1] === import.meta.filename) process.exitCode = run()
