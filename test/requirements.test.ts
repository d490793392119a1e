import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { type Requirement, REQUIREMENTS } from './requirements.ts'

const root = resolve(import.meta.dirname, '..')
const read = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))

describe('the requirements', () => {
  it('have a test each, as far as the catalog sells what they promise', () => {
    const sold = new Set(read('catalog', /\.json$/).map((text) => (JSON.parse(text) as { product?: string }).product))
    const proven = new Set(
      read('test', /\.test\.ts$/)
        .flatMap((text) => [...text.matchAll(/\bproves\(([^)]*)\)/g)])
        .flatMap((call) => [...(call[1] as string).matchAll(/'([^']+)'/g)].map((id) => id[1] as string)),
    )
    const missing = Object.entries<Requirement>(REQUIREMENTS)
      .filter(([id, { product }]) => !proven.has(id) && (product === undefined || sold.has(product)))
      .map(([id, { section, promise }]) => `${id} (${section}): ${promise}`)
    expect(missing).to.deep.equal([])
  })
})
