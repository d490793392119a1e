/** A disk of a few megabytes that a test can fill, for faults that only a real disk has. Needs root, on Linux. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from 'mocha'

export interface SmallDisk {
  readonly folder: string
  /** Fills it to the last byte. */
  fill(): void
  /** Makes room again. */
  empty(): void
  remount(mode: 'ro' | 'rw'): void
  close(): void
}

/** Mounts the disk. Skips the test, and says why, where that is not allowed. */
export function openSmallDisk(context: Context, megabytes = 16): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-disk-'))
  const mount = (...args: readonly string[]): void =>
    void execFileSync('mount', [...args, folder], { stdio: ['ignore', 'ignore', 'ignore'] })
  try {
    mount('-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs')
  } catch {
    rmSync(folder, { recursive: true })
    process.stdout.write('    (skipped: only root may mount a disk)\n')
    context.skip()
  }
  const filler = join(folder, 'filler')
  return {
    folder,
    fill() {
      const { bavail, bsize } = statfsSync(folder)
      for (let bytes = bavail * bsize; bytes >= 1; bytes = Math.floor(bytes / 2))
        try {
          writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' })
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        }
    },
    empty: () => rmSync(filler, { force: true }),
    remount: (mode) => mount('-o', `remount,${mode}`),
    close() {
      execFileSync('umount', ['--lazy', folder])
      rmSync(folder, { recursive: true })
    },
  }
}
