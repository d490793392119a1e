/**
 * `npm test`: every test, or the ones that mocha's own options choose. `npm test -- --product gold` runs the contract
 * test kit on one product of the catalog. The whole suite runs in parallel: mocha keeps a few processes, and each takes
 * the next file as soon as it has run one. The files that take long come first (test/long-files.json), so that all
 * processes end together; a wrong order costs only time. `npm test -- --record` writes that list anew. The own catalog
 * starts once beside the first files, and the tests that start from its data come after the long ones. After the whole
 * suite, every promise of the contract must have been proved by a test that ran and passed.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, sep } from 'node:path'

const root = join(import.meta.dirname, '..')
const given = process.argv.slice(2).flatMap((argument) => argument.split(/^(--product)=/).filter(Boolean))
const recordAt = given.indexOf('--record')
if (recordAt !== -1) given.splice(recordAt, 1)
const at = given.indexOf('--product')
const product = at === -1 ? undefined : given[at + 1]
if (at !== -1 && (product === undefined || product.startsWith('-'))) {
  process.stderr.write('Name a product: npm test -- --product gold\n')
  process.exit(1)
}
const isWhole = product === undefined && given.every((argument, at) => isOption(argument) || isOption(given[at - 1]))

/** The files that took longest in the run that was recorded, the longest first. */
const LONG_FILES = join(root, 'test', 'long-files.json')
const LONG_FILES_KEPT = 64
/** Many tests wait for a process, a block or a clock, so this many processes keep every core busy. */
const PROCESSES = String(2 * availableParallelism() + 1)
/** Tests that start from the data of the first start say so in one of these words. The browser's, the longest, wait for it. */
const USES_FIRST_START = /own: true|openSandboxGateway\(\)|copyFirstStart/

/** The options of mocha. package.json has what all runs share, but no files: mocha would add them to these. */
function mochaOptions() {
  if (product !== undefined) return [...given.toSpliced(at, 2), 'test/contracts/plugin.test.ts']
  if (!isWhole) return given
  return ['--parallel', ...(given.includes('--jobs') ? [] : ['--jobs', PROCESSES]), ...given, ...filesInOrder()]
}

/** The long files and then the others; of each kind, those that need the first start come last. */
function filesInOrder() {
  const long = JSON.parse(readFileSync(LONG_FILES, 'utf8'))
  const files = readdirSync(join(root, 'test'), { recursive: true })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join('test', file).replaceAll(sep, '/'))
  const others = files.filter((file) => !long.includes(file)).sort()
  const needsFirstStart = (file) => USES_FIRST_START.test(readFileSync(join(root, file), 'utf8'))
  return [long.filter((file) => files.includes(file)), others].flatMap((kind) => [
    ...kind.filter((file) => !needsFirstStart(file)),
    ...kind.filter(needsFirstStart),
  ])
}

/** Writes which files took longest in this run. */
function record() {
  const took = readFileSync(join(folder, 'seconds.jsonl'), 'utf8').split('\n').filter(Boolean).map(JSON.parse)
  const longest = took.sort((a, b) => b.seconds - a.seconds).slice(0, LONG_FILES_KEPT)
  const files = longest.map(({ file }) => file)
  writeFileSync(LONG_FILES, `${JSON.stringify(files, null, 2)}\n`)
}

function isOption(argument) {
  return argument?.startsWith('-') === true
}

/** Runs a program of node with tsx and resolves with its exit code; a program that a signal ended has failed. */
function run(program, words, environment = {}) {
  const child = spawn(process.execPath, ['--import', 'tsx/esm', program, ...words], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, TEST_RUN_FOLDER: folder, ...environment },
  })
  return new Promise((resolve) => {
    child.once('close', (code) => resolve(code ?? 1))
  })
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
const notes = join(folder, 'proved.jsonl')
const isComplete = isWhole && !given.includes('--grep')
const firstStart = isComplete ? run(join('test', 'support', 'make-first-start.ts'), []) : 0
const environment = {
  ...(isWhole ? { PROVED_PROMISES: notes } : {}),
  ...(product === undefined ? {} : { PRODUCT: product }),
}
const codes = [
  await run(join('node_modules', 'mocha', 'bin', 'mocha.js'), mochaOptions(), environment),
  await firstStart,
]
if (isComplete) codes.push(await run(join('test', 'support', 'check-promises.ts'), [notes]))
if (isComplete && recordAt !== -1) record()
rmSync(folder, { recursive: true, force: true })
process.exitCode = Math.max(...codes)
