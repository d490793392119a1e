import { once } from 'node:events'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'chai'
import { buy, json, offer } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, until } from '../dynamic/live-gateway.ts'

const root = resolve(import.meta.dirname, '../..')
const guide = readFileSync(join(root, 'docs/plugins.md'), 'utf8')
/** The files of the guide by path: code blocks that name one after their language. */
const files = new Map(
  [...guide.matchAll(/^```(?:ts|json) (\S+)\n([\s\S]*?)^```/gm)].map(([, path, text]) => [
    path as string,
    text as string,
  ]),
)
const fileOf = (path: string): string => files.get(path) ?? ''

describe('the example product of the guide for plugin authors', () => {
  describe('in a running gateway', () => {
    let gateway: LiveGateway
    before(async () => {
      gateway = await openLiveGateway()
      gateway.writePlugin('tides/index.ts', fileOf('plugins/tides/index.ts'))
      gateway.writeCatalog('x/tides.json', fileOf('catalog/x/tides.json'))
      await until(async () => (await gateway.get('/v1/x/tides')).status === 402)
    })
    after(() => gateway.close())

    it('is sold as soon as its files are there', async () => {
      const { v2 } = await offer(`${gateway.url}/v1/x/tides`)
      expect(v2.accepts[0]).to.include({ amount: '2000' })
      await until(async () => (await buy(`${gateway.url}/v1/x/tides?limit=1`, gateway.wallet)).status === 200)
      const body = await json(await buy(`${gateway.url}/v1/x/tides?limit=1`, gateway.wallet))
      expect(body['readings']).to.have.length(1)
    })

    it('streams to a caller who asks for events', async () => {
      const response = await new Promise<import('node:http').IncomingMessage>((resolve) => {
        get(`${gateway.url}/v1/x/tides/live`, { headers: { accept: 'text/event-stream' } }, resolve)
      })
      expect(response.headers['content-type']).to.contain('text/event-stream')
      const [event] = (await once(response, 'data')) as [Buffer]
      expect(event.toString()).to.match(/^id: \d+\ndata: \{"time":".*","metres":-?[\d.]+\}/)
      response.destroy()
    })

    it('refuses a stream to a caller who does not ask for events, and refuses an invalid position', async () => {
      const plain = await gateway.get('/v1/x/tides/live')
      expect([plain.status, (await json(plain))['retry']]).to.deep.equal([422, 'after_fix'])
      const headers = { accept: 'text/event-stream', 'last-event-id': 'yesterday' }
      expect((await fetch(`${gateway.url}/v1/x/tides/live`, { headers })).status).to.equal(422)
    })
  })

  describe('in a copy of the project', () => {
    let folder: string
    before(() => {
      folder = mkdtempSync(join(tmpdir(), 'tollgate-guide-'))
      for (const entry of ['gateway', 'schemas', 'package.json', 'tsconfig.json', 'views'])
        cpSync(join(root, entry), join(folder, entry), { recursive: true })
      symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
      mkdirSync(join(folder, 'catalog'))
      cpSync(join(root, 'catalog/service.json'), join(folder, 'catalog/service.json'))
      for (const [path, text] of files) {
        mkdirSync(dirname(join(folder, path)), { recursive: true })
        writeFileSync(join(folder, path), text)
      }
    })
    after(() => rmSync(folder, { recursive: true, force: true }))

    const runNode = (...args: string[]) => spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })

    it('has a test that passes', () => {
      const mocha = ['--import', 'tsx/esm', 'node_modules/mocha/bin/mocha.js', '--no-package']
      const { status, stdout, stderr } = runNode(...mocha, 'test/plugins/tides/index.test.ts')
      expect(stdout + stderr).to.match(/ passing/)
      expect(status, stdout + stderr).to.equal(0)
    })

    it('compiles', () => {
      const { status, stdout } = runNode('node_modules/typescript/bin/tsc', '--noEmit')
      const errors = stdout.split('\n').filter((line) => /^(plugins|test)\//.test(line))
      expect(errors, stdout).to.deep.equal([])
      expect(status, stdout).to.equal(0)
    })
  })
})
