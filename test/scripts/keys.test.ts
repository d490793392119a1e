import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { privateKeyToAddress } from 'viem/accounts'
import { createTokens } from '../../gateway/tokens/access-tokens.ts'

const script = resolve(import.meta.dirname, '../../scripts/keys.ts')
const run = (dataDir: string, ...flags: readonly string[]) =>
  spawnSync(process.execPath, ['--import', 'tsx', script, ...flags], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir },
  })

describe('npm run keys', () => {
  let dataDir: string
  before(() => (dataDir = mkdtempSync(join(tmpdir(), 'tollgate-keys-'))))
  after(() => rmSync(dataDir, { recursive: true }))

  it('prints a token key set that signs, and a settlement key with its address', async () => {
    const { stdout } = run(dataDir)
    const keys = /TOKEN_KEYS='(.+)'/.exec(stdout)?.[1] as string
    const tokens = await createTokens({ keys, dataDir: null, issuer: 'https://gate.test', now: () => new Date() })
    const { token } = await tokens.issue({ subject: '0xb2', plan: 'day', tier: 'live', durationSeconds: 60, id: '1' })
    expect((await tokens.verify(token)).plan).to.equal('day')
    const key = /SETTLE_KEY=(0x[0-9a-f]{64})\n/.exec(stdout)?.[1] as `0x${string}`
    expect(stdout).to.contain(`address    ${privateKeyToAddress(key)}`)
  })

  it('puts a new key in front of the stored ones', () => {
    run(dataDir, '--rotate')
    const { stdout } = run(dataDir, '--rotate')
    const { keys } = JSON.parse(readFileSync(join(dataDir, 'sandbox-sample/token-keys.json'), 'utf8')) as {
      keys: { kid: string }[]
    }
    expect(keys).to.have.length(2)
    expect(stdout)
      .to.contain(`${keys[0]?.kid} will sign from the next start`)
      .and.to.contain('1 older key still verifies')
  })
})
