/**
 * Says which promises of test/requirements.ts a run left unproved, and which tests of SECURITY.md (test/security.ts) did
 * not run and pass: `check-promises.ts <notes of the run>`. Exits with 1 if there is one. A test whose file may be skipped here counts
 * only in CI. scripts/test.mjs runs it after the whole suite.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { REQUIREMENTS, unproved } from '../requirements.ts'
import { notAmong, SECURITY_PROMISES, testsOf } from '../security.ts'

const root = resolve(import.meta.dirname, '../..')
const [notes = ''] = process.argv.slice(2)

interface PassedTest {
  readonly title: string
  readonly promises: readonly string[]
}

const passed = (existsSync(notes) ? readFileSync(notes, 'utf8') : '')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as PassedTest)
const proved = new Set(passed.flatMap(({ promises }) => promises))
const sold = new Set(
  readdirSync(join(root, 'catalog'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
    .map((entry) => JSON.parse(readFileSync(join(entry.parentPath, entry.name), 'utf8')) as { product?: string })
    .map(({ product }) => product ?? ''),
)
const missing = unproved(proved, sold)
const lines = missing.map((promise) => `  not proved by any test that ran and passed: ${promise}`)

const { skips } = JSON.parse(readFileSync(join(root, 'test/allowed-skips.json'), 'utf8')) as {
  readonly skips: readonly { readonly file: string }[]
}
const mayBeSkipped = new Set(process.env['CI'] ? [] : skips.map(({ file }) => file))
const named = testsOf(SECURITY_PROMISES)
const absent = notAmong(
  named,
  passed.map(({ title }) => title),
)
const needed = absent.filter(({ file }) => !mayBeSkipped.has(file))
const absentLines = needed.map(
  ({ file, title }) => `  named in test/security.ts, did not run and pass: ${title} (${file})`,
)
process.stdout.write(
  [
    `${proved.size} of ${Object.keys(REQUIREMENTS).length} promises of the contract proved`,
    ...lines,
    `${named.length - absent.length} of ${named.length} tests of SECURITY.md ran and passed`,
    ...absentLines,
    '',
  ].join('\n'),
)
process.exitCode = missing.length + needed.length === 0 ? 0 : 1
