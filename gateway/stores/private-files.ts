/**
 * Files that hold tokens, keys, answers or payments: only the user of the gateway can read them, whatever the umask. What is
 * open to other users all the same is closed when the gateway starts.
 */
import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'

/** Makes a folder that only this user can enter, and those above it that are missing. One that exists keeps its mode. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
}

/**
 * Makes an empty file that only this user can read, and its folder. One that exists stays as it is. Call it before SQLite or
 * another program writes a new file, for which they follow the umask. Files that SQLite keeps beside a database (-wal, -shm,
 * -journal) get the mode of the database.
 */
export function makePrivateFile(file: string): void {
  makePrivateFolder(dirname(file))
  try {
    // Opens no file that exists: to close it would release the locks that SQLite holds on it in this process.
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/**
 * Closes the folders of a DATA_DIR to other users, and warns if others could read or change what is in them. DATA_DIR itself
 * is closed too if it holds nothing else.
 */
export function closeDataFolder({ dataRoot, dataDir }: DataFolder, log: Logger): void {
  const found: Found = { closed: 0, open: [] }
  for (const path of ownFolders(dataRoot) ?? [dataDir]) closeToOthers(path, found)
  if (found.closed > 0)
    log.warn(
      { folder: dataRoot, closed: found.closed },
      'other users of this machine could read or change files of DATA_DIR, which are closed to them now. If others use this machine, replace the token keys: docs/operations.md, Who can read the files, says how',
    )
  if (found.open.length > 0)
    log.warn(
      { folder: dataRoot, open: found.open },
      'other users of this machine may read or change files of DATA_DIR, which cannot be closed to them: they belong to another user, are links, or are on a disk without modes. Close them yourself, or move DATA_DIR',
    )
}

/** DATA_DIR, and the folder of this gateway in it. */
interface DataFolder {
  readonly dataRoot: string
  readonly dataDir: string
}

/** Files and folders that other users could read or change. */
interface Found {
  /** How many files and folders are closed now. */
  closed: number
  /** The paths of those that are not. */
  readonly open: string[]
}

/**
 * Closes a file, or a folder with everything in it, to other users. Links are not followed, because they may lead to what is
 * not ours. Sockets stay as they are: that of a signer is for others.
 */
function closeToOthers(path: string, found: Found): void {
  // Windows has no modes.
  if (process.platform === 'win32') return
  try {
    const stats = lstatSync(path)
    if (stats.isSymbolicLink()) {
      if ((statSync(path).mode & OTHERS) !== 0) found.open.push(path)
    } else if (stats.isFile() || stats.isDirectory()) close(path, stats, found)
    // After the folder itself, in which other users can put no link now.
    if (stats.isDirectory()) for (const name of readdirSync(path)) closeToOthers(join(path, name), found)
  } catch {
    // The file has been removed meanwhile, or is closed to this user too.
  }
}

/** The bits of a mode that let group and others in. */
const OTHERS = 0o077
/** Permissions that let other users change what a folder holds. Names alone tell them nothing. */
const WRITABLE = 0o022

function close(path: string, stats: Stats, found: Found): void {
  if ((stats.mode & OTHERS) === 0) return
  let { mode } = stats
  try {
    // No set-user-ID bit: another user who can write here may put a link in place of the file meanwhile.
    chmodSync(path, mode & 0o700)
    mode = lstatSync(path).mode
  } catch {
    // The file belongs to another user, or the disk is read-only.
  }
  const matters = stats.isDirectory() ? WRITABLE : OTHERS
  if ((mode & matters) !== 0) found.open.push(path)
  else if ((stats.mode & matters) !== 0) found.closed += 1
}

/** Returns our files in a DATA_DIR, which may hold other things too; null if it cannot be listed. */
function ownFolders(dataRoot: string): readonly string[] | null {
  try {
    const root = realpathSync(dataRoot)
    const names = readdirSync(root)
    const own = names.filter((name) => OWN.test(name))
    return own.length === names.length ? [root] : own.map((name) => join(root, name))
  } catch {
    return null
  }
}

/** Network and data mode, after which the folders in DATA_DIR are named. */
const OWN = /-(?:sample|replay|online)$/
