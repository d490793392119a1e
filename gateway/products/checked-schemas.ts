/**
 * Which schemas are known to compile, and which documents to follow theirs: `npm run build` checks those that come with the
 * gateway and lists their keys, so that a start checks only what it has never seen.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { GATEWAY_ROOT } from '../config/project-root.ts'

/** The list, beside the built gateway. */
const CHECKED_SCHEMAS = join(GATEWAY_ROOT, 'checked-schemas.json')

/** Reads the keys of the list. It is empty if the gateway runs from its sources. */
export function readCheckedSchemas(): ReadonlySet<string> {
  return new Set(existsSync(CHECKED_SCHEMAS) ? (JSON.parse(readFileSync(CHECKED_SCHEMAS, 'utf8')) as string[]) : [])
}
