/**
 * Which schemas are known to compile: `npm run build` compiles those of the catalog that comes with the gateway and lists
 * their keys, so that a start compiles only schemas that it has never seen.
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
