import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { listingsFreshness } from '../../../plugins/directory/directory-query.ts'
import { DirectoryStore } from '../../../plugins/directory/directory-store.ts'
import type { Directory } from '../../../schemas/types.d.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { listingItem, openOnlineDirectory, type OnlineDirectory } from './online-directory.ts'

const AMOUNTS = ['10000', '250000', '3000', '10000', '1', '999999999']

for (const name of ['memory', 'PostgreSQL'])
  describe(`a query of a directory stored in ${name}`, () => {
    let database: TestDatabase | null
    let directory: OnlineDirectory
    before(async function () {
      database = await DATABASES[name]!()
      if (!database) return this.skip()
      directory = await openOnlineDirectory(database.open?.() ?? openDatabase({ file: ':memory:' }))
      const [offer] = (listingItem('') as { accepts: object[] }).accepts
      directory.sources.bazaar.push(
        ...AMOUNTS.map((amount, i) =>
          listingItem(`https://s${i}.example.com/v1`, {
            serviceName: `${'BaCdEf'[i]} weather 100%_sure`,
            description: i % 2 ? 'Forecasts of rain' : 'Forecasts of SUN',
            tags: i % 2 ? ['Rain'] : ['Sun', 'dry_air'],
            accepts: [
              {
                ...offer,
                amount,
                ...(i === 3 ? { network: 'base-sepolia', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' } : {}),
              },
            ],
          }),
        ),
        listingItem('https://free.example.com/', { accepts: [] }),
      )
      directory.sources.registry.push({
        name: 'me/tools',
        version: '1',
        remotes: [{ url: 'https://mcp.example.com/mcp' }],
      })
      await directory.run('sweep')
    })
    after(async () => {
      await directory?.close()
      await database?.drop()
    })

    const names = async (query: object) =>
      (await directory.find(query)).records.map(({ url }) => new URL(url!).host.split('.')[0])
    const failure = (call: Promise<unknown>): Promise<Error> =>
      call.then(
        () => expect.fail('answered'),
        (error: Error) => error,
      )

    it('finds records that contain all search words, in any field', async () => {
      expect(await names({ q: 'WEATHER rain' })).to.deep.equal(['s1', 's3', 's5'])
      expect(await names({ q: 's2.example' })).to.deep.equal(['s2'])
      expect(await names({ q: '100%_sure sun' })).to.deep.equal(['s0', 's2', 's4'])
      expect(await names({ q: '100%%sure' })).to.deep.equal([])
      expect(await names({ q: "x' or 1=1 --" })).to.deep.equal([])
      expect(await names({ q: '\\' })).to.deep.equal([])
    })

    it('filters by protocol, kind, network, tag and price', async () => {
      expect(await names({ protocol: 'mcp' })).to.deep.equal(['mcp'])
      expect(await names({ kind: 'mcp_server' })).to.deep.equal(['mcp'])
      expect(await names({ network: 'base-sepolia' })).to.deep.equal(['s3'])
      expect(await names({ network: 'eip155:84532' })).to.deep.equal(['s3'])
      expect(await names({ tag: 'DRY_air' })).to.deep.equal(['s0', 's2', 's4'])
      expect(await names({ tag: 'dry' })).to.deep.equal([])
      expect(await names({ max_price_usd: 0.01, sort: 'price' })).to.deep.equal([
        's4',
        's2',
        ...(await sameByID(['s0', 's3'])),
      ])
      expect(await names({ max_price_usd: 0 })).to.deep.equal([])
    })

    const sameByID = async (hosts: readonly string[]): Promise<string[]> => {
      const records = (await directory.find()).records.filter(({ url }) =>
        hosts.includes(new URL(url!).host.split('.')[0]!),
      )
      return records.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ url }) => new URL(url!).host.split('.')[0]!)
    }

    it('sorts by name without regard to case, and lists records without a price last', async () => {
      expect(await names({})).to.deep.equal(['s1', 's0', 's2', 's3', 's4', 's5', 'free', 'mcp'])
      const byPrice = await names({ sort: 'price' })
      expect(byPrice.slice(0, 2)).to.deep.equal(['s4', 's2'])
      expect(byPrice.slice(4, 6)).to.deep.equal(['s1', 's5'])
      expect(byPrice.slice(6)).to.have.members(['free', 'mcp'])
    })

    for (const sort of ['name', 'price', 'first_seen', '-first_seen'])
      it(`returns the same records in pages of 3 as in one page, while records change, sorted by ${sort}`, async () => {
        const whole = await directory.find({ sort })
        const found: unknown[] = []
        let cursor: string | null = null
        let page: Directory
        do {
          page = await directory.find({ sort, limit: 3, ...(cursor ? { cursor } : {}) })
          expect(page).to.include({ as_of: whole.as_of, total: 8 })
          found.push(...page.records)
          cursor = page.next_cursor
          directory.clock += 6 * 3600
          directory.sources.second.unshift(
            listingItem(`https://a${found.length}${sort.length}.example.com/`, { serviceName: 'A new one' }),
          )
          await directory.run('sweep')
        } while (cursor)
        expect(found).to.deep.equal(whole.records)
        directory.sources.second.length = 0
        directory.clock += 6 * 3600
        await directory.run('sweep')
      })

    it('refuses a cursor of another query and a forged one', async () => {
      const { next_cursor } = await directory.find({ limit: 2 })
      const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const [queryHash] = JSON.parse(Buffer.from(next_cursor!, 'base64url').toString()) as string[]
      for (const query of [
        { limit: 2, sort: 'price', cursor: next_cursor },
        { limit: 3, cursor: next_cursor },
        { limit: 2, q: 'rain', cursor: next_cursor },
        { limit: 2, cursor: 'no' },
        { limit: 2, cursor: encode([queryHash, 1]) },
        { limit: 2, cursor: encode([queryHash, 1, 5, 'agt_']) },
        { limit: 2, cursor: encode([queryHash, 1, 'a']) },
        { limit: 2, cursor: encode([queryHash, 'x', 'a', 'agt_']) },
        { limit: 2, cursor: encode([queryHash, -1e15, 'a', 'agt_']) },
      ])
        expect(await failure(directory.find(query)), JSON.stringify(query)).to.include({ code: 'validation_failed' })
      const bySeen = await directory.find({ limit: 2, sort: 'first_seen' })
      const [seenHash, asOf] = JSON.parse(Buffer.from(bySeen.next_cursor!, 'base64url').toString()) as unknown[]
      const cursor = encode([seenHash, asOf, 1.5, 'agt_'])
      expect(await failure(directory.find({ limit: 2, sort: 'first_seen', cursor }))).to.include({
        code: 'validation_failed',
      })
    })

    it('answers at any part of a second', async () => {
      const moment = directory.clock + 0.123
      const page = await directory.find({ limit: 2 }, moment)
      expect(page).to.include({ count: 2, total: 8 })
      const next = await directory.find({ limit: 2, cursor: page.next_cursor }, moment + 0.5)
      expect(next).to.include({ count: 2, as_of: page.as_of })
      const sources = [{ id: 'bazaar', enabled: true }]
      const asked = { asOf: new Date(moment * 1000), dataMode: 'online', sources } as const
      expect(await listingsFreshness(new DirectoryStore(directory.db), asked)).to.include({ sources: 1, coverage: 1 })
    })

    it('returns nothing newer than the caller may see, whatever the cursor says', async () => {
      const { next_cursor } = await directory.find({ limit: 2 })
      const [queryHash, , ...key] = JSON.parse(Buffer.from(next_cursor!, 'base64url').toString()) as unknown[]
      const cursor = Buffer.from(JSON.stringify([queryHash, directory.clock * 2, ...key])).toString('base64url')
      const earlier = directory.clock - 3600
      expect(Date.parse((await directory.find({ limit: 2, cursor }, earlier)).as_of)).to.equal(earlier * 1000)
    })

    it('refuses a cursor from a time whose records are no longer kept', async () => {
      const { next_cursor: cursor } = await directory.find({ limit: 2 })
      directory.clock += 48 * 3600
      await directory.run('sweep')
      expect(await directory.find({ limit: 2, cursor })).to.include({ count: 2, total: 8 })
      directory.clock += 1
      const error = await failure(directory.find({ limit: 2, cursor }))
      expect(error).to.include({ code: 'validation_failed' })
      expect(error.message).to.match(/cursor: is too old/)
    })
  })
