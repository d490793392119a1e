import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { ERRORS } from '../../gateway/errors.ts'
import { errorReference, generatedPages } from '../../scripts/docs.ts'

const root = resolve(import.meta.dirname, '../..')

describe('the generated pages of docs/', () => {
  it('match the schemas and the table of errors they are made from', async () => {
    for (const [path, text] of await generatedPages())
      expect(readFileSync(join(root, path), 'utf8'), `${path} is out of date: npm run docs`).to.equal(text)
  })

  it('change when the table of errors changes', () => {
    const changed = { ...ERRORS, not_found: { ...ERRORS.not_found, when: 'Another sentence.' } }
    expect(errorReference(changed)).to.contain('Another sentence.').and.not.equal(errorReference(ERRORS))
  })

  it('name every error code', () => {
    for (const code of Object.keys(ERRORS)) expect(errorReference(ERRORS)).to.contain(`\`${code}\``)
  })
})
