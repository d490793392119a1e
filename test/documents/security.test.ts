import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { licensedPackages, readLockFile } from '../../scripts/licences.ts'
import { namedTests, notAmong } from '../support/security-tests.ts'

const root = resolve(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'SECURITY.md'), 'utf8')

/** The rows of the tables below a heading, as cells. */
function rowsBelow(heading: string): string[][] {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  return (section.split('\n## ')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[\s|-]+$/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}

describe('SECURITY.md', () => {
  it('names only tests that are written', () => {
    const missing = namedTests(page).filter(({ file, title }) => {
      const source = readFileSync(join(root, file), 'utf8')
      return ![`it('${title}`, `it(\`${title}`].some((text) => source.includes(text))
    })
    expect(missing.map(({ file, title }) => `${file}: ${title}`)).to.deep.equal([])
    expect(namedTests(page).length).to.be.greaterThan(60)
  })

  it('counts a test only if one of that title, or of that beginning, ran and passed', () => {
    const named = namedTests('[goes on](test/a.test.ts), [stops if …](test/a.test.ts)')
    const titles = (passed: string[]) => notAmong(named, passed).map(({ title }) => title)
    expect(titles(['goes on', 'stops if asked'])).to.deep.equal([])
    expect(titles(['goes on for ever', 'stops'])).to.deep.equal(['goes on', 'stops if'])
  })

  it('has a test for every attack that once succeeded, and for every suspicion', () => {
    const attacks = rowsBelow('Attacks that once succeeded').filter(
      ([first]) => first !== 'No.' && first !== 'Suspicion',
    )
    const numbers = attacks.map(([first]) => first ?? '').filter((first) => /^\d+$/.test(first))
    expect(numbers).to.deep.equal(Array.from({ length: 23 }, (_, at) => `${at + 1}`))
    expect(attacks).to.have.length(23 + 5)
    for (const cells of attacks) expect(namedTests(cells.at(-1) ?? ''), cells[0]).to.not.have.length(0)
  })

  it('names every package with an install script', () => {
    const named = rowsBelow('Packages').map(([name = '']) => name.replaceAll('`', ''))
    const installing = licensedPackages(readLockFile()).filter(({ hasInstallScript }) => hasInstallScript)
    expect(named.slice(1).sort()).to.deep.equal(installing.map(({ name }) => name).sort())
  })
})
