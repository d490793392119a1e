import { expect } from 'chai'
import { item, NOON, openScene, PAYEE, type Scene } from './scene.ts'

describe('a sweep of the listings', () => {
  let scene: Scene
  beforeEach(async () => {
    scene = await openScene()
  })
  afterEach(() => scene.close())

  const sweep = async (hours = 6): Promise<void> => {
    scene.clock += hours * 3600
    await scene.run('sweep')
  }
  const urls = async (query: object = {}) => (await scene.find(query)).records.map(({ url }) => url)
  const source = async (id: string) => (await scene.find()).sources.find((one) => one.id === id)!
  const many = (count: number) =>
    Array.from({ length: count }, (_, i) => item(`https://s${String(i).padStart(3, '0')}.example.com/`))

  it('reads every page of every enabled source', async () => {
    scene.sources.bazaar.push(...many(250))
    scene.sources.registry.push(
      ...Array.from({ length: 130 }, (_, i) => ({
        name: `me/s${i}`,
        version: '1',
        remotes: [{ url: `https://m${i}.example.com/mcp` }],
      })),
    )
    await scene.run('sweep')
    expect(scene.pages).to.deep.equal([
      'bazaar 0',
      'bazaar 100',
      'bazaar 200',
      'second 0',
      'registry 0',
      'registry 100',
    ])
    expect((await scene.find()).total).to.equal(380)
    expect(await source('bazaar')).to.deep.include({ status: 'ok', rows: 250, age_seconds: 0 })
    expect(await source('off')).to.include({ status: 'off', rows: null })
  })

  it('runs again after six hours, or half an hour after a failure', async () => {
    scene.faults.set('second', () => ({ status: 503, text: '' }))
    await scene.run('sweep')
    await sweep(0.4)
    expect(scene.pages).to.have.length(3)
    await sweep(0.1)
    expect(scene.pages.slice(3)).to.deep.equal(['second 0'])
    await sweep(5.5)
    expect(scene.pages.slice(4)).to.deep.equal(['bazaar 0', 'second 0', 'registry 0'])
    expect(await source('second')).to.deep.include({
      status: 'degraded',
      fetched_at: null,
      error: 'the source answered 503',
    })
  })

  it('removes what a source no longer lists, unless another source still lists it', async () => {
    scene.sources.bazaar.push(item('https://a.example.com/'), item('https://b.example.com/'))
    scene.sources.second.push(item('https://b.example.com/'))
    await scene.run('sweep')
    scene.sources.bazaar.length = 0
    await sweep()
    expect(await urls()).to.deep.equal(['https://b.example.com/'])
    expect((await scene.record('https://b.example.com/')).sources.map(({ id }) => id)).to.deep.equal(['second'])
  })

  it('removes nothing if it does not reach the end', async () => {
    scene.sources.bazaar.push(...many(250))
    await scene.run('sweep')
    scene.sources.bazaar.splice(0, 50)
    for (const text of ['<html>', '{"items":', '{"error":"no"}', '']) {
      scene.faults.set('bazaar', (page) => (page === 1 ? { status: 200, text } : null))
      await sweep()
      expect((await scene.find()).total, text).to.equal(250)
      expect(await source('bazaar')).to.include({ status: 'degraded', rows: 250 })
    }
    scene.faults.clear()
    await sweep()
    expect((await scene.find()).total).to.equal(200)
  })

  it('ends if a source repeats one page forever', async () => {
    const page = JSON.stringify({ items: many(100) })
    scene.faults.set('bazaar', () => ({ status: 200, text: page }))
    await scene.run('sweep')
    expect(scene.pages.filter((one) => one.startsWith('bazaar'))).to.deep.equal(['bazaar 0', 'bazaar 100'])
    expect((await scene.find()).total).to.equal(100)
  })

  it('does not follow redirects of a source', async () => {
    scene.faults.set('bazaar', () => ({ status: 302, text: '' }))
    await scene.run('sweep')
    expect(await source('bazaar')).to.include({ error: 'the source answered 302' })
  })

  it('leaves answers for past times unchanged', async () => {
    scene.sources.bazaar.push(item('https://a.example.com/', { description: 'old' }))
    await scene.run('sweep')
    const [before, then] = [await scene.find(), scene.clock]
    scene.sources.bazaar[0] = item('https://a.example.com/', { description: 'new' })
    scene.sources.bazaar.push(item('https://b.example.com/'))
    await sweep()
    expect(await scene.find({}, then)).to.deep.equal(before)
    expect(await scene.find({}, scene.clock - 1)).to.deep.include({ records: before.records })
    expect((await scene.find()).records.map(({ description }) => description)).to.deep.equal(['new', null])
    expect((await scene.find({}, NOON - 1)).total).to.equal(0)
  })

  it('writes no new version of an unchanged record', async () => {
    scene.sources.bazaar.push(item('https://a.example.com/'))
    await scene.run('sweep', 'self')
    const before = await scene.find()
    await sweep()
    await scene.run('self')
    expect((await scene.find()).records).to.deep.equal(before.records)
    expect(await scene.db('directory_records')).to.have.length(2)
  })

  it('keeps superseded versions for two days', async () => {
    scene.sources.bazaar.push(item('https://a.example.com/'))
    await scene.run('sweep')
    for (let i = 0; i < 12; i += 1) {
      scene.sources.bazaar[0] = item('https://a.example.com/', { description: `no ${i}` })
      await sweep()
    }
    const kept = (await scene.db('directory_records').orderBy('known_at')) as { superseded_at: number | null }[]
    expect(kept).to.have.length(10)
    expect(kept[0]!.superseded_at).to.equal(scene.clock - 48 * 3600)
  })
})

describe('a record from several sources', () => {
  let scene: Scene
  beforeEach(async () => {
    scene = await openScene()
  })
  afterEach(() => scene.close())
  const url = 'https://a.example.com/data'
  const priced = (payTo: string, amount = '10000') => ({
    accepts: [
      { scheme: 'exact', network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', amount, payTo },
    ],
  })
  const OTHER = '0x00000000000000000000000000000000000000b2'

  it('takes each field from the first source that has it', async () => {
    scene.sources.bazaar.push(
      item('HTTPS://A.example.com:443/data', {
        description: '',
        tags: ['Data'],
        quality: { l30DaysTotalCalls: 7, l30DaysUniquePayers: 2 },
      }),
    )
    scene.sources.second.push(
      item(`${url}#x`, {
        description: 'The data',
        serviceName: 'Data',
        tags: ['more'],
        quality: { l30DaysTotalCalls: 900 },
        ...priced(PAYEE, '99'),
      }),
    )
    await scene.run('sweep')
    const record = await scene.record(url)
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
    scene.sources.second.push(item(url, { lastUpdated: 1 }))
    await scene.run('sweep')
    scene.clock += 6 * 3600
    scene.sources.bazaar.push(item(url, { firstSeen: 5, lastUpdated: 4_102_444_800 }))
    await scene.run('sweep')
    const record = await scene.record(url)
    expect(record.first_seen).to.equal('2026-11-20T12:00:00Z')
    expect(record.sources).to.deep.equal([
      { id: 'bazaar', seen: '2026-11-20T18:00:00Z', updated: '2026-11-20T18:05:00Z' },
      { id: 'second', seen: '2026-11-20T12:00:00Z', updated: '1970-01-01T00:00:01Z' },
    ])
  })

  it('is flagged for 30 days when its payTo address changes, but not when its price changes', async () => {
    scene.sources.bazaar.push(item(url))
    await scene.run('sweep')
    const flagsAfter = async (days: number, more: object): Promise<readonly string[]> => {
      scene.clock += days * 86_400
      scene.sources.bazaar[0] = item(url, more)
      await scene.run('sweep')
      return (await scene.record(url)).flags
    }
    expect(await flagsAfter(1, priced(PAYEE.toLowerCase(), '20000'))).to.deep.equal([])
    expect(await flagsAfter(1, { accepts: [] })).to.deep.equal(['no_prices'])
    expect(await flagsAfter(1, priced(PAYEE))).to.deep.equal([])
    expect(await flagsAfter(1, priced(OTHER))).to.deep.equal(['payto_changed'])
    expect(await flagsAfter(29, { ...priced(OTHER), description: 'a' })).to.deep.equal(['payto_changed'])
    expect(await flagsAfter(1, { ...priced(OTHER), description: 'b' })).to.deep.equal([])
  })
})
