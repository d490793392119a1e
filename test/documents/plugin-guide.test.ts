import { once } from 'node:events'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'chai'
import { buy, json, offer } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway } from '../dynamic/live-gateway.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
const guide = readFileSync(join(root, 'docs/plugins.md'), 'utf8')
/** The files of the guide by path: code blocks that name one after their language. */
const files = new Map(
  [...guide.matchAll(/^```(?:ts|json|pug) (\S+)\n([\s\S]*?)^```/gm)].map(([, path, text]) => [
    path as string,
    text as string,
  ]),
)
const fileOf = (path: string): string => files.get(path) ?? ''

describe('the example product of the guide for plugin authors', () => {
  describe('in a running gateway', () => {
    let gateway: LiveGateway
    before(async () => {
      const documents = readFileSync(join(root, 'catalog/documents.json'), 'utf8')
      gateway = await openLiveGateway({ catalog: { 'documents.json': documents } })
      gateway.writePlugin('tides/views/tides.pug', fileOf('plugins/tides/views/tides.pug'))
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

    it('draws the readings on a page', async () => {
      await until(async () => (await gateway.get('/v1/x/tides/page')).status === 200)
      const page = await (await fetch(`${gateway.url}/v1/x/tides/page`, { headers: { accept: 'text/html' } })).text()
      expect(page)
        .to.contain('Tides of two days')
        .and.to.match(/<path class="curve line tone-main" d="M/)
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

    it('is listed with its stream, which OpenAPI describes as server-sent events', async () => {
      const { paths } = (await json(await gateway.get('/openapi.json'))) as {
        paths: Readonly<Record<string, { readonly get: { readonly responses: Readonly<Record<string, unknown>> } }>>
      }
      expect(paths['/v1/x/tides/live']?.get.responses['200'])
        .to.have.property('content')
        .that.has.keys('text/event-stream')
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
      for (const script of ['types.ts', 'schema-types.ts', 'flags.ts'])
        cpSync(join(root, 'scripts', script), join(folder, 'scripts', script))
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

    const runNode = (args: readonly string[]) => spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })

    const runTest = () =>
      runNode([
        '--import',
        'tsx/esm',
        'node_modules/mocha/bin/mocha.js',
        '--no-package',
        'test/plugins/tides/index.test.ts',
      ])

    it('has a test that passes', () => {
      const { status, stdout, stderr } = runTest()
      expect(stdout + stderr).to.match(/ passing/)
      expect(status, stdout + stderr).to.equal(0)
    })

    describe('with an error in its files', () => {
      /** A file of the product, and texts of it with what takes their place. */
      type Fault = readonly [path: string, ...changes: readonly (readonly [string, string])[]]
      const catalog = 'catalog/x/tides.json'
      const response = /"response": \{\s*"type": "string",[^}]*\}[^}]*\}/.exec(fileOf(catalog))?.[0] ?? ''
      const faults = {
        misspelt: [catalog, ['"followTides"', '"followTide"']],
        undeclared: [catalog, [`"price": "free",\n      ${response}`, '"price": "free"']],
        endless: ['plugins/tides/index.ts', ['!signal.aborted', 'true'], ['1000, null, { signal }', '1000']],
      } as const satisfies Readonly<Record<string, Fault>>
      /** What the product's test prints with a fault. */
      const printedWith = (name: keyof typeof faults): string => {
        const [path, ...changes]: Fault = faults[name]
        const text = changes.reduce((text, [old, next]) => text.replace(old, next), fileOf(path))
        expect(text, name).not.to.equal(fileOf(path))
        writeFileSync(join(folder, path), text)
        const { stdout, stderr } = runTest()
        writeFileSync(join(folder, path), fileOf(path))
        return stdout + stderr
      }

      it('has a test that names what is wrong with the catalog file first', () => {
        const printed = printedWith('misspelt')
        expect(printed).to.contain('The plugin has no handler for followTide.')
        expect(printed).not.to.contain('TypeError')
      })

      it('fails the contract test kit if it does not say that an operation answers with a stream', () => {
        expect(printedWith('undeclared')).to.contain(
          'followTides answers with a stream only. Say so in the catalog document',
        )
      })

      it('fails the contract test kit if its stream goes on after the caller has left', () => {
        expect(printedWith('endless')).to.match(
          /followTides\s+ends when the caller leaves:[\s\S]*still open 1000 ms after/,
        )
      })
    })

    it('compiles, and so do the queries of the guide', () => {
      const queries = /^```ts\n(const rows[\s\S]*?)^```/m.exec(guide)?.[1]
      expect(queries).to.be.a('string')
      const head = "import type { Database } from 'tollgate/plugin'\ntype Reading = { hour: number }\n"
      const results = 'const numbers: (number | null | undefined)[] = [rows[0]?.hour, row?.newest]\nreturn numbers'
      const body = `export async function query(db: Database) {\n${queries}\n${results}\n}\n`
      writeFileSync(join(folder, 'plugins/tides/queries.ts'), head + body)

      const types = runNode(['--import', 'tsx/esm', 'scripts/types.ts'])
      expect(types.status, types.stderr).to.equal(0)
      // Several checkers would each check what they share.
      const { status, stdout } = runNode(['node_modules/typescript/bin/tsc', '--noEmit', '--checkers', '1'])
      const errors = stdout.split('\n').filter((line) => /^(plugins|test)\//.test(line))
      expect(errors, stdout).to.deep.equal([])
      expect(status, stdout).to.equal(0)
    })
  })
})

describe('the guide for plugin authors', () => {
  it('names every kind of column and every column modifier that migrations may use', () => {
    const types = readFileSync(join(root, 'gateway/plugin/database.ts'), 'utf8')
    const methods = ['TableBuilder', 'Column', 'Schema'].flatMap((name) => {
      const [, body = ''] = new RegExp(`^export interface ${name} \\{([\\s\\S]*?)^\\}`, 'm').exec(types) ?? []
      return [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method]) => method as string)
    })
    expect(methods).to.include.members(['createTable', 'increments', 'defaultTo'])
    expect(methods.filter((method) => !new RegExp(`\\b${method}\\b`).test(guide))).to.deep.equal([])
  })
})
