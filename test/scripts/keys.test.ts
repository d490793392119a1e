import { spawnSync } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { privateKeyToAddress } from 'viem/accounts'
import { readConfig } from '../../gateway/config/config.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { workerIssues } from '../../gateway/config/settlement.ts'
import { createTokens } from '../../gateway/tokens/access-tokens.ts'

const command = resolve(import.meta.dirname, '../../scripts/tollgate.mjs')
const runWith = (environment: Readonly<Record<string, string>>, ...flags: readonly string[]) =>
  spawnSync(process.execPath, [command, 'keys', ...flags], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...environment },
  })
const run = (dataDir: string, ...flags: readonly string[]) => runWith({ DATA_DIR: dataDir }, ...flags)

describe('npm run keys', () => {
  let dataDir: string
  before(() => (dataDir = mkdtempSync(join(tmpdir(), 'tollgate-keys-'))))
  after(() => rmSync(dataDir, { recursive: true }))

  /** The keys in an environment file, checked: a token that is signed with them verifies. */
  async function keysIn(text: string): Promise<{ readonly tokenKey: string; readonly settleKey: `0x${string}` }> {
    const keys = /TOKEN_KEYS='(.+)'/.exec(text)?.[1] as string
    const tokens = await createTokens({ keys, dataDir: null, issuer: 'https://gate.test', now: () => new Date() })
    const { token } = await tokens.issue({ subject: '0xb2', plan: 'day', tier: 'live', durationSeconds: 60, id: '1' })
    expect((await tokens.verify(token)).plan).to.equal('day')
    const { keys: [jwk] } = JSON.parse(keys) as { keys: [{ d: string }] } // prettier-ignore
    return { tokenKey: jwk.d, settleKey: /SETTLE_KEY=(0x[0-9a-f]{64})\n/.exec(text)?.[1] as `0x${string}` }
  }

  it('writes a token key set and a settlement key to a new file that only its owner can read, and prints neither', async () => {
    const file = join(dataDir, 'new.env')
    const { stdout, stderr } = run(dataDir, '--file', file)
    const { tokenKey, settleKey } = await keysIn(readFileSync(file, 'utf8'))
    expect(statSync(file).mode & 0o777).to.equal(0o600)
    expect(stdout).to.contain(file).and.contain(privateKeyToAddress(settleKey))
    for (const secret of [tokenKey, settleKey]) expect((stdout + stderr).includes(secret)).to.equal(false)
  })

  it('never replaces a file', () => {
    const file = join(dataDir, 'kept.env')
    writeFileSync(file, 'SETTLE_KEY=mine')
    const { stdout, status } = run(dataDir, '--file', file)
    expect(stdout).to.contain('It exists already.')
    expect([status, readFileSync(file, 'utf8')]).to.deep.equal([1, 'SETTLE_KEY=mine'])
  })

  it('prints the keys only if told to', async () => {
    const { stdout } = run(dataDir, '--print')
    const { settleKey } = await keysIn(stdout)
    expect(stdout).to.contain(`# address ${privateKeyToAddress(settleKey)}`)
  })

  it('makes a settlement key for each worker, in a file that a shell reads and the gateway takes', () => {
    const file = join(dataDir, 'workers.env')
    const { stdout } = run(dataDir, '--file', file, '--workers', '3')
    const shell = spawnSync('sh', ['-c', `. ${file}; printf %s "$SETTLE_KEY"`], { encoding: 'utf8' })
    const settings = { NETWORK: 'base', PAY_TO: `0x${'a1'.repeat(20)}`, SETTLE_RPC_URL: 'http://127.0.0.1:9' }
    const { networks } = readConfig({
      ...settings,
      ALLOW_SAMPLE_SALES: 'true',
      BASE_URL: 'https://gate.test',
      SETTLE_KEY: shell.stdout,
    })
    expect(workerIssues(networks, 3)).to.deep.equal([])
    expect(workerIssues(networks, 4)).to.have.length(1)
    for (const key of shell.stdout.split(' '))
      for (const text of [stdout, readFileSync(file, 'utf8')]) expect(text).to.contain(privateKeyToAddress(key as Hex))
    expect(stdout).to.contain('npm start -- --workers 3')
    for (const wrong of ['0', '2.5', '65', 'x', ''])
      expect(run(dataDir, '--print', `--workers=${wrong}`).status).to.equal(2)
  })

  it('puts a new key in front of the stored ones', () => {
    run(dataDir, '--rotate')
    const file = join(dataDir, 'sandbox-sample/token-keys.json')
    // As where root rotates the keys of a service.
    if (process.getuid?.() === 0) chownSync(file, 65_534, 65_534)
    const { uid } = statSync(file)
    const { stdout } = run(dataDir, '--rotate')
    expect([statSync(file).uid, statSync(file).mode & 0o777]).to.deep.equal([uid, 0o600])
    const { keys } = JSON.parse(readFileSync(file, 'utf8')) as { keys: { kid: string }[] }
    expect(keys).to.have.length(2)
    expect(stdout)
      .to.contain(`${keys[0]?.kid} will sign from the next start`)
      .and.to.contain('1 older key still verifies')
  })

  it('says what is wrong, with exit code 1 and without a stack, if no key can be made', () => {
    const used = run(dataDir, '--rotate')
    expect(used.status).to.equal(0)
    for (const [environment, message] of [
      [{ NETWORK: 'basalt' }, /NETWORK: basalt is not a known network/],
      [{ TOKEN_KEYS: '{}' }, /^No key was made: TOKEN_KEYS is set/],
      [{ TOKEN_KEYS: 'signer' }, /^No key was made: the signer at SIGNER_SOCKET holds the token keys/],
    ] as const) {
      const { status, stdout, stderr } = runWith({ DATA_DIR: dataDir, ...environment }, '--rotate')
      expect([status, (stdout + stderr).includes('\n    at ')]).to.deep.equal([1, false])
      expect(stdout + stderr).to.match(message)
    }
    const file = join(dataDir, 'sandbox-sample/token-keys.json')
    writeFileSync(file, 'torn')
    const { status, stderr } = run(dataDir, '--rotate')
    expect([status, stderr]).to.deep.equal([
      1,
      `${file} is not a JWK set with private Ed25519 keys. Create one with: npm run keys\n`,
    ])
  })

  it('prints a command that a shell understands, also for a folder with a space', () => {
    const { stdout } = run(dataDir, '--file', join(dataDir, 'my keys.env'))
    expect(stdout).to.contain(`set -a; . '${join(dataDir, 'my keys.env')}'; set +a`)
  })
})
