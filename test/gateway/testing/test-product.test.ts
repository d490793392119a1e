import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { definePlugin, Reply, Unavailable } from 'tollgate/plugin'
import { openTestProduct, TestClock } from 'tollgate/testing'
import { openCatalog, PRICED, thing } from '../../support/catalog.ts'

const START = '2026-06-01T12:00:00Z'

/** Fetches a price in a job, keeps it in a table, and sells it with a delay of a minute. */
const quotes = definePlugin({
  name: 'quotes',
  migrations: [
    (db) => db.schema.createTable('quotes_prices', (table) => void (table.bigInteger('at'), table.double('price'))),
  ],
  settings: { type: 'object', properties: { factor: { type: 'number', default: 1 }, url: { type: 'string' } } },
  setup: ({ db, fetch, now, settings }) => {
    const newest = async (asOf: Date) =>
      db<{ at: number; price: number }>('quotes_prices').where('at', '<=', asOf.getTime()).orderBy('at', 'desc').first()
    return {
      handlers: {
        async getThing({ asOf }) {
          const row = await newest(asOf)
          if (!row) throw new Unavailable('There is no price yet.')
          return { price: row.price * settings.factor }
        },
        followThing: ({ stream }) => Reply.events(events(stream?.lastEventId ?? 'first')),
      },
      jobs: [
        {
          name: 'read',
          everySeconds: 60,
          async run() {
            const answer = (await (await fetch(settings.url ?? '')).json()) as { readonly price: number }
            await db('quotes_prices').insert({ at: now().getTime(), price: answer.price })
          },
        },
      ],
      freshness: async (_, asOf) => {
        const row = await newest(asOf)
        return { newest: row ? new Date(row.at) : null, sources: 1, coverage: 1 }
      },
      facts: async () => ({ rows: (await db('quotes_prices')).length }),
    }
  },
})

async function* events(id: string) {
  yield { id, data: 1 }
}

describe('openTestProduct', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-product-'))
  const { operations, ...document } = thing(
    'quotes',
    { fresh: { newest_seconds: 600 }, max_freshness_seconds: 60 },
    { settings: { url: 'https://prices.example/now', factor: 2 } },
  )
  const followThing = { route: 'GET /v1/quotes/live', summary: 'Prices.', price: 'free' }
  const catalog = openCatalog({
    'other.json': thing('other', { route: 'GET /v1/other' }),
    'quotes.json': { ...document, operations: { ...operations, followThing } },
  })
  const environment = { CATALOG_DIR: catalog.catalogDir, SCHEMA_DIR: catalog.schemaDir }
  after(() => {
    rmSync(folder, { recursive: true })
    catalog.close()
  })

  it('runs jobs with the fetch of the test, on a clock that the test moves', async () => {
    const asked: string[] = []
    const fetch = ({ url, headers }: Request): Response => {
      asked.push(`${url} ${headers.get('user-agent')}`)
      return Response.json({ price: asked.length })
    }
    const product = await openTestProduct(quotes, { clock: new TestClock(START), fetch, environment })
    const refused = await product.call('getThing').catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(Unavailable)
    await product.run('read')
    expect(await product.freshness('getThing'), 'callers see it a minute later').to.deep.include({ newest: null })
    product.clock.advance({ seconds: 60 })
    await product.run('read')
    expect(await product.call('getThing')).to.deep.equal({ price: 2 })
    expect(await product.call('getThing', { asOf: product.clock.now() })).to.deep.equal({ price: 4 })
    expect(await product.freshness('getThing')).to.deep.include({ newest: new Date(START) })
    expect((await product.facts()).rows).to.equal(2)
    expect(asked).to.deep.equal(Array(2).fill('https://prices.example/now tollgate/0.1'))
    await product.close()
  })

  it('opens no other product, keeps its tables where the test says, and reads events', async () => {
    const options = { clock: new TestClock(START), database: { file: join(folder, 'quotes.sqlite') }, environment }
    const first = await openTestProduct(quotes, { ...options, fetch: () => Response.json({ price: 5 }) })
    expect(first.edition.catalog.products.map(({ id }) => id)).to.deep.equal(['quotes'])
    await first.run('read')
    await first.close()
    const second = await openTestProduct(quotes, { ...options, settings: { factor: 10 } })
    expect(await second.call('getThing', { asOf: options.clock.now() })).to.deep.equal({ price: 50 })
    const ids: unknown[] = []
    for await (const { id } of await second.call('followThing', { stream: { lastEventId: '7' } })) ids.push(id)
    expect(ids).to.deep.equal(['7'])
    await second.close()
  })

  it('says what is missing: the answer to a request, a job, the catalog file, a valid setting', async () => {
    const product = await openTestProduct(quotes, { environment })
    const messageOf = async (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => expect.fail('did not fail'),
        (error: Error) => error.message,
      )
    expect(await messageOf(product.run('read'))).to.equal(
      'Nothing answers GET https://prices.example/now in this test. Pass fetch to openTestProduct.',
    )
    expect(await messageOf(product.run('write'))).to.equal('There is no job write. There are: read.')
    await product.close()
    const nameless = definePlugin({ name: 'nameless', setup: () => ({ handlers: {} }) })
    const missing = await openTestProduct(nameless, { environment })
    expect(missing.issues[0]?.message).to.contain('has no file with "plugin": "nameless"')
    await missing.close()
    const wrong = await openTestProduct(quotes, { environment, settings: { factor: 'much' as never } })
    expect(await messageOf(wrong.call('getThing'))).to.match(/The product quotes cannot be opened:\n.*factor/)
    await wrong.close()
    expect(() => new TestClock('noon')).to.throw(RangeError, 'noon is not a time. Write it as 2026-06-01T12:00:00Z.')
  })

  it('refuses an answer that breaks its schema', async () => {
    const wrong = definePlugin({ name: 'quotes', setup: () => ({ handlers: { getThing: () => ({ prize: 1 }) } }) })
    catalog.write('quotes.json', thing('quotes', { response: PRICED }))
    const product = await openTestProduct(wrong, { environment })
    expect(await product.call('getThing').catch((error: unknown) => error)).to.include({ code: 'product_failed' })
    await product.close()
  })
})
