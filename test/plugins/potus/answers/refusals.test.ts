/** A refused query costs nothing: the same payment buys a valid one afterwards. */
import { expect } from 'chai'
import { proves } from '../../../requirements.ts'
import { ask, json, payment, send } from '../../../support/agent.ts'
import { openSchema, type Schema } from '../../../contracts/postgres.ts'
import { feedCatalog, openFeedGateway, type FeedGateway } from '../feed-gateway.ts'

/** Invalid queries and a valid one for every priced route. */
const QUERIES: Readonly<Record<string, { readonly invalid: readonly string[]; readonly valid: string }>> = {
  live: {
    invalid: [
      'plan=live-24h',
      'limit=0',
      'limit=101',
      'limit=5&limit=6',
      'since_seq=-1',
      'since_seq=1.5',
      'since_seq=99999999999999999999',
      'kinds=nonsense',
      'topics=weather',
      'min_relevance=1.1',
      'min_relevance=NaN',
    ],
    valid: 'limit=1&since_seq=0&kinds=social,action&topics=trade&min_relevance=0.1',
  },
  'events/1m': {
    invalid: ['from=yesterday', 'to=1e300', 'limit=1441', 'include_empty=maybe', 'cursor=zz', 'from=0', 'kinds=social'],
    valid: 'limit=1440&include_empty=true',
  },
  'events/15m': {
    invalid: ['from=2026-02-30', 'limit=673', 'limit=x', 'cursor=%00', 'from=0'],
    valid: 'limit=672',
  },
  archive: {
    invalid: [
      'from=-1',
      'from=2026-03-01&to=2026-02-01',
      'limit=501',
      'order=up',
      'kinds=social.nothing',
      'source=wh.nothing',
      'entity=place%3AMX%00',
      `entity=${'x'.repeat(121)}`,
      `q=${'x'.repeat(201)}`,
      'cursor=bm90IG91cnM',
      'price=0',
    ],
    valid: 'limit=500&order=desc&kinds=social&source=truth.mirror&topics=trade&q=sample',
  },
  entities: {
    invalid: ['from=2026-01-01&to=2026-02-02', 'type=thing', 'limit=0', 'min_count=0', `q=${'x'.repeat(101)}`, 'q=%00'],
    valid: 'type=place&limit=2&min_count=1&q=a',
  },
  feeds: { invalid: ['status=fine', 'token=1'], valid: 'status=disabled' },
}

/** As shipped, an empty answer of these is sold. Here it is not, so that a refusal shows that it is marked. */
function sellNothingEmpty(name: string, document: Readonly<Record<string, unknown>>): void {
  if (name !== 'potus.json') return
  const operations = document['operations'] as Record<string, Record<string, unknown>>
  for (const id of ['getPotusLive', 'getPotusFeeds']) operations[id]!['sell_empty'] = false
}

for (const database of ['SQLite', 'PostgreSQL'] as const)
  describe(`the feed on ${database}`, () => {
    let schema: Schema | null = null
    let gateway: FeedGateway
    before(async function () {
      if (database === 'PostgreSQL') {
        schema = await openSchema()
        if (!schema) {
          process.stdout.write('    (skipped: no PostgreSQL server answers)\n')
          this.skip()
        }
      }
      gateway = await openFeedGateway(feedCatalog(sellNothingEmpty), {}, schema ? { DATABASE_URL: schema.url } : {})
    })
    after(async () => {
      await gateway?.close()
      await schema?.drop()
    })
    const saleCount = (): number => gateway.settler.transfers.length

    for (const [route, { invalid, valid }] of Object.entries(QUERIES))
      it(`refuses an invalid query of ${route}, names the field and charges nothing`, async () => {
        proves('invalid-422')
        const url = `${gateway.url}/v1/potus/${route}`
        const before = saleCount()
        const header = await payment(url, gateway.wallet)
        for (const query of invalid) {
          const response = await send(`${url}?${query}`, header)
          const body = await json(response)
          expect(response.status, `${query}: ${JSON.stringify(body)}`).to.equal(422)
          const [{ loc }] = body['detail'] as [{ loc: string[] }]
          const named = query.split('&').map((pair) => pair.split('=')[0])
          expect(loc[0], query).to.equal('query')
          expect([...named, 'cursor'], query).to.include(loc[1])
        }
        expect(saleCount()).to.equal(before)
        const response = await send(`${url}?${valid}`, header)
        expect(response.status, await response.clone().text()).to.equal(200)
        expect(await json(response)).to.include({ schema: 'potus/1', data_mode: 'sample' })
        expect(saleCount()).to.equal(before + 1)
      })

    it('does not sell an answer without a match, and a subscriber gets it empty', async () => {
      const before = saleCount()
      for (const query of [
        'archive?q=nosuchword',
        'live?since_seq=999999999',
        'feeds?status=failing',
        'entities?q=nosuchname',
      ]) {
        const url = `${gateway.url}/v1/potus/${query}`
        const response = await send(url, await payment(url, gateway.wallet))
        expect([response.status, (await json(response))['code']], query).to.deep.equal([404, 'empty_not_sold'])
      }
      expect(saleCount()).to.equal(before)
      const token = await gateway.token('live/24h')
      const archive = `${gateway.url}/v1/potus/archive?q=nosuchword`
      const empty = await ask(archive, { headers: { 'x-service-token': token } })
      expect(await json(empty)).to.include({ count: 0, next_cursor: null })
    })

    it('shows free statistics that are a day old, like the index', async () => {
      const { products } = await json(await ask(`${gateway.url}/v1/stats`))
      const { newest } = (products as Record<string, { newest: string }>)['potus'] ?? { newest: '' }
      const index = await json(await ask(`${gateway.url}/v1/potus`))
      expect(newest).to.equal(index['newest_available_at'])
      expect(Date.parse(newest)).to.be.at.most(gateway.now().getTime() - 86_400_000)
    })

    it('answers 404 for an unknown event without charging, and the same payment then buys a known one', async () => {
      const url = `${gateway.url}/v1/potus/event`
      const before = saleCount()
      const header = await payment(`${url}/latest`, gateway.wallet)
      const unknown = ['evt_0000000000000000', 'seq:999999999999999', 'seq:99999999999999999999', 'EVT', "' or 1=1 --"]
      for (const selector of unknown) {
        const response = await send(`${url}/${encodeURIComponent(selector)}`, header)
        expect(response.status, selector).to.equal(404)
        expect((await json(response))['code'], selector).to.equal('not_found')
      }
      expect(saleCount()).to.equal(before)
      const response = await send(`${url}/latest`, header)
      expect(response.status).to.equal(200)
      expect(saleCount()).to.equal(before + 1)
      const { event } = (await response.json()) as { event: { id: string; seq: number } }
      const token = await gateway.token('live/24h')
      for (const selector of [event.id, `seq:${event.seq}`]) {
        const same = await ask(`${url}/${selector}`, { headers: { 'x-service-token': token } })
        expect(((await same.json()) as { event: object }).event, selector).to.deep.equal(event)
      }
    })
  })
