import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { licensedPackages, readLockFile } from '../../scripts/licences.ts'
import { namedTests, notAmong, SECURITY_PROMISES, testsOf } from '../security.ts'

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
  it('rests only on tests that are written', () => {
    const named = testsOf(SECURITY_PROMISES)
    const missing = named.filter(({ file, title }) => {
      const source = readFileSync(join(root, file), 'utf8')
      return ![`it('${title}`, `it(\`${title}`].some((text) => source.includes(text))
    })
    expect(missing.map(({ file, title }) => `${file}: ${title}`)).to.deep.equal([])
    expect(named.length).to.be.at.least(128)
  })

  it('counts a test only if one of that title, or of that beginning, ran and passed', () => {
    const named = namedTests({ 'test/a.test.ts': ['goes on', 'stops if …'] })
    const titles = (passed: string[]) => notAmong(named, passed).map(({ title }) => title)
    expect(titles(['goes on', 'stops if asked'])).to.deep.equal([])
    expect(titles(['goes on for ever', 'stops'])).to.deep.equal(['goes on', 'stops if'])
  })

  it('has a test for every promise, for every attack that once succeeded, and for every suspicion', () => {
    for (const promise of SECURITY_PROMISES) expect(testsOf([promise]), promise.promise).to.not.have.length(0)
    const attacks = SECURITY_PROMISES.flatMap((promise) => promise.attacks)
    for (const { attack, tests } of attacks) expect(namedTests(tests), attack).to.not.have.length(0)
    const numbers = attacks.flatMap(({ number }) => number ?? []).sort((a, b) => a - b)
    expect(numbers).to.deep.equal(Array.from({ length: 25 }, (_, at) => at + 1))
    expect(attacks).to.have.length(25 + 5)
  })

  it('has a row for every promise, which leads to its tests', () => {
    const linked = rowsBelow('Promises').flatMap(([promise = '']) =>
      [...promise.matchAll(/\]\(docs\/security-tests\.md#([\w-]+)\)/g)].map(([, anchor]) => anchor),
    )
    const anchors = SECURITY_PROMISES.map(({ promise }) =>
      promise
        .toLowerCase()
        .replace(/[^a-z0-9_ -]/g, '')
        .replaceAll(' ', '-'),
    )
    expect(linked).to.deep.equal(anchors)
  })

  it('names every package with an install script', () => {
    const named = rowsBelow('Packages').map(([name = '']) => name.replaceAll('`', ''))
    const installing = licensedPackages(readLockFile()).filter(({ hasInstallScript }) => hasInstallScript)
    expect(named.slice(1).sort()).to.deep.equal(installing.map(({ name }) => name).sort())
  })
})
