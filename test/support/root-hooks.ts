/**
 * Mocha root hooks. They fail a file whose tests left something open, and note which tests passed and which promises of
 * test/requirements.ts they have proved. A test counts, and proves what it names with `proves`, only if it ran, made at
 * least one assertion and passed. Loaded with `--require`; the notes go to the file named by PROVED_PROMISES, one JSON
 * object per line, and nowhere if that is not set.
 */
import { appendFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { Assertion } from 'chai'
import type { Context } from 'mocha'
import { takeClaims } from '../requirements.ts'

const root = resolve(import.meta.dirname, '../..')
const file = process.env['PROVED_PROMISES']

/** What chai calls for each assertion; its types do not declare it. */
const asserting = Assertion.prototype as unknown as { assert(...words: unknown[]): void }
let assertions = 0
const assert = asserting.assert
asserting.assert = function (this: unknown, ...words: unknown[]) {
  assertions += 1
  return assert.apply(this, words)
}

/** What is still open this long after the last test of a file was left open by a test: a server, a timer or a process. */
const END_MS = 30_000
let known = openNow()

/** Counts what keeps this process running, by kind. */
function openNow(): ReadonlyMap<string, number> {
  // Opened with the first output, which is no test's.
  void [process.stdout, process.stderr]
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

/** Waits until everything is closed that was opened since the last file, which takes no time if the tests did so. */
async function allClosed(this: Context): Promise<void> {
  const left = (): string[] =>
    [...openNow()].filter(([kind, count]) => count > (known.get(kind) ?? 0)).map(([kind]) => kind)
  const end = performance.now() + END_MS
  while (left().length > 0 && performance.now() < end) {
    await setTimeout(20)
    // The timer above counts until its callback has returned, and mocha's own until it is cleared.
    await setImmediate()
    this.test?.clearTimeout()
  }
  if (left().length === 0) return
  const open = left().join(', ')
  known = openNow()
  const files = new Set(this.test?.parent?.suites.map(({ file = '' }) => relative(root, file)))
  throw new Error(`${[...files].join(', ')}: ${open} is still open. Close it, also when an assertion fails.`)
}

export const mochaHooks = {
  afterAll: allClosed,
  beforeEach(): void {
    takeClaims()
    assertions = 0
  },
  afterEach(this: Context): void {
    const test = this.currentTest
    const claims = takeClaims()
    if (file === undefined || test?.state !== 'passed' || assertions === 0) return
    const passed = { title: test.title, promises: claims, file: relative(root, test.file ?? '') }
    appendFileSync(file, `${JSON.stringify(passed)}\n`)
  },
}
