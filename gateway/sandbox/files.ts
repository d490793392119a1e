/** Small files that must never be seen half written. */
import { randomBytes } from 'node:crypto'
import { open, readFile, rename, rm } from 'node:fs/promises'

/** Replaces a file in one step, readable by its owner only: a reader or a crash meets the old content or the new. */
export async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString('hex')}.tmp`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(content)
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/** The parsed content; null where the file is missing or is not JSON. */
export async function readJson<Content>(path: string): Promise<Content | null> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Content
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
