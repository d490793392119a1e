import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { env } from 'node:process'
import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { openMembers, rowOf } from '../../../plugins/founding/members.ts'
import { proves } from '../../requirements.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

interface Row {
  readonly email: string
  readonly source: string
  readonly unsubscribe_url: string
}

describe('the founding list', () => {
  let gateway: TestGateway
  let folder: string
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'founding-'))
    const catalog = join(folder, 'catalog')
    mkdirSync(catalog)
    for (const name of ['service', 'documents', 'site', 'founding'])
      cpSync(join(root, `catalog/${name}.json`), join(catalog, `${name}.json`))
    const environment = { CATALOG_DIR: catalog, PLUGIN_DIRS: join(root, 'plugins'), DATA_DIR: join(folder, 'data') }
    gateway = await openGateway(environment, { inMemory: false })
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  const send = (fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${gateway.url}/founding`, {
      method: 'POST',
      headers,
      body: new URLSearchParams(fields),
      redirect: 'manual',
    })

  function run(...args: string[]): string {
    const environment = { ...env, DATA_DIR: join(folder, 'data'), PORT: new URL(gateway.url).port }
    const script = ['--import', 'tsx/esm', 'scripts/founding.ts', ...args]
    return execFileSync(process.execPath, script, { cwd: root, env: environment, encoding: 'utf8' })
  }
  async function storedRows(): Promise<Row[]> {
    const db = openDatabase({ file: join(folder, 'data', 'sandbox-sample', 'products.sqlite') })
    const members = await openMembers(db).all()
    await db.destroy()
    return members.map((member) => rowOf(member, gateway.url))
  }

  it('stores an address once, whatever its case, and answers the same each time', async () => {
    proves('founding')
    const first = await send({ email: 'Ada@Example.org' })
    const second = await send({ email: 'ada@example.ORG', source: 'elsewhere' })
    expect([first.status, second.status]).to.deep.equal([200, 200])
    expect(await first.text()).to.equal(await second.text())
    expect(await storedRows()).to.have.length(1)
    expect((await storedRows())[0]).to.include({ email: 'Ada@Example.org', source: 'pricing' })
  })

  it('refuses an invalid address and names the field', async () => {
    for (const fields of [
      {},
      { email: '' },
      { email: 'ada' },
      { email: 'a@b.c\n<script>' },
      { email: 'a@b.co', x: '1' },
    ]) {
      const response = await send(fields)
      expect(response.status, JSON.stringify(fields)).to.equal(422)
      const { detail } = (await response.json()) as { detail: { loc: string[]; msg: string; type: string }[] }
      expect(detail[0]?.loc[0]).to.equal('body')
      expect(detail[0]).to.include.keys('loc', 'msg', 'type')
    }
    expect(await storedRows()).to.have.length(1)
  })

  it('redirects a browser to the price page, which shows the result', async () => {
    const joined = await send({ email: 'grace@example.org' }, HTML)
    expect([joined.status, joined.headers.get('location')]).to.deep.equal([303, '/pricing?ok=1'])
    expect(await (await fetch(`${gateway.url}/pricing?ok=1`, { headers: HTML })).text()).to.contain('Thank you')
    const refused = await send({ email: 'grace' }, HTML)
    expect([refused.status, refused.headers.get('location')]).to.deep.equal([303, '/pricing?err=validation_failed'])
    const page = await (await fetch(`${gateway.url}/pricing?err=validation_failed`, { headers: HTML })).text()
    expect(page).to.contain('role="alert"')
  })

  it('explains on the form how the address is used', async () => {
    const page = await (await fetch(`${gateway.url}/pricing`, { headers: HTML })).text()
    expect(page).to.contain('Every e-mail has a link that deletes it')
  })

  it('deletes an address by POST to its link, while GET only shows a form', async () => {
    await send({ email: 'leaver@example.org' })
    const { unsubscribe_url: link } = (await storedRows()).find(({ email }) => email === 'leaver@example.org') as Row
    expect(link).to.match(/\/founding\/leave\/[\w-]{24}$/)
    const form = await fetch(link, { headers: HTML })
    expect(form.headers.get('x-robots-tag')).to.contain('noindex')
    expect(await form.text()).to.contain('Delete my address')
    expect((await storedRows()).map(({ email }) => email)).to.include('leaver@example.org')
    const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' })
    const deleted = await fetch(link, { method: 'POST', body })
    expect(deleted.status).to.equal(200)
    expect(await deleted.text()).to.contain('Your address was deleted')
    expect((await storedRows()).map(({ email }) => email)).not.to.include('leaver@example.org')
    expect((await fetch(link, { method: 'POST', body })).status, 'a second time').to.equal(200)
    expect((await fetch(`${gateway.url}/founding/leave/short`, { method: 'POST' })).status).to.equal(422)
  })

  it('is exported as CSV without spreadsheet formulas', async () => {
    await send({ email: '=cmd@example.org', source: '=1+1' })
    const lines = run('export').trim().split(/\r?\n/)
    expect(lines[0]).to.equal('email,source,joined,unsubscribe_url')
    const hostile = lines.find((line) => line.includes('cmd@example.org'))
    expect(hostile).to.match(/^"'=cmd@example\.org","'=1\+1",20\d\d-/)
  })
})
