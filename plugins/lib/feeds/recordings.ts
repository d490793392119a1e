/** Finds and reads the recorded files of a replay folder. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'

export interface RecordedFile {
  /** File name without its folder. */
  readonly name: string
  readonly path: string
}

/** Lists every file below a folder whose name is accepted, in the order of their paths. */
export async function findRecordings(folder: string, accepts: (name: string) => boolean): Promise<RecordedFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && accepts(entry.name))
    .map(({ name, parentPath }) => ({ name, path: join(parentPath, name) }))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

/** Reads a file. Decompresses it if its name ends in .gz. Throws if it cannot be read or decompressed. */
export async function readRecording(path: string): Promise<Buffer> {
  const bytes = await readFile(path)
  return path.endsWith('.gz') ? promisify(gunzip)(bytes) : bytes
}

/** Reads a file like `readRecording` and returns it as UTF-8 text. */
export async function readRecordedText(path: string): Promise<string> {
  return (await readRecording(path)).toString('utf8')
}
