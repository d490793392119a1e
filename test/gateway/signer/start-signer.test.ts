/** Tests of the process that the launcher starts as the signer. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { ConfigError } from '../../../gateway/config/config-error.ts'
import { startSigner } from '../../../gateway/signer/start-signer.ts'
import { until } from '../../support/until.ts'

describe('the signer that the launcher starts', () => {
  const { argv, execPath } = process
  const [, program = ''] = argv
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-start-signer-'))
    const signer = join(folder, 'signer.cjs')
    writeFileSync(
      signer,
      `process.on('message', ({ environment }) => require('node:fs').writeFileSync(environment.FILE, ''))
process.on('disconnect', () => process.exit())`,
    )
    argv[1] = signer
  })
  after(() => {
    argv[1] = program
    rmSync(folder, { recursive: true, force: true })
  })

  it('is not started, and the variables are named, if keys are left to a signer that nothing leads to', () => {
    const environment = { SETTLE_KEY_BASE: 'signer signer', TOKEN_KEYS: ' signer\n', SETTLE_KEY: `0x${'1'.repeat(64)}` }
    expect(() => startSigner(environment, () => {})).to.throw(
      ConfigError,
      'SETTLE_KEY_BASE and TOKEN_KEYS are left to a signer, and SIGNER_SOCKET does not say where it is.',
    )
    const socket = join(folder, 'socket')
    expect(startSigner({ ...environment, SIGNER_SOCKET: `${socket}\n` }, () => {}).socket).to.equal(socket)
  })

  it('is started again if the system could not start it', async () => {
    const file = join(folder, 'started')
    process.execPath = join(folder, 'missing')
    const signer = startSigner({ FILE: file }, () => {})
    process.execPath = execPath
    try {
      await until(() => existsSync(file))
    } finally {
      signer.stop()
      rmSync(dirname(signer.socket), { recursive: true, force: true })
    }
    expect(signer.environment['FILE']).to.equal(file)
  })
})
