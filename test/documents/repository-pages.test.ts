import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'chai'
import { CASES } from '../lab/cases.ts'

const root = resolve(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Readonly<Record<string, string>>
}
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8')

describe('the README', () => {
  it('fits in 150 lines', () => {
    expect(readme.trimEnd().split('\n').length).to.be.at.most(150)
  })
})

describe('the pages of the repository', () => {
  it('link only to files that exist', () => {
    const broken = pages.flatMap((page) =>
      [...textOf(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
        .map(([, link]) => link as string)
        .filter((link) => !existsSync(join(root, dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    )
    expect(broken).to.deep.equal([])
  })

  it('name only npm scripts that exist', () => {
    const unknown = pages.flatMap((page) =>
      [...textOf(page).matchAll(/npm run ([a-z][a-z:-]*)/g)]
        .map(([, name]) => name as string)
        .filter((name) => !(name in scripts))
        .map((name) => `${page}: ${name}`),
    )
    expect(unknown).to.deep.equal([])
  })

  it('name only experiments of the laboratory that exist', () => {
    const known = CASES.map(({ name }) => name)
    const unknown = pages.flatMap((page) =>
      [...textOf(page).matchAll(/npm run (?:--silent )?lab -- ([a-z][a-z-]*)/g)]
        .map(([, name]) => name as string)
        .filter((name) => !known.includes(name))
        .map((name) => `${page}: ${name}`),
    )
    expect(unknown).to.deep.equal([])
  })

  it('name npm scripts that install missing packages, so that each of them may be run first', () => {
    const named = ['README.md', 'CONTRIBUTING.md', 'docs/plugins.md', 'docs/operations.md'].flatMap((page) =>
      [...textOf(page).matchAll(/npm run ([a-z][a-z:-]*)/g)].map(([, name]) => name as string),
    )
    const installs = (name: string): boolean =>
      [scripts[`pre${name}`], scripts[name]].some((command) => /^node scripts\/bootstrap\.mjs\b/.test(command ?? ''))
    expect(['start', 'test', 'build'].filter((name) => !installs(name))).to.deep.equal([])
    expect(named.filter((name) => !installs(name))).to.deep.equal([])
    expect(named.length).to.be.greaterThan(10)
  })

  it('name only files of the project that exist', () => {
    const missing = pages
      .filter((page) => page !== 'docs/interface.md')
      .flatMap((page) =>
        [...textOf(page).matchAll(/`((?:gateway|plugins|catalog|schemas|views|test|scripts|docs)\/[\w./-]+)`/g)]
          .map(([, path]) => path as string)
          .filter((path) => !/gold|tides|\*|^catalog\/hooks\.json$/.test(path) && !existsSync(join(root, path)))
          .map((path) => `${page}: ${path}`),
      )
    expect(missing).to.deep.equal([])
  })
})
