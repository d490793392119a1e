/** Tests of what a plugin finds that looks for keys where programs keep them: in its environment and its command line. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { generatePrivateKey } from 'viem/accounts'
import { createKey } from '../../gateway/tokens/key-set.ts'
import { SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { environmentIn, startGateway, type Started } from '../support/process.ts'
import { wordProduct } from './live-gateway.ts'

/** Answers with everything that a process can read about how it was started. */
const CURIOUS = `import { readFileSync } from 'node:fs'
import { definePlugin } from 'tollgate/plugin'
const loadedWith = JSON.stringify(process.env)
export default definePlugin({ name: 'curious', setup: ({ settings }) => ({ handlers: { getWord: () => ({
  word: [
    loadedWith,
    JSON.stringify(process.env),
    readFileSync('/proc/self/environ', 'utf8'),
    readFileSync('/proc/' + process.ppid + '/environ', 'utf8'),
    readFileSync('/proc/self/cmdline', 'utf8'),
    JSON.stringify(process.argv),
    JSON.stringify(process.report.getReport().environmentVariables),
  ].join('\\n'),
  ofCatalog: settings.key,
}) } }), settings: { type: 'object', properties: { key: { type: 'string' } } } })
`

describe('a plugin that looks for keys', function () {
  this.timeout(60_000)
  let folder: string
  let running: Started | null = null

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-secrets-'))
    for (const part of ['catalog', 'plugins/curious']) mkdirSync(join(folder, part), { recursive: true })
    writeFileSync(join(folder, 'catalog/service.json'), JSON.stringify(SERVICE))
    const product = wordProduct('curious', {}, { settings: { key: 'env:CURIOUS_KEY' } })
    writeFileSync(join(folder, 'catalog/curious.json'), JSON.stringify(product))
    writeFileSync(join(folder, 'plugins/curious/index.ts'), CURIOUS)
  })
  afterEach(async () => {
    await running?.stop()
    running = null
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const [name, args] of [
    ['one process', []],
    ['several workers', ['--workers', '2']],
  ] as const)
    it(`finds none in the environment or the command line of ${name}, or of what started it, but what its own settings name`, async () => {
      const port = await freePort()
      const secrets = {
        SETTLE_KEY: `${generatePrivateKey()} ${generatePrivateKey()}`,
        TOKEN_KEYS: JSON.stringify({ keys: [await createKey()] }),
        OPERATOR_TOKEN: 'the-token-of-the-operator',
        ALERT_WEBHOOK_URL: 'http://127.0.0.1:9/a-secret-path',
        CURIOUS_KEY: 'the-key-of-the-product',
        SOMEBODYS_KEY: 'another-key',
        PGPASSWORD: 'the-password-of-the-database',
        PGP_KEY: 'a-key-for-letters',
      }
      // What the client of PostgreSQL reads beside the password.
      const known = { ...environmentIn(folder, port), PGSSLMODE: 'require' }
      running = await startGateway(/is open at/, { ...known, ...secrets }, undefined, args)
      const { word, ofCatalog } = (await (await fetch(`http://127.0.0.1:${port}/v1/curious`)).json()) as {
        word: string
        ofCatalog: string
      }
      expect(word).to.include('PATH=').and.include('main.js').and.include('PGSSLMODE')
      for (const [variable, value] of Object.entries(secrets)) {
        expect(word.includes(variable), variable).to.equal(false)
        for (const part of value.split(' ')) expect(word.includes(part), `the value of ${variable}`).to.equal(false)
      }
      expect(ofCatalog).to.equal(secrets.CURIOUS_KEY)
    })
})
