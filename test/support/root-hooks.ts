/**
 * Mocha root hooks: notes which promises of test/requirements.ts a run has proved. A test proves what it names with
 * `proves` only if it ran, made at least one assertion and passed. Loaded with `--require`; the notes go to the file
 * named by PROVED_PROMISES, one JSON object per line, and nowhere if that is not set.
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

export const mochaHooks = {
  beforeEach(): void {
    takeClaims()
    assertions = 0
  },
  afterEach(this: Context): void {
    const test = this.currentTest
    const claims = takeClaims()
    if (file === undefined || test?.state !== 'passed' || assertions === 0) return
    for (const promise of claims)
      appendFileSync(
        file,
        `${JSON.stringify({ promise, file: relative(root, test.file ?? ''), test: test.fullTitle() })}\n`,
      )
  },
}
