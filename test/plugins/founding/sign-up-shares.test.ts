/** What a stranger can fill the founding list with. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { type Database, RateLimited, Unavailable } from 'tollgate/plugin'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { countSignUp, forgetFormerDays } from '../../../plugins/founding/daily-shares.ts'
import { migrations } from '../../../plugins/founding/members.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')
/** Sign-ups that one address may send in a day. */
const SHARE = 20
const DAY = 86_400

describe('sign-ups for the founding list', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sign-ups-'))
  let gateway: TestGateway
  beforeEach(async () => {
    const catalog = join(folder, 'catalog')
    mkdirSync(catalog, { recursive: true })
    for (const name of ['service', 'documents', 'site', 'founding'])
      cpSync(join(root, `catalog/${name}.json`), join(catalog, `${name}.json`))
    const environment = { CATALOG_DIR: catalog, PLUGIN_DIRS: join(root, 'plugins'), TRUSTED_PROXIES: '127.0.0.1' }
    gateway = await openGateway(environment)
    // So that no midnight comes in between.
    gateway.advance(DAY - ((gateway.now().getTime() / 1000) % DAY))
  })
  afterEach(() => gateway.close())
  after(() => rmSync(folder, { recursive: true }))

  const signUp = (email: string, from: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(`${gateway.url}/founding`, {
      method: 'POST',
      headers: { 'x-forwarded-for': from, ...headers },
      body: new URLSearchParams({ email }),
      redirect: 'manual',
    })
  async function statuses(count: number, from: string, email: (nth: number) => string): Promise<number[]> {
    const answers: number[] = []
    for (let nth = 0; nth < count; nth += 1) answers.push((await signUp(email(nth), from)).status)
    return answers
  }
  const expected = [...Array<number>(SHARE).fill(200), 429, 429]

  it('are taken from one address only so often in a day, and others are not kept from signing up', async () => {
    expect(await statuses(SHARE + 2, '198.51.100.1', (nth) => `a${nth}@example.org`)).to.deep.equal(expected)
    const refused = await signUp('late@example.org', '198.51.100.1')
    const body = (await refused.json()) as { code: string; message: string }
    expect(body.code).to.equal('rate_limited')
    expect(body.message).to.match(/^No more than 20 sign-ups a day are taken from one network address\. Wait \d+ s\.$/)
    expect(Number(refused.headers.get('retry-after'))).to.be.within(DAY - 60, DAY)
    expect((await signUp('other@example.org', '198.51.100.2')).status).to.equal(200)
    expect((await signUp('next@example.org', '2001:db8::1')).status).to.equal(200)
    gateway.advance(DAY)
    expect((await signUp('late@example.org', '198.51.100.1')).status).to.equal(200)
  })

  it('count alike for new and known addresses, so that nobody learns who is on the list', async () => {
    expect((await signUp('ada@example.org', '198.51.100.9')).status).to.equal(200)
    const known = await statuses(SHARE + 2, '198.51.100.3', () => 'ada@example.org')
    const fresh = await statuses(SHARE + 2, '198.51.100.4', (nth) => `b${nth}@example.org`)
    expect([known, fresh]).to.deep.equal([expected, expected])
  })

  it('lead a browser back to the form, which says why', async () => {
    await statuses(SHARE, '198.51.100.5', (nth) => `c${nth}@example.org`)
    const accept = { accept: 'text/html' }
    const refused = await signUp('late@example.org', '198.51.100.5', accept)
    expect([refused.status, refused.headers.get('location')]).to.deep.equal([303, '/pricing?err=rate_limited'])
    const page = await (await fetch(`${gateway.url}/pricing?err=rate_limited`, { headers: accept })).text()
    expect(page).to.contain('Too many requests from your network address')
  })
})

for (const [name, open] of Object.entries(DATABASES))
  describe(`the counts of sign-ups in ${name}`, () => {
    const limits = { perClient: 5, total: 8 }
    const noon = new Date('2026-05-01T12:00:00Z')
    let database: TestDatabase | null
    beforeEach(async function () {
      database = await open()
      if (!database) return this.skip()
      await migrate(database.db, 'founding', migrations)
    })
    afterEach(() => database?.drop())

    /** What became of sign-ups that several processes count at once. */
    async function count(client: string, times: number, at = noon): Promise<Record<string, number>> {
      const processes: Database[] = [database!.db, database!.open?.() ?? database!.db]
      const outcomes = await Promise.all(
        Array.from({ length: times }, (_, nth) =>
          processes[nth % 2]!.transaction((transaction) => countSignUp(transaction, client, at, limits)).then(
            () => 'counted',
            (error: unknown) =>
              error instanceof RateLimited ? 'share' : error instanceof Unavailable ? 'total' : String(error),
          ),
        ),
      )
      return Object.fromEntries(
        [...new Set(outcomes)].map((each) => [each, outcomes.filter((one) => one === each).length]),
      )
    }

    it('never exceed the share of a client or that of all, however many are sent at once', async () => {
      expect(await count('one', 9)).to.deep.equal({ counted: 5, share: 4 })
      expect(await count('other', 9)).to.deep.equal({ counted: 3, total: 6 })
      expect(await count('third', 2)).to.deep.equal({ total: 2 })
      const clients = await database!.db('founding_sign_ups').pluck('client')
      expect(clients, 'a refused sign-up leaves nothing').to.have.members(['', 'one', 'other'])
    })

    it('begin again with the day, and are deleted when it is over', async () => {
      await count('one', 5)
      const midnight = new Date('2026-05-02T00:00:00Z')
      expect(await count('one', 1, new Date(midnight.getTime() - 1))).to.deep.equal({ share: 1 })
      await forgetFormerDays(database!.db, new Date(midnight.getTime() - 1))
      expect(await database!.db('founding_sign_ups')).to.have.length(2)
      expect(await count('one', 1, midnight)).to.deep.equal({ counted: 1 })
      await forgetFormerDays(database!.db, midnight)
      expect(await database!.db('founding_sign_ups').where({ client: 'one' }).pluck('sign_ups')).to.deep.equal([1])
    })
  })
