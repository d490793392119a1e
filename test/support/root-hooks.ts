/**
 * Mocha root hooks. They end a run whose tests left something open, and note which tests passed and which promises of
 * test/requirements.ts they have proved. A test counts, and proves what it names with `proves`, only if it ran, made at
 * least one assertion and passed. Loaded with `--require`; the notes go to the file named by PROVED_PROMISES, one JSON
 * object per line, and nowhere if that is not set.
 */
import { appendFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
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

/** A process still running this long after its last test has failed: a test left a server, a timer or a process open. */
const END_MS = 30_000

function endLater(): void {
  const end = (): never => {
    const left = [...new Set(process.getActiveResourcesInfo())].join(', ')
    process.stderr.write(`The tests have ended, and ${left} is still open. Close it, also when an assertion fails.\n`)
    // Mocha sets the exit code when the process exits; a failure here must survive that.
    process.on('exit', () => (process.exitCode ||= 1))
    process.exit()
  }
  setTimeout(end, END_MS).unref()
}

export const mochaHooks = {
  afterAll: endLater,
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
