import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '..')
const { needs, skips } = JSON.parse(readFileSync(join(root, 'test/allowed-skips.json'), 'utf8')) as {
  needs: Readonly<Record<string, string>>
  skips: readonly { readonly file: string; readonly needs: readonly string[] }[]
}

describe('the list of allowed skips', () => {
  it('names test files that exist, each once', () => {
    expect(skips.filter(({ file }) => !existsSync(join(root, file)))).to.deep.equal([])
    expect(new Set(skips.map(({ file }) => file)).size).to.equal(skips.length)
  })

  it('gives a reason for each skip', () => {
    for (const skip of skips) {
      expect(skip.needs, skip.file).to.not.have.length(0)
      for (const need of skip.needs) expect(needs, skip.file).to.have.property(need)
    }
  })
})
