/**
 * `npm test`: every test, or the ones that mocha's own options choose. `npm test -- --product gold` runs the contract
 * test kit on one product of the catalog. The whole suite is four mocha processes side by side: payments and pages,
 * products, whole services (these are printed when they end), and the rest. Many tests wait for a process or a block, so
 * four keep two cores busy. The last two wait until the own catalog has started once, whose data they start from. After
 * the whole suite, every promise of the contract must have been proved by a test that ran and passed.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const given = process.argv.slice(2).flatMap((argument) => argument.split(/^(--product)=/).filter(Boolean))
const at = given.indexOf('--product')
const product = at === -1 ? undefined : given[at + 1]
if (at !== -1 && (product === undefined || product.startsWith('-'))) {
  process.stderr.write('Name a product: npm test -- --product gold\n')
  process.exit(1)
}

const testsIn = (...folders) => folders.map((folder) => join('test', folder, '**', '*.test.ts'))
const payments = testsIn('browser', 'money', 'gateway/methods', 'gateway/payments')
const products = testsIn('plugins')
const services = testsIn('clients', 'contracts', 'dynamic', 'http', 'operator')
const grouped = [...payments, ...products, ...services]
const isWhole = product === undefined && given.every((argument, at) => isOption(argument) || isOption(given[at - 1]))

/** The options of each mocha process. package.json has what they share, but no files: mocha would add them to these. */
function runsOf() {
  if (product !== undefined) return [[...given.toSpliced(at, 2), 'test/contracts/plugin.test.ts']]
  if (!isWhole) return [given]
  return [
    [...given, ...payments],
    [...given, ...products],
    [...given, ...services],
    [...given, ...grouped.flatMap((files) => ['--ignore', files]), 'test/**/*.test.ts'],
  ]
}

function isOption(argument) {
  return argument?.startsWith('-') === true
}

/** Runs mocha and resolves with its exit code; `isHeld` keeps its output until it has ended. */
function mocha(options, isHeld, environment) {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx/esm', join('node_modules', 'mocha', 'bin', 'mocha.js'), ...options],
    {
      cwd: root,
      stdio: isHeld ? ['ignore', 'pipe', 'pipe'] : 'inherit',
      env: {
        ...process.env,
        TEST_RUN_FOLDER: folder,
        ...environment,
        ...(product === undefined ? {} : { PRODUCT: product }),
      },
    },
  )
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part) => output.push(part))
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(output) }))
  })
}

/** Runs a program of test/support and resolves with its exit code. */
function support(program, ...words) {
  const child = spawn(process.execPath, ['--import', 'tsx/esm', join('test', 'support', program), ...words], {
    cwd: root,
    env: { ...process.env, TEST_RUN_FOLDER: folder },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return new Promise((resolve) => {
    child.once('close', (code) => resolve(code ?? 1))
  })
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
const notes = join(folder, 'proved.jsonl')
const runs = runsOf()
const isComplete = isWhole && !given.includes('--grep')
const started = isComplete ? support('make-first-start.ts') : undefined
const results = await Promise.all(
  runs.map(async (options, nth) => {
    if (nth >= runs.length - 2) await started
    return mocha(options, nth < runs.length - 1, isWhole ? { PROVED_PROMISES: notes } : {})
  }),
)
for (const { output } of results) process.stdout.write(output)
const codes = results.map(({ code }) => code)
if (isComplete) codes.push(await started, await support('check-promises.ts', notes))
rmSync(folder, { recursive: true, force: true })
process.exitCode = Math.max(...codes)
