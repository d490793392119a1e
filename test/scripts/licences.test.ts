import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { allows, licensedPackages, type LockFile, readLockFile } from '../../scripts/licences.ts'

const root = resolve(import.meta.dirname, '../..')
const lock = readLockFile()

function verdicts(packages: LockFile['packages']): Record<string, boolean> {
  return Object.fromEntries(licensedPackages({ packages }).map(({ name, isAllowed }) => [name, isAllowed]))
}

describe('the licences of the packages', () => {
  it('are all allowed', () => {
    const refused = licensedPackages(lock).filter(({ isAllowed }) => !isAllowed)
    expect(refused.map(({ name, licence }) => `${name}: ${licence}`)).to.deep.equal([])
    expect(licensedPackages(lock).length).to.be.greaterThan(300)
  })

  it('are refused if they are not on the list, missing, or allowed for development only', () => {
    expect(
      verdicts({
        '': {},
        'node_modules/good': { version: '1.0.0', license: 'MIT' },
        'node_modules/choice': { version: '1.0.0', license: '(GPL-3.0 OR MIT)' },
        'node_modules/both': { version: '1.0.0', license: 'MIT AND GPL-3.0' },
        'node_modules/copyleft': { version: '1.0.0', license: 'AGPL-3.0' },
        'node_modules/good/node_modules/@inner/silent': { version: '1.0.0' },
        'node_modules/weak': { version: '1.0.0', license: 'MPL-2.0' },
        'node_modules/tool': { version: '1.0.0', license: 'MPL-2.0', dev: true },
      }),
    ).to.deep.equal({
      good: true,
      choice: true,
      both: false,
      copyleft: false,
      '@inner/silent': false,
      weak: false,
      tool: true,
    })
    expect(allows('MIT', new Set())).to.equal(false)
  })

  it('are counted by npm run licences', () => {
    const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx/esm', 'scripts/licences.ts'], {
      cwd: root,
      encoding: 'utf8',
    })
    expect(stdout).to.match(/^ +\d+ {2}MIT$/m)
    expect(status).to.equal(0)
  })
})

describe('the bill of materials', () => {
  // With --omit dev, npm 10 also leaves out packages that run, such as express.
  it('lists every package with its version and licence, and marks those for development', function () {
    this.timeout(60_000)
    const { stdout } = spawnSync('npm', ['run', '--silent', 'sbom'], { cwd: root, encoding: 'utf8', maxBuffer: 1e8 })
    const { bomFormat, components } = JSON.parse(stdout) as {
      bomFormat: string
      components: { name: string; version: string; licenses?: unknown[]; properties: { name: string }[] }[]
    }
    const isForDevelopment = (wanted: string): boolean | undefined =>
      components
        .find(({ name }) => name === wanted)
        ?.properties.some(({ name }) => name === 'cdx:npm:package:development')
    expect(bomFormat).to.equal('CycloneDX')
    const express = components.find(({ name }) => name === 'express')
    expect(express).to.deep.include({ version: lock.packages['node_modules/express']?.version })
    expect(express?.licenses).to.deep.equal([{ license: { id: 'MIT' } }])
    expect(['express', 'viem', 'mocha'].map(isForDevelopment)).to.deep.equal([false, false, true])
  })
})
