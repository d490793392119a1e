/** A disk of a few megabytes that a test can fill, for faults that only a real disk has. Needs root, on Linux. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
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

/** A disk with a journal of its own, which a test can break as the kernel does after errors. Needs root, on Linux. */
export interface FailingDisk {
  readonly folder: string
  /** Makes it read-only at once, for files that are open too. */
  fail(): void
  /** Unmounts it, checks it and mounts it again, as an operator does. No file of it may be open. */
  repair(): void
  close(): void
}

/** Mounts the disk. Skips the test, and says why, where that is not allowed. */
export function openFailingDisk(context: Context, megabytes = 48): FailingDisk {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-failing-'))
  const [image, folder] = [join(home, 'image'), join(home, 'disk')]
  const run = (command: string, ...args: readonly string[]): void =>
    void execFileSync(command, args, { stdio: ['ignore', 'ignore', 'ignore'] })
  const mount = (): void => run('mount', '-o', 'loop,errors=remount-ro', image, folder)
  try {
    mkdirSync(folder)
    run('truncate', '--size', `${megabytes}M`, image)
    run('mkfs.ext4', '-q', '-F', image)
    mount()
  } catch {
    rmSync(home, { recursive: true })
    process.stdout.write('    (skipped: only root may mount a disk)\n')
    context.skip()
  }
  return {
    folder,
    // An ordinary remount is refused while files are open.
    fail: () => run('mount', '-o', 'remount,abort', folder),
    repair() {
      run('umount', folder)
      try {
        run('e2fsck', '-p', '-f', image)
      } catch (error) {
        // 1: errors were found, and corrected.
        if ((error as { readonly status?: number }).status !== 1) throw error
      }
      mount()
    },
    close() {
      run('umount', '--lazy', folder)
      rmSync(home, { recursive: true })
    },
  }
}
