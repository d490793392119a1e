/** Watches the folders an edition is made of, and says when they have come to rest after a change. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { watch } from 'chokidar'
import type { Logger } from '../plugin.ts'

export interface WatchOptions {
  readonly folders: readonly string[]
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

/**
 * Resolves when every change from now on will be seen. What cannot be watched is logged: SIGHUP works there. A folder
 * that is not there yet is not watched.
 */
export async function watchFolders({ folders, onRest, log }: WatchOptions): Promise<Watch> {
  let timer: NodeJS.Timeout | undefined
  let since: number | null = null

  function changed(): void {
    const at = performance.now()
    since ??= at
    clearTimeout(timer)
    timer = setTimeout(rest, Math.max(0, Math.min(REST_MS, since + MOST_MS - at)))
  }

  function rest(): void {
    since = null
    onRest()
  }

  const watcher = watch(
    folders.filter((folder) => existsSync(folder)),
    {
      ignoreInitial: true,
      ignored: (path) => !folders.includes(path) && isNoise(basename(path)),
    },
  )
  watcher.on('all', changed)
  watcher.on('error', (error) =>
    log.warn({ err: error }, 'some changes of files are not seen; send SIGHUP after a change'),
  )
  await new Promise<void>((resolve) => watcher.once('ready', resolve))
  return {
    async close() {
      clearTimeout(timer)
      await watcher.close()
    },
  }
}

/** Hidden files, packages, generated types, and what editors leave behind while they save. */
function isNoise(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name.endsWith('~') || name.endsWith('.d.ts')
}
