/** The scripted venues tell the truth in the shapes of the real ones, and fail in every way they claim. */
import { existsSync, readFileSync } from 'node:fs'
import { request as rawRequest } from 'node:http'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { readBook } from '../../plugins/funding/book-polls.ts'
import { VENUES as PERPETUALS } from '../../plugins/funding/venues/funding-venues.ts'
import { type Settings, venuesOf } from '../../plugins/market/symbols.ts'
import { type VenueName, VENUES as SPOT } from '../../plugins/market/venues/bar-venues.ts'
import { parseBody } from '../../plugins/potus/sources/parsers.ts'
import { readSources } from '../../plugins/potus/sources/source.ts'
import { RequestError, requestJson } from '../../plugins/lib/feeds/requests.ts'
import { FAULTS, type FaultName } from './faults.ts'
import { CONTRACTS, type PerpetualVenue } from './funding/funding-market.ts'
import { SYMBOLS, VENUE_DEVIATION } from './scripted-market.ts'
import { openVenueKit, type VenueKit } from './venue-kit.ts'

const MARKET = resolve(import.meta.dirname, '../../catalog/market.json')
const RECORDED = resolve(import.meta.dirname, '../../../shared/data/exchanges')
const SIGNAL = new AbortController().signal
const HOUR = 3600
const BITCOIN: Readonly<Record<VenueName, string>> = {
  coinbase: 'BTC-USD',
  binance: 'BTCUSDT',
  binance_us: 'BTCUSD',
  kraken: 'XBTUSD',
  bitstamp: 'btcusd',
  bitfinex: 'tBTCUSD',
}

describe('the scripted venues', () => {
  let kit: VenueKit
  before(async () => {
    kit = await openVenueKit()
  })
  afterEach(() => kit.faults.clear())
  after(() => kit.close())

  const now = (): number => Math.floor(kit.clock.now() / 1000)
  const read = (url: string, body?: object): Promise<unknown> =>
    requestJson({ url, label: url, body, fetch, signal: SIGNAL })
  const candles = (start: number, end: number): string =>
    `${kit.spotUrls.coinbase}/products/BTC-USD/candles?granularity=60&start=${start}&end=${end}`

  it('give the adapters of bars the truth, but for a small deviation of each venue', async () => {
    const end = Math.floor(now() / 60) * 60
    for (const [name, { create }] of Object.entries(SPOT)) {
      const venue = create({ url: kit.spotUrls[name as VenueName], fetch, now })
      const { bars, rejected } = await venue.minutes(BITCOIN[name as VenueName], end - 2 * HOUR, end, SIGNAL)
      expect(rejected, name).to.deep.equal([])
      expect(bars.count, name).to.equal(120)
      for (let i = 0; i < bars.count; i += 1) {
        const truth = kit.market.bar('BTC-USD', bars.time[i]!)
        const dollars = name === 'binance' ? kit.market.price('USDT-USD', bars.time[i]! * 1000) : 1
        expect(bars.close[i]! * dollars, `${name} at ${bars.time[i]}`).to.be.closeTo(
          truth.close,
          truth.close * (VENUE_DEVIATION + 0.0003),
        )
      }
    }
  })

  it('give the adapters of order books a sound book around the true price', async () => {
    const codes: Readonly<Record<string, string>> = {
      coinbase: 'ETH-USD',
      binance: 'ETHUSDT',
      binance_us: 'ETHUSD',
      kraken: 'ETHUSD',
      bitstamp: 'ethusd',
      bitfinex: 'tETHUSD',
    }
    for (const [name, { create }] of Object.entries(SPOT)) {
      const venue = create({ url: kit.spotUrls[name as VenueName], fetch, now })
      const { book, date } = await venue.book(codes[name]!, SIGNAL)
      const { bids, asks } = book
      expect(date, name).to.equal(Math.floor(now()))
      const price = kit.market.price('ETH-USD', kit.clock.now())
      const dollars = name === 'binance' ? kit.market.price('USDT-USD', kit.clock.now()) : 1
      expect(((bids[0]![0] + asks[0]![0]) / 2) * dollars, name).to.be.closeTo(price, price * 0.001)
    }
  })

  it('keep to the limits of the real pages: 300, 1,000, 720 and 10,000 rows', async () => {
    const end = Math.floor(now() / 60) * 60
    const tooMuch = await fetch(candles(end - 301 * 60, end))
    expect(tooMuch.status).to.equal(400)
    expect(await tooMuch.json())
      .to.have.property('message')
      .that.includes('exceeds 300')
    const binance = (await read(
      `${kit.spotUrls.binance}/api/v3/klines?symbol=BTCUSDT&interval=1m&startTime=${(end - 5000 * 60) * 1000}&limit=2000`,
    )) as unknown[]
    expect(binance).to.have.length(1000)
    const kraken = (await read(`${kit.spotUrls.kraken}/0/public/OHLC?pair=XBTUSD&interval=1&since=1`)) as {
      result: { XXBTZUSD: [number][]; last: number }
    }
    expect(kraken.result.XXBTZUSD).to.have.length(720)
    // The last row is the open minute, and `last` is the one before it.
    expect(kraken.result.XXBTZUSD.at(-1)![0]).to.equal(end)
    expect(kraken.result.last).to.equal(end - 60)
    const bitstamp = await fetch(`${kit.spotUrls.bitstamp}/api/v2/ohlc/btcusd/?step=60&limit=1001`)
    expect(bitstamp.status).to.equal(400)
    const bitfinex = (await read(
      `${kit.spotUrls.bitfinex}/v2/candles/trade:1m:tBTCUSD/hist?limit=20000&start=${(end - 11_000 * 60) * 1000}`,
    )) as [number][]
    expect(bitfinex).to.have.length(10_000)
    expect(bitfinex[0]![0]).to.be.above(bitfinex[1]![0])
  })

  it('refuse an unknown symbol as the real ones do', async () => {
    const answers = await Promise.all(
      [
        `${kit.spotUrls.coinbase}/products/NO-USD/candles?granularity=60`,
        `${kit.spotUrls.binance}/api/v3/klines?symbol=NOUSDT&interval=1m`,
        `${kit.spotUrls.kraken}/0/public/OHLC?pair=NOUSD`,
        `${kit.spotUrls.bitstamp}/api/v2/ohlc/nousd/?step=60&limit=1`,
        `${kit.spotUrls.bitfinex}/v2/candles/trade:1m:tNOUSD/hist`,
      ].map(async (url) => {
        const response = await fetch(url)
        return [response.status, await response.json()] as const
      }),
    )
    expect(answers).to.deep.equal([
      [404, { message: 'NotFound' }],
      [400, { code: -1121, msg: 'Invalid symbol.' }],
      [200, { error: ['EQuery:Unknown asset pair'] }],
      [404, { status: 'error', reason: 'Currency pair not found', code: '404.002' }],
      [200, []],
    ])
  })

  it('limit requests as the real ones do, if a test asks for that', async () => {
    const strict = await openVenueKit({ limits: 1 })
    try {
      const url = `${strict.spotUrls.coinbase}/products/BTC-USD/ticker`
      const statuses = await Promise.all(Array.from({ length: 40 }, async () => (await fetch(url)).status))
      expect(statuses).to.include(429)
      expect(statuses.filter((status) => status === 200).length).to.be.at.least(15)
    } finally {
      await strict.close()
    }
  })

  it('give the parsers of funding rates every contract, its rate and its interval', async () => {
    for (const [name, venue] of Object.entries(PERPETUALS)) {
      const requests = Object.entries(venue.requests)
      const url = kit.perpetualUrls[name as PerpetualVenue]
      const payloads = await Promise.all(requests.map(([, { path, body }]) => read(url + path, body)))
      const parsed = venue.parse(Object.fromEntries(requests.map(([key], i) => [key, payloads[i]])), now())
      const linear = parsed.rates.filter(({ contract }) => contract === 'linear')
      expect(linear.length, name).to.equal(CONTRACTS.length - (name === 'bitmex' ? 1 : 0))
      for (const rate of linear) {
        const symbol = `${rate.symbol}-USD`
        const next = kit.funding.next(name as PerpetualVenue, symbol, kit.clock.now())
        expect(rate.intervalHours, `${name} ${symbol}`).to.equal(kit.funding.hours(name as PerpetualVenue, symbol))
        expect(Number(rate.rate), `${name} ${symbol}`).to.be.closeTo(
          kit.funding.rate(name as PerpetualVenue, symbol, next),
          1e-6,
        )
      }
    }
  })

  it('give the readers of order books the book of every contract, in coins', async () => {
    const sizes = new Map<string, number[]>()
    for (const [name, venue] of Object.entries(PERPETUALS)) {
      const url = kit.perpetualUrls[name as PerpetualVenue]
      const requests = Object.entries(venue.requests)
      const payloads = await Promise.all(
        requests.map(async ([key, { path, body }]) => [key, await read(url + path, body)] as const),
      )
      for (const rate of venue.parse(Object.fromEntries(payloads), now()).rates) {
        if (rate.contract !== 'linear' || !(`${rate.symbol}-USD` in SYMBOLS)) continue
        const { path, body } = venue.book.request(rate.instrument)
        const coins = venue.book.inContracts ? (rate.contractSize ?? NaN) : 1
        const { bids } = readBook(venue, rate, coins, await read(url + path, body))
        sizes.set(rate.symbol, [...(sizes.get(rate.symbol) ?? []), bids.reduce((sum, [, size]) => sum + size, 0)])
      }
    }
    // The market is the same everywhere, so a venue that counts in contracts shows as many coins as the others.
    for (const [symbol, [first = NaN, ...others]] of sizes)
      for (const size of others) expect(size / first, symbol).to.be.within(0.5, 2)
    expect(sizes.size).to.equal(CONTRACTS.filter((symbol) => symbol in SYMBOLS).length)
  })

  it('give the parsers of the POTUS feeds the news, each with its time', async () => {
    for (const source of readSources()) {
      const url = kit.sourceUrls[source.id]
      if (url === undefined || source.id === 'fed.calendar') continue
      const response = await fetch(url, { headers: { 'user-agent': source.userAgent ?? 'tollgate' } })
      expect(response.status, source.id).to.equal(200)
      const body = Buffer.from(await response.arrayBuffer())
      const { items, leftOut } = await parseBody(source, body, kit.clock.now())
      expect(leftOut, source.id).to.equal(0)
      expect(items.length, source.id).to.be.at.least(source.id === 'fr.pi' ? 0 : 10)
      const newest = items.at(-1)
      if (newest) expect(newest.publishedAt, source.id).to.be.at.most(kit.clock.now() + 24 * HOUR * 1000)
    }
  })

  it('hold an archive of more than 30,000 posts, and pages of older news', async () => {
    const archive = (await read(kit.sourceUrls['truth.archive']!)) as { id: string; created_at: string }[]
    expect(archive.length).to.be.above(30_000)
    const [{ id, created_at: at }] = archive as [{ id: string; created_at: string }]
    expect(Number(BigInt(id) >> 16n)).to.equal(Date.parse(at))
    const page = async (paged: number): Promise<string[]> => {
      const text = await (await fetch(`${kit.sourceUrls['wh.news']}?paged=${paged}`)).text()
      return [...text.matchAll(/<guid isPermaLink="false">([^<]+)/g)].map((match) => match[1]!)
    }
    const [first, second] = [await page(1), await page(2)]
    expect(first).to.have.length(30)
    expect(second).to.have.length(30)
    expect(first).not.to.include.members(second.slice(0, 1))
    expect((await fetch(`${kit.sourceUrls['wh.news']}?paged=100000`)).status).to.equal(404)
  })

  it('answer 304 to a client that has the body', async () => {
    const first = await fetch(kit.sourceUrls['truth.mirror']!)
    await first.arrayBuffer()
    const headers = { 'if-none-match': first.headers.get('etag')! }
    expect((await fetch(kit.sourceUrls['truth.mirror']!, { headers })).status).to.equal(304)
  })

  it('date their answers by the clock of the test', async () => {
    const response = await fetch(candles(now() - 600, now()))
    await response.arrayBuffer()
    expect(response.headers.get('date')).to.equal(new Date(kit.clock.now()).toUTCString())
    kit.faults.start('clock_behind', { venue: 'coinbase', seconds: 45 })
    const behind = await fetch(candles(now() - 600, now()))
    const rows = (await behind.json()) as [number][]
    expect(behind.headers.get('date')).to.equal(new Date(kit.clock.now() - 45_000).toUTCString())
    // Its newest minute is one that has not begun to be the newest here.
    expect(rows[0]![0]).to.equal(Math.floor((now() - 45) / 60) * 60)
  })

  describe('fail', () => {
    /** What a careful client gets: rows, or why it got none. */
    async function outcome(name: FaultName): Promise<string> {
      const stop = kit.faults.start(name, { venue: 'coinbase', symbol: 'BTC-USD', route: 'candles' })
      const slow = name === 'silent' || name === 'slow_drip'
      const within = AbortSignal.timeout(slow ? 200 : 10_000)
      try {
        const end = Math.floor(now() / 60) * 60
        const url = candles(end - 30 * 60, end - 60)
        const rows = (await requestJson({ url, label: 'coinbase', fetch, signal: within })) as (number | null)[][]
        const truth = [...Array(30).keys()].map((i) => kit.market.barAt('coinbase', 'BTC-USD', end - 60 - i * 60))
        const expected = truth.map(({ time, low, high, open, close, volume }) => [time, low, high, open, close, volume])
        return JSON.stringify(rows) === JSON.stringify(expected) ? 'the truth' : 'other rows'
      } catch (error) {
        if (error instanceof RequestError) return error.status === 0 ? 'no answer' : String(error.status)
        return within.aborted ? 'no answer in time' : String(error)
      } finally {
        stop()
      }
    }

    const EXPECTED: Readonly<Partial<Record<FaultName, string>>> = {
      silent: 'no answer in time',
      slow_drip: 'no answer in time',
      rate_limited: '429',
      banned: '418',
      restricted: '451',
      forbidden: '403',
      server_error: '500',
      unavailable: '503',
      redirect: '302',
      delisted: '404',
      wrong_type: 'the truth',
      gzip_unasked: 'the truth',
      clock_ahead: 'the truth',
    }
    const BROKEN: readonly FaultName[] = [
      'reset',
      'tls_failure',
      'truncated',
      'maintenance',
      'bad_gzip',
      'truncated_json',
      'huge_body',
    ]
    for (const [name, meaning] of Object.entries(FAULTS) as [FaultName, string][])
      it(`by ${name}: ${meaning}`, async () => {
        if (['gap', 'price_factor', 'frozen', 'flat', 'clock_behind', 'unfinished'].includes(name)) {
          kit.faults.start(name, { venue: 'bitstamp' })
          kit.clock.advance(120)
          kit.faults.clear()
        }
        if (['gap', 'price_factor', 'frozen', 'flat'].includes(name)) {
          // They begin with the minute in which they were switched on.
          const stop = kit.faults.start(name, { venue: 'coinbase' })
          kit.clock.advance(180)
          const end = Math.floor(now() / 60) * 60
          const rows = (await read(candles(end - 600, end - 60))) as [number, number, number, number, number][]
          stop()
          const newest = kit.market.barAt('coinbase', 'BTC-USD', end - 60)
          if (name === 'gap' || name === 'frozen') expect(rows[0]![0]).to.be.below(end - 60)
          else if (name === 'price_factor') expect(rows[0]![4] / newest.close).to.be.closeTo(1.05, 1e-9)
          else expect(rows[0]!.slice(1, 5)).to.deep.equal(Array(4).fill(rows[1]![4]))
          return
        }
        const found = await outcome(name)
        if (name === 'clock_behind') return expect(found).to.equal('the truth')
        expect(found).to.equal(EXPECTED[name] ?? (BROKEN.includes(name) ? 'no answer' : 'other rows'))
      })

    it('only where the fault applies, and only as often as it says', async () => {
      kit.faults.start('server_error', { venue: 'coinbase', symbol: 'BTC-USD', route: 'candles', times: 1 })
      const url = candles(now() - 600, now())
      expect((await fetch(url.replace('BTC-USD', 'ETH-USD'))).status).to.equal(200)
      expect((await fetch(`${kit.spotUrls.coinbase}/products/BTC-USD/ticker`)).status).to.equal(200)
      expect((await fetch(url)).status).to.equal(500)
      expect((await fetch(url)).status).to.equal(200)
    })

    it('a list of all symbols loses the one that is delisted', async () => {
      kit.faults.start('delisted', { venue: 'dydx', symbol: 'BTC-USD' })
      const { markets } = (await read(`${kit.perpetualUrls.dydx}/v4/perpetualMarkets`)) as { markets: object }
      expect(markets).to.have.property('ETH-USD')
      expect(markets).not.to.have.property('BTC-USD')
    })

    it('with Retry-After where the real venue sends it', async () => {
      kit.faults.start('rate_limited', { venue: 'binance', seconds: 17 })
      const response = await fetch(`${kit.spotUrls.binance}/api/v3/depth?symbol=BTCUSDT`)
      expect([response.status, response.headers.get('retry-after')]).to.deep.equal([429, '17'])
    })

    it('with a gzip body that nobody accepted', async () => {
      kit.faults.start('gzip_unasked', { venue: 'kraken' })
      const encoding = await new Promise((resolvePromise, reject) => {
        rawRequest(`${kit.spotUrls.kraken}/0/public/Time`, (response) => {
          response.resume()
          resolvePromise(response.headers['content-encoding'])
        })
          .on('error', reject)
          .end()
      })
      expect(encoding).to.equal('gzip')
    })
  })

  describe('have the shapes of recorded payloads', () => {
    before(function () {
      if (existsSync(RECORDED)) return
      process.stdout.write('      (skipped: the recordings of the venues are not on this machine)\n')
      this.skip()
    })
    const recorded = (path: string): unknown => JSON.parse(readFileSync(resolve(RECORDED, path), 'utf8'))
    /** The type of each value, one level deep. */
    const shape = (row: unknown): unknown =>
      Array.isArray(row)
        ? row.map((value) => typeof value)
        : Object.fromEntries(Object.entries(row as object).map(([name, value]) => [name, typeof value]))
    /** Every field that we serve is a field of the recording, of the same type. */
    const fits = (ours: unknown, theirs: unknown): void => {
      const known = shape(theirs) as Record<string, string>
      for (const [name, type] of Object.entries(shape(ours) as Record<string, string>))
        if (known[name] !== undefined) expect(type, name).to.equal(known[name])
      expect(Object.keys(known).filter((name) => name in (ours as object)).length).to.be.at.least(4)
    }

    it('of Coinbase and Binance, row by row', async () => {
      const coinbase = recorded('ccxt-static/coinbaseexchange_fetchOHLCV.json') as { httpResponse: unknown[][] }
      const binance = recorded('nautilus/binance__spot_http_json_klines_response.json') as unknown[][]
      const ours = (await read(candles(now() - 600, now()))) as unknown[][]
      expect(shape(ours[0])).to.deep.equal(shape(coinbase.httpResponse[0]))
      const klines = (await read(
        `${kit.spotUrls.binance}/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=2`,
      )) as unknown[][]
      expect(shape(klines[0])).to.deep.equal(shape(binance[0]))
    })

    it('of the venues for perpetual contracts, field by field', async () => {
      const { perpetualUrls: urls } = kit
      const bitmex = (await read(`${urls.bitmex}/api/v1/instrument/active`)) as unknown[]
      fits(bitmex[0], recorded('nautilus/bitmex__http_get_instrument_xbtusd.json'))
      const bybit = (await read(`${urls.bybit}/v5/market/tickers?category=linear`)) as { result: { list: unknown[] } }
      fits(bybit.result.list[0], (recorded('nautilus/bybit__ws_ticker_linear.json') as { data: unknown }).data)
      const dydx = (await read(`${urls.dydx}/v4/perpetualMarkets`)) as { markets: Record<string, unknown> }
      const theirs = recorded('nautilus/dydx__http_get_perpetual_markets.json') as {
        result: { markets: Record<string, unknown> }
      }
      fits(dydx.markets['BTC-USD'], theirs.result.markets['BTC-USD'])
      const kraken = (await read(`${urls.kraken}/derivatives/api/v3/tickers`)) as { tickers: unknown[] }
      fits(
        kraken.tickers[0],
        (recorded('nautilus/kraken__http_futures_tickers.json') as { tickers: unknown[] }).tickers[0],
      )
      const gate = (await read(`${urls.gate}/api/v4/futures/usdt/contracts`)) as unknown[]
      fits(gate[0], (recorded('cryptofeed/gate_futures_usdt_contracts_2023-05-24.json') as { body: unknown[] }).body[0])
      const paid = (await read(`${urls.hyperliquid}/info`, {
        type: 'fundingHistory',
        coin: 'BTC',
        startTime: kit.clock.now() - 7_200_000,
      })) as unknown[]
      expect(shape(paid[0])).to.deep.equal(
        shape((recorded('nautilus/hyperliquid__http_funding_history.json') as unknown[])[0]),
      )
    })
  })

  it('list every collected symbol of the catalog at the venues that it names, two for the present and for the past', async () => {
    const { settings } = JSON.parse(readFileSync(MARKET, 'utf8')) as { settings: Settings }
    const collected = settings.symbols.filter(({ venues }) => venues !== undefined)
    expect(collected.map(({ symbol }) => symbol)).to.deep.equal(Object.keys(SYMBOLS).slice(0, -1))
    const end = Math.floor(now() / 60) * 60
    for (const symbol of collected) {
      const { live, backfill } = venuesOf(symbol, settings)!
      expect(Math.min(live.length - 1, backfill.length), symbol.symbol).to.be.at.least(2)
      for (const name of Object.keys(symbol.venues) as VenueName[]) {
        const venue = SPOT[name].create({ url: kit.spotUrls[name], fetch, now })
        const { bars } = await venue.minutes(symbol.venues[name]!, end - 600, end, SIGNAL)
        expect(bars.count, `${symbol.symbol} at ${name}`).to.be.within(8, 10)
        expect(bars.close[0], symbol.symbol).to.be.closeTo(
          kit.market.bar(symbol.symbol, bars.time[0]!).close,
          bars.close[0]! / 200,
        )
      }
    }
  })
})
