import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../..')

/** Runs the installer as another version of Node would. Returns what it refuses. */
function runAs(version: string): string {
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '${version}' })
    Object.defineProperty(process, 'version', { value: 'v${version}' })`
  const { stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, 'scripts/bootstrap.mjs'],
    { cwd: root, encoding: 'utf8' },
  )
  return stderr
}

describe('the installer', () => {
  it('refuses the versions of Node that package.json excludes, and says which to install', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } }
    expect(engines.node).to.equal('^20.19.0 || ^22.13.0 || >=24.0.0')
    for (const version of ['18.20.8', '20.18.3', '21.7.3', '22.12.0', '23.11.0'])
      expect(runAs(version), version).to.equal(
        `Node v${version} cannot run this: install Node 20.19+, 22.13+ or 24+.\n`,
      )
    for (const version of ['20.19.0', '22.13.0', '24.0.0', '25.1.0']) expect(runAs(version), version).to.equal('')
  })
})
