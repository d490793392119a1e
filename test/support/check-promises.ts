/**
 * Says which promises of test/requirements.ts a run left unproved: `check-promises.ts <notes of the run>`. Exits with 1
 * if there is one. scripts/test.mjs runs it after the whole suite.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { REQUIREMENTS, unproved } from '../requirements.ts'

const root = resolve(import.meta.dirname, '../..')
const [notes = ''] = process.argv.slice(2)

const proved = new Set(
  (existsSync(notes) ? readFileSync(notes, 'utf8') : '')
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { promise: string }).promise),
)
const sold = new Set(
  readdirSync(join(root, 'catalog'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
    .map((entry) => JSON.parse(readFileSync(join(entry.parentPath, entry.name), 'utf8')) as { product?: string })
    .map(({ product }) => product ?? ''),
)
const missing = unproved(proved, sold)
const lines = missing.map((promise) => `  not proved by any test that ran and passed: ${promise}`)
process.stdout.write(
  [`${proved.size} of ${Object.keys(REQUIREMENTS).length} promises of the contract proved`, ...lines, ''].join('\n'),
)
process.exitCode = missing.length === 0 ? 0 : 1
