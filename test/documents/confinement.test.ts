import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'

const examples = resolve(import.meta.dirname, '../../docs/examples')
const UNITS = ['tollgate.service', 'tollgate-signer.service'].map((name) => join(examples, 'systemd', name))
/** The exposure that SECURITY.md states, times ten, and some room for other versions of systemd. */
const MAX_EXPOSURE = 20

describe('a unit of docs/examples/systemd', () => {
  it('is accepted by systemd, and rated as little exposed', function () {
    const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    if (analyze('--version').status !== 0) this.skip()
    for (const unit of UNITS) {
      const { status, stderr } = analyze('verify', '--recursive-errors=no', unit)
      expect(stderr).to.not.match(/unknown|invalid|failed to parse/i)
      // A machine without /usr/bin/node has no such command. Everything else must hold.
      if (!stderr.includes('is not executable')) expect(status, stderr).to.equal(0)
      const rated = analyze('security', '--offline=true', `--threshold=${MAX_EXPOSURE}`, unit)
      expect(rated.stdout).to.match(/Overall exposure level/)
      expect(rated.status, rated.stdout.slice(-200)).to.equal(0)
    }
  })
})

describe('a container of docs/examples/container', () => {
  const compose = readFileSync(join(examples, 'container', 'compose.yaml'), 'utf8')
  const [, services = ''] = compose.split(/^services:$/m)
  const parts = (services.split(/^networks:$/m)[0] ?? '').split(/^ {2}(?=\w+:$)/m).slice(1)

  it('has a read-only root, no capabilities, no new privileges and a user of its own', () => {
    expect(parts.map((part) => part.split(':')[0])).to.deep.equal(['signer', 'gateway', 'postgres', 'redis', 'nginx'])
    for (const part of parts) {
      const lines = part.split('\n').map((line) => line.trim())
      expect(lines).to.include.members([
        'read_only: true',
        'cap_drop: [ALL]',
        "security_opt: ['no-new-privileges:true']",
      ])
      expect(part).to.match(/^ {4}user: '[1-9]\d*:[1-9]\d*'$/m)
      expect(part).to.not.match(/^ +privileged:|cap_add|docker\.sock/m)
    }
    for (const part of parts.slice(0, 2)) expect(part).to.match(/^ {4}user: '1000[12]:1000[12]'$/m)
    expect(new Set(parts.map((part) => /user: '(\d+)/.exec(part)?.[1])).size).to.equal(parts.length)
  })

  it('gets the keys only if it is the signer, which has no network', () => {
    const [signer = '', ...others] = parts
    expect(signer).to.include('signer.env').and.include('network_mode: none')
    for (const other of others) expect(other).to.not.include('signer.env')
  })

  it('can be reached from outside only if it is the proxy', () => {
    const open = parts.filter((part) => /^ {4}ports:/m.test(part)).map((part) => part.split(':')[0])
    expect(open).to.deep.equal(['nginx'])
  })
})
