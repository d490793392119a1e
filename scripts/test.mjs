/**
 * `npm test`: every test, or what mocha's own options choose. `npm test -- --product gold` holds one product of the
 * catalog to the contract that all of them keep. Every test is two runs side by side, a core each: what belongs to the
 * products and their pages, told when it is over, and the gateway.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const given = process.argv.slice(2).flatMap((argument) => argument.split(/^(--product)=/).filter(Boolean))
const at = given.indexOf('--product')
const product = at === -1 ? undefined : given[at + 1]
if (at !== -1 && (product === undefined || product.startsWith('-'))) {
  process.stderr.write('Write the name of a product: npm test -- --product gold\n')
  process.exit(1)
}
const suite = ['--no-package', '--timeout', '60000', join('test', 'contracts', 'plugin.test.ts')]
const ofProducts = ['browser', 'plugins'].map((folder) => join('test', folder, '**', '*.test.ts'))
const isWhole = product === undefined && given.every((argument, at) => isOption(argument) || isOption(given[at - 1]))
const runs =
  product !== undefined
    ? [[...given.toSpliced(at, 2), ...suite]]
    : isWhole
      ? [
          ['--no-package', '--timeout', '60000', ...given, ...ofProducts],
          [...given, ...ofProducts.flatMap((files) => ['--ignore', files])],
        ]
      : [given]

function isOption(argument) {
  return argument?.startsWith('-') === true
}

/** Resolves with the exit code of mocha; what it says is held back until it ends where `isHeld`. */
function mocha(options, isHeld) {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx/esm', join('node_modules', 'mocha', 'bin', 'mocha.js'), ...options],
    {
      cwd: root,
      stdio: isHeld ? ['ignore', 'pipe', 'pipe'] : 'inherit',
      env: { ...process.env, ...(product === undefined ? {} : { PRODUCT: product }) },
    },
  )
  const held = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part) => held.push(part))
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code: code ?? 1, told: Buffer.concat(held) }))
  })
}

const results = await Promise.all(runs.map((options, nth) => mocha(options, nth < runs.length - 1)))
for (const { told } of results) process.stdout.write(told)
process.exitCode = Math.max(...results.map(({ code }) => code))
