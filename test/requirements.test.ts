import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { REQUIREMENTS, unproved } from './requirements.ts'

const root = resolve(import.meta.dirname, '..')
const PASSES = "proves('quote-402'); expect(402).to.equal(402)"

/** Runs a suite of planted tests and returns the promises it proved. */
function provedBy(tests: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-promises-'))
  try {
    const notes = join(folder, 'proved.jsonl')
    writeFileSync(notes, '')
    writeFileSync(
      join(folder, 'planted.test.ts'),
      `import { expect } from '${join(root, 'node_modules/chai/index.js')}'
       import { proves } from '${join(root, 'test/requirements.ts')}'
       ${tests}`,
    )
    const mocha = ['node_modules/mocha/bin/mocha.js', '--no-package', '--require', 'test/support/root-hooks.ts']
    spawnSync(process.execPath, ['--import', 'tsx/esm', ...mocha, join(folder, 'planted.test.ts')], {
      cwd: root,
      env: { ...process.env, PROVED_PROMISES: notes },
    })
    const check = spawnSync(process.execPath, ['--import', 'tsx/esm', 'test/support/check-promises.ts', notes], {
      cwd: root,
      encoding: 'utf8',
    })
    expect(check.status, 'a run that proves one promise is not enough').to.equal(1)
    const missing = [...check.stdout.matchAll(/passed: ([\w-]+) /g)].map(([, id]) => id)
    return Object.keys(REQUIREMENTS).filter((id) => !missing.includes(id))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('the promises of the contract', () => {
  it('count as proved when a test that names them ran and passed', () => {
    expect(provedBy(`it('passes', () => { ${PASSES} })`)).to.deep.equal(['quote-402'])
  })

  it('do not count when the test that names them was skipped, failed or asserted nothing', () => {
    const tests = `
      it.skip('is skipped', () => { ${PASSES} })
      it('skips itself', function () { ${PASSES}; this.skip() })
      it('fails', () => { proves('quote-402'); expect(1).to.equal(2) })
      it('is empty', () => { proves('quote-402') })`
    expect(provedBy(tests)).to.deep.equal([])
  })

  it('bind only while the catalog sells the product they belong to', () => {
    const all = new Set(Object.keys(REQUIREMENTS))
    expect(unproved(all, new Set())).to.deep.equal([])
    const some = new Set([...all].filter((id) => id !== 'cost-estimate'))
    expect(unproved(some, new Set())).to.deep.equal([])
    expect(unproved(some, new Set(['cost']))).to.have.length(1)
  })
})
