import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import type { Directory } from '../../../schemas/types.d.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { item, openScene, type Scene } from './scene.ts'

const USD = ['10000', '250000', '3000', '10000', '1', '999999999']

for (const name of ['memory', 'PostgreSQL'])
  describe(`a query of a directory stored in ${name}`, () => {
    let database: TestDatabase | null
    let scene: Scene
    before(async function () {
      database = await DATABASES[name]!()
      if (!database) return this.skip()
      scene = await openScene(database.open?.() ?? openDatabase({ file: ':memory:' }))
      const [offer] = (item('') as { accepts: object[] }).accepts
      scene.sources.bazaar.push(
        ...USD.map((amount, i) =>
          item(`https://s${i}.example.com/v1`, {
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
        item('https://free.example.com/', { accepts: [] }),
      )
      scene.sources.registry.push({ name: 'me/tools', version: '1', remotes: [{ url: 'https://mcp.example.com/mcp' }] })
      await scene.run('sweep')
    })
    after(async () => {
      await scene?.close()
      await database?.drop()
    })

    const names = async (query: object) =>
      (await scene.find(query)).records.map(({ url }) => new URL(url!).host.split('.')[0])
    const failure = (asking: Promise<unknown>): Promise<Error> =>
      asking.then(
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
      const records = (await scene.find()).records.filter(({ url }) =>
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
        const whole = await scene.find({ sort })
        const found: unknown[] = []
        let cursor: string | null = null
        let page: Directory
        do {
          page = await scene.find({ sort, limit: 3, ...(cursor ? { cursor } : {}) })
          expect(page).to.include({ as_of: whole.as_of, total: 8 })
          found.push(...page.records)
          cursor = page.next_cursor
          scene.clock += 6 * 3600
          scene.sources.second.unshift(
            item(`https://a${found.length}${sort.length}.example.com/`, { serviceName: 'A new one' }),
          )
          await scene.run('sweep')
        } while (cursor)
        expect(found).to.deep.equal(whole.records)
        scene.sources.second.length = 0
        scene.clock += 6 * 3600
        await scene.run('sweep')
      })

    it('refuses a cursor of another query and a forged one', async () => {
      const { next_cursor } = await scene.find({ limit: 2 })
      const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const [word] = JSON.parse(Buffer.from(next_cursor!, 'base64url').toString()) as string[]
      for (const query of [
        { limit: 2, sort: 'price', cursor: next_cursor },
        { limit: 3, cursor: next_cursor },
        { limit: 2, q: 'rain', cursor: next_cursor },
        { limit: 2, cursor: 'no' },
        { limit: 2, cursor: made([word, 1]) },
        { limit: 2, cursor: made([word, 1, 5, 'agt_']) },
        { limit: 2, cursor: made([word, 1, 'a']) },
        { limit: 2, cursor: made([word, 'x', 'a', 'agt_']) },
      ])
        expect(await failure(scene.find(query)), JSON.stringify(query)).to.include({ code: 'validation_failed' })
    })

    it('returns nothing newer than the caller may see, whatever the cursor says', async () => {
      const { next_cursor } = await scene.find({ limit: 2 })
      const [word, , ...key] = JSON.parse(Buffer.from(next_cursor!, 'base64url').toString()) as unknown[]
      const cursor = Buffer.from(JSON.stringify([word, scene.clock * 2, ...key])).toString('base64url')
      const then = scene.clock - 3600
      expect(Date.parse((await scene.find({ limit: 2, cursor }, then)).as_of)).to.equal(then * 1000)
    })
  })
