import { expect } from 'chai'
import { DirectoryStore } from '../../../plugins/directory/directory-store.ts'
import { SourceError } from '../../../plugins/directory/listing.ts'
import { sweep as readSource } from '../../../plugins/directory/sweep.ts'
import { listingItem, NOON, openOnlineDirectory, PAYEE, type OnlineDirectory } from './online-directory.ts'

describe('a sweep of the listings', () => {
  let directory: OnlineDirectory
  beforeEach(async () => {
    directory = await openOnlineDirectory()
  })
  afterEach(() => directory.close())

  const sweep = async (hours = 6): Promise<void> => {
    directory.clock += hours * 3600
    await directory.run('sweep')
  }
  const urls = async (query: object = {}) => (await directory.find(query)).records.map(({ url }) => url)
  const source = async (id: string) => (await directory.find()).sources.find((one) => one.id === id)!
  const items = (count: number) =>
    Array.from({ length: count }, (_, i) => listingItem(`https://s${String(i).padStart(3, '0')}.example.com/`))

  it('reads every page of every enabled source', async () => {
    directory.sources.bazaar.push(...items(250))
    directory.sources.registry.push(
      ...Array.from({ length: 130 }, (_, i) => ({
        name: `me/s${i}`,
        version: '1',
        remotes: [{ url: `https://m${i}.example.com/mcp` }],
      })),
    )
    await directory.run('sweep')
    expect(directory.pages).to.deep.equal([
      'bazaar 0',
      'bazaar 100',
      'bazaar 200',
      'second 0',
      'registry 0',
      'registry 100',
    ])
    expect((await directory.find()).total).to.equal(380)
    expect(await source('bazaar')).to.deep.include({ status: 'ok', rows: 250, age_seconds: 0 })
    expect(await source('off')).to.include({ status: 'off', rows: null })
  })

  it('runs again after six hours, or half an hour after a failure', async () => {
    directory.faults.set('second', () => ({ status: 503, text: '' }))
    await directory.run('sweep')
    await sweep(0.4)
    expect(directory.pages).to.have.length(3)
    await sweep(0.1)
    expect(directory.pages.slice(3)).to.deep.equal(['second 0'])
    await sweep(5.5)
    expect(directory.pages.slice(4)).to.deep.equal(['bazaar 0', 'second 0', 'registry 0'])
    expect(await source('second')).to.deep.include({
      status: 'degraded',
      fetched_at: null,
      error: 'the source answered 503',
    })
  })

  it('removes what a source no longer lists, unless another source still lists it', async () => {
    directory.sources.bazaar.push(listingItem('https://a.example.com/'), listingItem('https://b.example.com/'))
    directory.sources.second.push(listingItem('https://b.example.com/'))
    await directory.run('sweep')
    directory.sources.bazaar.length = 0
    await sweep()
    expect(await urls()).to.deep.equal(['https://b.example.com/'])
    expect((await directory.record('https://b.example.com/')).sources.map(({ id }) => id)).to.deep.equal(['second'])
  })

  it('removes nothing if more than a tenth of the rows is malformed, and says how many are', async () => {
    directory.sources.bazaar.push(...items(20))
    await directory.run('sweep')
    const [first, second, ...others] = directory.sources.bazaar
    directory.sources.bazaar.splice(0, 3, { resource: null }, null, { resource: null })
    await sweep()
    expect((await directory.find()).total).to.equal(20)
    expect((await source('bazaar')).dropped).to.deep.equal({ malformed: 3 })
    directory.sources.bazaar.splice(0, 20, first, null, ...others)
    await sweep()
    expect((await directory.find()).total).to.equal(19)
    expect(second).to.deep.include({ resource: 'https://s001.example.com/' })
  })

  it('removes nothing if it does not reach the end', async () => {
    directory.sources.bazaar.push(...items(250))
    await directory.run('sweep')
    directory.sources.bazaar.splice(0, 50)
    for (const text of ['<html>', '{"items":', '{"error":"no"}', '']) {
      directory.faults.set('bazaar', (page) => (page === 1 ? { status: 200, text } : null))
      await sweep()
      expect((await directory.find()).total, text).to.equal(250)
      expect(await source('bazaar')).to.include({ status: 'degraded', rows: 250 })
    }
    directory.faults.clear()
    await sweep()
    expect((await directory.find()).total).to.equal(200)
  })

  it('fails and removes nothing if a source has more pages than it reads', async () => {
    directory.sources.bazaar.push(...items(3))
    await directory.run('sweep')
    let served = 0
    const endless = async (): Promise<Response> =>
      new Response(JSON.stringify({ items: [{ resource: `no address ${(served += 1)}` }], pagination: { total: 1e6 } }))
    const read = readSource(new DirectoryStore(directory.db), endless, {
      source: { id: 'bazaar', kind: 'bazaar', enabled: true, url: 'https://bazaar.example.com/' },
      rank: 0,
      pauseMs: 0,
      signal: new AbortController().signal,
      now: () => NOON + 3600,
      visit: () => expect.fail('a bazaar links to no files'),
    })
    const error = await read.then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect((await directory.find({}, NOON + 7200)).total).to.equal(3)
    expect(error).to.be.instanceOf(SourceError)
    expect(served).to.equal(2000)
  })

  it('fails and removes nothing if a page is empty or repeated and the source says that it has more', async () => {
    directory.sources.bazaar.push(...items(250))
    await directory.run('sweep')
    const page = (rows: readonly object[]) => JSON.stringify({ items: rows, pagination: { total: 250 } })
    for (const [fault, error] of [
      [(n: number) => (n === 1 ? page([]) : null), 'the source sent an empty page after 100 of 250 rows'],
      [(n: number) => (n === 0 ? page([]) : null), 'the source sent an empty page after 0 of 250 rows'],
      [() => page(items(100)), 'the source repeats a page after 100 of 250 rows'],
    ] as const) {
      directory.faults.set('bazaar', (n) => {
        const text = fault(n)
        return text === null ? null : { status: 200, text }
      })
      await sweep()
      expect((await directory.find()).total, error).to.equal(250)
      expect(await source('bazaar')).to.include({ status: 'degraded', rows: 250, error })
    }
  })

  it('ends if a source repeats one page forever', async () => {
    const page = JSON.stringify({ items: items(100) })
    directory.faults.set('bazaar', () => ({ status: 200, text: page }))
    await directory.run('sweep')
    expect(directory.pages.filter((one) => one.startsWith('bazaar'))).to.deep.equal(['bazaar 0', 'bazaar 100'])
    expect((await directory.find()).total).to.equal(100)
  })

  it('does not follow redirects of a source', async () => {
    directory.faults.set('bazaar', () => ({ status: 302, text: '' }))
    await directory.run('sweep')
    expect(await source('bazaar')).to.include({ error: 'the source answered 302' })
  })

  it('leaves answers for past times unchanged', async () => {
    directory.sources.bazaar.push(listingItem('https://a.example.com/', { description: 'old' }))
    await directory.run('sweep')
    const [before, earlier] = [await directory.find(), directory.clock]
    directory.sources.bazaar[0] = listingItem('https://a.example.com/', { description: 'new' })
    directory.sources.bazaar.push(listingItem('https://b.example.com/'))
    await sweep()
    expect(await directory.find({}, earlier)).to.deep.equal(before)
    expect(await directory.find({}, directory.clock - 1)).to.deep.include({ records: before.records })
    expect((await directory.find()).records.map(({ description }) => description)).to.deep.equal(['new', null])
    expect((await directory.find({}, NOON - 1)).total).to.equal(0)
  })

  it('writes no new version of an unchanged record', async () => {
    directory.sources.bazaar.push(listingItem('https://a.example.com/'))
    await directory.run('sweep', 'self')
    const before = await directory.find()
    await sweep()
    await directory.run('self')
    expect((await directory.find()).records).to.deep.equal(before.records)
    expect(await directory.db('directory_records')).to.have.length(2)
  })

  it('keeps superseded versions for two days', async () => {
    directory.sources.bazaar.push(listingItem('https://a.example.com/'))
    await directory.run('sweep')
    for (let i = 0; i < 12; i += 1) {
      directory.sources.bazaar[0] = listingItem('https://a.example.com/', { description: `no ${i}` })
      await sweep()
    }
    const kept = (await directory.db('directory_records').orderBy('known_at')) as { superseded_at: number | null }[]
    expect(kept).to.have.length(10)
    expect(kept[0]!.superseded_at).to.equal(directory.clock - 48 * 3600)
  })
})

describe('a record from several sources', () => {
  let directory: OnlineDirectory
  beforeEach(async () => {
    directory = await openOnlineDirectory()
  })
  afterEach(() => directory.close())
  const url = 'https://a.example.com/data'
  const priced = (payTo: string, amount = '10000') => ({
    accepts: [
      { scheme: 'exact', network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', amount, payTo },
    ],
  })
  const OTHER_PAYEE = '0x00000000000000000000000000000000000000b2'

  it('takes each field from the first source that has it', async () => {
    directory.sources.bazaar.push(
      listingItem('HTTPS://A.example.com:443/data', {
        description: '',
        tags: ['Data'],
        quality: { l30DaysTotalCalls: 7, l30DaysUniquePayers: 2 },
      }),
    )
    directory.sources.second.push(
      listingItem(`${url}#x`, {
        description: 'The data',
        serviceName: 'Data',
        tags: ['more'],
        quality: { l30DaysTotalCalls: 900 },
        ...priced(PAYEE, '99'),
      }),
    )
    await directory.run('sweep')
    const record = await directory.record(url)
    expect(record).to.deep.include({
      name: 'Data',
      description: 'The data',
      tags: ['data', 'more'],
      reputation: { calls_30d: 7, payers_30d: 2, source: 'bazaar', erc8004: null },
    })
    expect(record.prices.map(({ amount_atomic }) => amount_atomic)).to.deep.equal(['10000'])
    expect(record.sources.map(({ id }) => id)).to.deep.equal(['bazaar', 'second'])
  })

  it('keeps the time at which we first saw it, whatever a listing states', async () => {
    directory.sources.second.push(listingItem(url, { lastUpdated: 1 }))
    await directory.run('sweep')
    directory.clock += 6 * 3600
    directory.sources.bazaar.push(listingItem(url, { firstSeen: 5, lastUpdated: 4_102_444_800 }))
    await directory.run('sweep')
    const record = await directory.record(url)
    expect(record.first_seen).to.equal('2026-11-20T12:00:00Z')
    expect(record.sources).to.deep.equal([
      { id: 'bazaar', seen: '2026-11-20T18:00:00Z', updated: '2026-11-20T18:05:00Z' },
      { id: 'second', seen: '2026-11-20T12:00:00Z', updated: '1970-01-01T00:00:01Z' },
    ])
  })

  it('is flagged for 30 days when its payTo address changes, but not when its price changes', async () => {
    directory.sources.bazaar.push(listingItem(url))
    await directory.run('sweep')
    const flagsAfter = async (days: number, changes: object): Promise<readonly string[]> => {
      directory.clock += days * 86_400
      directory.sources.bazaar[0] = listingItem(url, changes)
      await directory.run('sweep')
      return (await directory.record(url)).flags
    }
    expect(await flagsAfter(1, priced(PAYEE.toLowerCase(), '20000'))).to.deep.equal([])
    expect(await flagsAfter(1, { accepts: [] })).to.deep.equal(['no_prices'])
    expect(await flagsAfter(1, priced(PAYEE))).to.deep.equal([])
    expect(await flagsAfter(1, priced(OTHER_PAYEE))).to.deep.equal(['payto_changed'])
    expect(await flagsAfter(29, { ...priced(OTHER_PAYEE), description: 'a' })).to.deep.equal(['payto_changed'])
    expect(await flagsAfter(1, { ...priced(OTHER_PAYEE), description: 'b' })).to.deep.equal([])
  })
})
