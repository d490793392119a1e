// Says whether `dist` was built from the sources as they are. Has no dependencies: it runs before anything is installed.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of the project. */
export const root = dirname(import.meta.dirname)

/** True if `dist` was built from the sources as they are. Without sources it is all there is. */
export function isBuilt() {
  return !existsSync(join(root, 'gateway')) || sourcesOfBuild() === hashOfSources()
}

/** The one module that the gateway shares with its pages. */
const SHARED = join(root, 'views', 'assets', 'snippets.js')

/** A hash of everything that decides what a build writes: the lock file, the gateway and the scripts. */
export function hashOfSources() {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')))
  const files = ['gateway', 'scripts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
  )
  const paths = [SHARED, ...files.map((entry) => join(entry.parentPath ?? entry.path, entry.name))]
  for (const path of paths.sort()) hash.update(`${path.slice(root.length)}\0`).update(readFileSync(path))
  return hash.digest('hex')
}

function sourcesOfBuild() {
  try {
    return JSON.parse(readFileSync(join(root, 'dist', 'build.json'), 'utf8')).sources
  } catch {
    return undefined
  }
}
