import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createGateway, type Overrides } from '../../gateway/compose.ts'
import { type Config, readConfig } from '../../gateway/config/config.ts'
import { freePort, PAY_TO } from '../support/gateway.ts'
import { SHOP } from '../support/sandbox.ts'

describe('a start that fails', () => {
  let dataDir: string
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-start-'))
  })
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

  const configOf = async (environment: Readonly<Record<string, string>> = {}): Promise<Config> =>
    readConfig({ ...SHOP, PORT: String(await freePort()), DATA_DIR: dataDir, LOG_LEVEL: 'silent', ...environment })
  const failureOf = (config: Config, overrides: Overrides = {}): Promise<unknown> =>
    createGateway(config, overrides).then(
      () => null,
      (error: unknown) => error,
    )

  it('ends the chain that it has opened, if the journal cannot be opened', async () => {
    const config = await configOf()
    mkdirSync(join(config.dataDir, 'journal.sqlite'), { recursive: true })
    expect(await failureOf(config)).to.have.property('code', 'EISDIR')
    const chain = join(config.dataDir, 'chain')
    expect(existsSync(join(chain, 'state.json')), 'the chain ran, and was saved').to.equal(true)
    expect(JSON.parse(readFileSync(join(chain, 'process.json'), 'utf8'))).to.deep.include({ pid: null, users: [] })
  })

  it('closes the journal that it has opened, if nobody can settle', async () => {
    const nobody = 'http://127.0.0.1:9/'
    const config = await configOf({ NETWORK: 'base-sepolia', PAY_TO, FACILITATOR_URL: nobody, RPC_URL: nobody })
    let isClosed = false
    const failure = await failureOf(config, {
      signer: Promise.reject(new Error('The signer has ended.')),
      journal: (journal) => ({
        ...journal,
        close() {
          isClosed = true
          return journal.close()
        },
      }),
    })
    expect([(failure as Error).message, isClosed]).to.deep.equal(['The signer has ended.', true])
  })
})
