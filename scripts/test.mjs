/**
 * `npm test`: every test, or what mocha's own options choose. `npm test -- --product gold` holds one product of the
 * catalog to the contract that all of them keep.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const given = process.argv.slice(2).flatMap((argument) => argument.split(/^(--product)=/).filter(Boolean))
const at = given.indexOf('--product')
const product = at === -1 ? undefined : given[at + 1]
if (at !== -1 && (product === undefined || product.startsWith('-'))) {
  process.stderr.write('Write the name of a product: npm test -- --product gold\n')
  process.exit(1)
}
const suite = ['--no-package', '--timeout', '20000', join('test', 'contracts', 'plugin.test.ts')]
const mocha = product === undefined ? given : [...given.toSpliced(at, 2), ...suite]
const { status } = spawnSync(
  process.execPath,
  ['--import', 'tsx/esm', join('node_modules', 'mocha', 'bin', 'mocha.js'), ...mocha],
  { cwd: root, stdio: 'inherit', env: { ...process.env, ...(product === undefined ? {} : { PRODUCT: product }) } },
)
process.exitCode = status ?? 1
