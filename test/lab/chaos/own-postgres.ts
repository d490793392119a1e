/** A PostgreSQL server of one run, on loopback and a free port, with its data in a folder of the run. */
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../gateway/sandbox/anvil.ts'

export interface OwnPostgres {
  readonly url: string
  stop(): void
}

/** Debian keeps the programs of each release in a folder of its own. */
const RELEASES = '/usr/lib/postgresql'

/** Returns the folder of the newest installed server's programs, or null. */
function programs(): string | null {
  const releases = existsSync(RELEASES) ? readdirSync(RELEASES).sort((one, other) => Number(other) - Number(one)) : []
  const folders = releases.map((release) => join(RELEASES, release, 'bin'))
  return folders.find((folder) => existsSync(join(folder, 'initdb'))) ?? null
}

/** Whether a server is installed where Debian's package puts it. */
export function hasPostgres(): boolean {
  return programs() !== null
}

/**
 * Starts a server that keeps its data below `folder`. PostgreSQL refuses to run as root, so root runs it as the user that
 * Debian's package made for it.
 *
 * @throws Error if PostgreSQL is not installed
 */
export async function startPostgres(folder: string): Promise<OwnPostgres> {
  const found = programs()
  if (found === null) throw new Error('PostgreSQL is not installed. On Debian: apt-get install postgresql.')
  const isRoot = userInfo().uid === 0
  const run = (program: string, ...args: string[]): void => {
    const command = [join(found, program), ...args]
    const [first, ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command
    execFileSync(first as string, rest, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' })
  }
  const place = join(folder, 'postgres')
  mkdirSync(place)
  if (isRoot) {
    chmodSync(folder, 0o755)
    chownSync(place, Number(idOf('-u')), Number(idOf('-g')))
  }
  const data = join(place, 'data')
  const port = await freePort()
  run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust')
  const settings = `-p ${port} -c listen_addresses=127.0.0.1 -k ${place} -c max_connections=200`
  run('pg_ctl', '-D', data, '-w', '-l', join(place, 'log'), 'start', '-o', settings)
  let isRunning = true
  const stop = (): void => {
    if (!isRunning) return
    isRunning = false
    process.off('exit', stop)
    run('pg_ctl', '-D', data, '-m', 'immediate', 'stop')
  }
  process.once('exit', stop)
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, stop }
}

/** The number of the user or of the group `postgres`. */
function idOf(which: '-u' | '-g'): string {
  return execFileSync('id', [which, 'postgres'], { encoding: 'utf8' }).trim()
}
