import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { artefactText, compile } from '../../../scripts/compile.ts'
import { ROOT } from './usdc-client.ts'

describe('the contracts of the sandbox', () => {
  for (const name of ['usdc', 'multicall3'] as const)
    it(`compile to the committed ${name}.json byte for byte`, () => {
      expect(artefactText(name)).to.equal(readFileSync(join(ROOT, 'gateway', 'sandbox', `${name}.json`), 'utf8'))
    })

  it('are not compiled if there is an error or a warning', () => {
    expect(() => compile('Broken', 'contract Broken { function f() external { undeclared = 1; } }')).to.throw(
      /Undeclared identifier/,
    )
  })
})
