/** Watches the folders an edition is made of, and says when they have come to rest after a change. */
import { existsSync, type Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import type { Logger } from '../plugin/plugin.ts'

export interface WatchOptions {
  readonly folders: readonly string[]
  /** When the folders were read, epoch milliseconds: what has changed after that, and before the watch, counts too. */
  readonly since?: number
  /** Called after a change, once nothing has changed for a moment. Its failures are its own to tell. */
  readonly onRest: () => void
  readonly log: Logger
}

export interface Watch {
  close(): Promise<void>
}

/** Long enough for an editor, or a copy of some files, to come to its end. */
const REST_MS = 200
/** A folder that never rests is looked at all the same. */
const MOST_MS = 1_500
/** How often it is seen that a folder or link has been put in the place of another, or has come into being. */
const LOOK_MS = 1_000
/** The one link that Kubernetes changes when a mounted ConfigMap or Secret does: the names beside it lead through it. */
const MOUNTED = '..data'

/**
 * Resolves when every change from now on will be seen. What cannot be watched is logged: SIGHUP works there. A folder
 * that is moved away and replaced, as by a new release, is watched in its new place; so is what a link inside it leads
 * to, once it leads elsewhere.
 */
export async function watchFolders({ folders, since = Infinity, onRest, log }: WatchOptions): Promise<Watch> {
  let timer: NodeJS.Timeout | undefined
  let began: number | null = null

  function changed(): void {
    const at = performance.now()
    began ??= at
    clearTimeout(timer)
    timer = setTimeout(rest, Math.max(0, Math.min(REST_MS, began + MOST_MS - at)))
  }

  function rest(): void {
    began = null
    onRest()
  }

  async function open(since: number): Promise<FSWatcher> {
    const watcher = watch(
      folders.filter((folder) => existsSync(folder)),
      {
        // At first it tells of everything that is there.
        ignoreInitial: since === Infinity,
        alwaysStat: true,
        ignored: (path) => !folders.includes(path) && isNoise(basename(path)),
      },
    )
    let isReady = false
    watcher.on('all', (_event, _path, stats?: Stats) => {
      if (isReady || (stats !== undefined && stats.ctimeMs >= since)) changed()
    })
    watcher.on('error', (error) =>
      log.warn({ err: error }, 'some changes of files are not seen; send SIGHUP after a change'),
    )
    await new Promise<void>((resolve) => watcher.once('ready', resolve))
    isReady = true
    return watcher
  }

  let places = await placesOf(folders)
  let watcher = await open(since)
  let looking: Promise<void> = Promise.resolve()

  async function look(): Promise<void> {
    const now = await placesOf(folders)
    if (now === places) return
    places = now
    await watcher.close()
    watcher = await open(Infinity)
    changed()
  }

  const looks = setInterval(() => {
    looking = looking.then(look).catch((error: unknown) => log.warn({ err: error }, 'the folders are not watched anew'))
  }, LOOK_MS)
  looks.unref()
  return {
    async close() {
      clearInterval(looks)
      await looking
      clearTimeout(timer)
      await watcher.close()
    },
  }
}

/** Where each folder, and every link inside it, leads at the moment. */
async function placesOf(folders: readonly string[]): Promise<string> {
  return (await Promise.all(folders.map((folder) => leads(folder)))).flat().join()
}

/** `within`: the folders it lies in, so that a link that leads round in circles ends. */
async function leads(path: string, within: readonly string[] = []): Promise<string[]> {
  const found = await stat(path).catch(() => null)
  const place = found ? `${found.dev}:${found.ino}` : ''
  if (!found?.isDirectory() || within.includes(place)) return [place]
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  const links = entries.filter(
    (entry) => (entry.isSymbolicLink() || entry.isDirectory()) && (entry.name === MOUNTED || !isNoise(entry.name)),
  )
  const below = await Promise.all(links.map(({ name }) => leads(join(path, name), [...within, place])))
  return [place, ...below.flat()]
}

/** Hidden files, packages, generated types, and what editors leave behind while they save. */
function isNoise(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name.endsWith('~') || name.endsWith('.d.ts')
}
