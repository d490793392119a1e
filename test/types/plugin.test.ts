import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../..')

describe('the types of the plugin API', () => {
  it('infer what schemas state, and name a misspelt handler in one error', () => {
    const project = join(import.meta.dirname, 'tsconfig.json')
    const options = ['--noEmit', '--checkers', '1', '--pretty', 'false', '-p', project]
    const { stdout } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...options], {
      cwd: root,
      encoding: 'utf8',
    })
    // A line that is indented goes on with the error above it.
    const errors = stdout.split(/\n(?=\S)/)
    expect(errors, stdout).to.have.length(1)
    expect(errors[0]).to.match(/^test\/fixtures\/types\/misspelt-handler\.ts\(5,3\): error TS2322/)
    expect(errors[0]).to.contain(
      '"no operation has the handler getTypedTide" | "setup returns no handler getTypedTides"',
    )
    expect(stdout.trim().split('\n')).to.have.length(2)
  })
})
