/** The inputs that are kept: one file each, named by its content, in a folder per target. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Inputs that took a new branch are kept up to this size, findings up to any. */
export const MAX_KEPT_BYTES = 4_096

/** Begins the name of an input that was a finding. */
const FINDING = 'finding-'

/** Reads the inputs of a target, sorted by name. */
export function readCorpus(folder: string, target: string): Map<string, Buffer> {
  const home = join(folder, target)
  if (!existsSync(home)) return new Map()
  return new Map(
    readdirSync(home)
      .sort()
      .map((name) => [name, readFileSync(join(home, name))]),
  )
}

/** Stores an input, once. Returns the path of its file. */
export function keepInput(folder: string, target: string, input: Buffer, isFinding = false): string {
  const name = createHash('sha256').update(input).digest('hex').slice(0, 12)
  const path = join(folder, target, isFinding ? FINDING + name : name)
  mkdirSync(join(folder, target), { recursive: true })
  if (!existsSync(path)) writeFileSync(path, input)
  return path
}
