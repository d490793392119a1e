/** Positions in sources: where in the TypeScript a line of compiled code comes from. */
import { existsSync, readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A position. That of a failed import has no column. */
const POSITION = /(file:\/\/)?(\/[^\s():]+\.[cm]?js):(\d+)(?::(\d+))?/g
/** Maps are small, but code that is edited all day has many. */
const MAX_MAPS = 500
const maps = new Map<string, SourceMap | null>()

/**
 * Replaces positions in compiled files, which have a source map beside them, by positions in their sources.
 * @example sourceStack('Error: none\n    at f (/x/dist/gateway/main.js:9:3)') → '… at f (/x/gateway/main.ts:14:5)'
 */
export function sourceStack(stack: string): string {
  return stack.replace(
    POSITION,
    (position, scheme: string | undefined, path: string, line: string, column?: string) => {
      const file = scheme === undefined ? path : fileURLToPath(`file://${path}`)
      const entry = mapOf(file)?.findEntry(Number(line) - 1, Number(column ?? 1) - 1)
      if (!entry || !('originalLine' in entry)) return position
      const source = `${resolve(dirname(file), entry.originalSource)}:${entry.originalLine + 1}`
      return column === undefined ? source : `${source}:${entry.originalColumn + 1}`
    },
  )
}

function mapOf(file: string): SourceMap | null {
  const known = maps.get(file)
  if (known !== undefined) return known
  if (maps.size >= MAX_MAPS) maps.clear()
  const map = readMap(`${file}.map`)
  maps.set(file, map)
  return map
}

function readMap(file: string): SourceMap | null {
  try {
    return existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload) : null
  } catch {
    return null
  }
}
