/** Watches the folders that an edition is built from. A burst of changes is reported once, when it is over. */
import { existsSync, type Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import type { Logger } from '../plugin/plugin.ts'

export interface WatchOptions {
  readonly folders: readonly string[]
  /** When the folders were read, in epoch milliseconds. A change after that, and before the watch began, is reported too. */
  readonly since?: number
  /** Called after a change, once nothing has changed for a moment. It handles its own errors. */
  readonly onRest: () => void
  readonly log: Logger
}

export interface Watch {
  close(): Promise<void>
}

/** Long enough for an editor to save a file, or for a few files to be copied. */
const REST_MS = 200
/** Folders that change all the time are reported after this long. */
const MAX_WAIT_MS = 1_500
/** How often the watch checks whether a folder or link was replaced or created. */
const POLL_MS = 1_000
/** The one link that Kubernetes replaces when a mounted ConfigMap or Secret changes. The names beside it lead through it. */
const KUBERNETES_LINK = '..data'

/**
 * Watches folders. Resolves when every change from now on will be seen. If a folder cannot be watched, that is logged;
 * SIGHUP reloads the catalog there. A folder that is moved away and replaced, as by a new release, is watched in its new
 * place, and so is the target of a link inside it.
 */
export async function watchFolders(options: WatchOptions): Promise<Watch> {
  const folders = new FolderWatch(options)
  await folders.open()
  return folders
}

class FolderWatch implements Watch {
  readonly #options: WatchOptions
  #watcher: FSWatcher | undefined
  /** Identity of each folder and link when they were last checked. */
  #places = ''
  #listings: Listings = new Map()
  #poll: NodeJS.Timeout | undefined
  /** The check that is under way. */
  #checking: Promise<void> = Promise.resolve()
  #rest: NodeJS.Timeout | undefined
  /** When the first change since the last report was seen. */
  #changedAt: number | null = null

  constructor(options: WatchOptions) {
    this.#options = options
  }

  async open(): Promise<void> {
    const { since = Infinity, log } = this.#options
    this.#places = await this.#placesNow()
    this.#watcher = await this.#watch(since)
    this.#poll = setInterval(() => {
      this.#checking = this.#checking
        .then(() => this.#checkPlaces())
        .catch((error: unknown) => log.warn({ err: error }, 'the folders could not be checked for replaced links'))
    }, POLL_MS)
    this.#poll.unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#poll)
    await this.#checking
    clearTimeout(this.#rest)
    await this.#watcher?.close()
  }

  async #watch(since: number): Promise<FSWatcher> {
    const { folders, log } = this.#options
    const watcher = watch(
      folders.filter((folder) => existsSync(folder)),
      {
        // The initial events report every file that exists. They show what changed after `since`.
        ignoreInitial: since === Infinity,
        alwaysStat: true,
        ignored: (path) => !folders.includes(path) && isNoise(basename(path)),
      },
    )
    let isReady = false
    watcher.on('all', (_event, _path, stats?: Stats) => {
      if (isReady || (stats !== undefined && stats.ctimeMs >= since)) this.#changed()
    })
    watcher.on('error', (error) =>
      log.warn({ err: error }, 'some file changes cannot be seen; send SIGHUP after a change'),
    )
    await new Promise<void>((resolve) => watcher.once('ready', resolve))
    isReady = true
    return watcher
  }

  #changed(): void {
    const now = performance.now()
    this.#changedAt ??= now
    clearTimeout(this.#rest)
    const delay = Math.max(0, Math.min(REST_MS, this.#changedAt + MAX_WAIT_MS - now))
    this.#rest = setTimeout(() => {
      this.#changedAt = null
      this.#options.onRest()
    }, delay)
  }

  /** Describes where each folder, and every link inside it, leads at the moment: equal texts for equal targets. */
  async #placesNow(): Promise<string> {
    const places = new Places(this.#listings)
    const all = await Promise.all(this.#options.folders.map((folder) => places.of(folder)))
    this.#listings = places.listings
    return all.flat().join()
  }

  /** Restarts the watch if one of the folders, or the target of a link, was replaced. */
  async #checkPlaces(): Promise<void> {
    const places = await this.#placesNow()
    if (places === this.#places) return
    this.#places = places
    await this.#watcher?.close()
    this.#watcher = await this.#watch(Infinity)
    this.#changed()
  }
}

/** The contents of a folder. */
interface Listing {
  /** Device and inode of the folder, and when it last changed. */
  readonly version: string
  /** The names of the folders and links in it. */
  readonly below: readonly string[]
}

type Listings = ReadonlyMap<string, Listing>

/** Two changes of a folder within this time may have the same date. */
const DATE_MS = 2_000

/** Looks where folders lead. Lists only those that have changed since they were listed before. */
class Places {
  readonly listings = new Map<string, Listing>()
  readonly #before: Listings

  constructor(before: Listings) {
    this.#before = before
  }

  /** Lists device and inode of a folder and of the folders below it. `within` are its parents, to end a circle of links. */
  async of(path: string, within: readonly string[] = []): Promise<string[]> {
    const found = await stat(path).catch(() => null)
    const place = found ? `${found.dev}:${found.ino}` : ''
    if (!found?.isDirectory() || within.includes(place)) return [place]
    const names = await this.#below(path, `${place} ${found.ctimeMs}`, found.ctimeMs)
    const below = await Promise.all(names.map((name) => this.of(join(path, name), [...within, place])))
    return [place, ...below.flat()]
  }

  async #below(path: string, version: string, changedAt: number): Promise<readonly string[]> {
    const known = this.#before.get(path)
    const now = Date.now()
    const below = known?.version === version ? known.below : await foldersIn(path)
    if (changedAt < now - DATE_MS) this.listings.set(path, { version, below })
    return below
  }
}

/** The names of the folders and links in a folder that may matter. */
async function foldersIn(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isSymbolicLink() || entry.isDirectory())
    .flatMap(({ name }) => (name === KUBERNETES_LINK || !isNoise(name) ? [name] : []))
}

/** Hidden files, packages, generated types, and what editors leave behind while they save. */
function isNoise(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name.endsWith('~') || name.endsWith('.d.ts')
}
