import { expect } from 'chai'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import market from '../../../plugins/market/index.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { closeAt, type Fault, type FakeVenue, openVenue } from './fake-venue.ts'

const START = Date.UTC(2026, 1, 1) / 1000
const HOUR = 3600
const NAMES = ['coinbase', 'bitstamp', 'bitfinex', 'kraken'] as const
type Name = (typeof NAMES)[number]
const BIT = { coinbase: 1, kraken: 4, bitstamp: 8, bitfinex: 16 }

describe('the collector of market bars', () => {
  let venues: Record<Name, FakeVenue>
  let host: PluginHost
  let clock: number
  let db: OpenDatabase
  let live: readonly Name[]

  const symbolOf = (base: string) => ({
    symbol: `${base}-USD`,
    name: base,
    aliases: [],
    session: '24x7',
    price: 1,
    volatility: 1,
    turnover: 1,
    tick: 0.01,
    venues: { coinbase: `${base}-USD`, bitstamp: `${base}usd`, bitfinex: `t${base}USD`, kraken: `${base}USD` },
    live,
    backfill: live.filter((name) => name !== 'kraken'),
  })
  const openHost = (symbols: readonly string[] = ['BTC'], disabled: readonly Name[] = []): Promise<PluginHost> =>
    openPluginHost(
      [
        {
          plugin: market,
          settings: {
            history_start: '2026-02-01T00:00:00Z',
            request_seconds: 0.5,
            symbols: symbols.map(symbolOf),
            venues: Object.fromEntries(
              NAMES.map((name) => [
                name,
                { url: venues[name].url, per_second: 1000, enabled: !disabled.includes(name) },
              ]),
            ),
          },
        },
      ],
      { dataMode: 'online', now: () => new Date(clock * 1000), db },
    )
  const bars = (from: number, to: number, asOf = clock, query: object = {}) =>
    host.call('getBars', { symbol: 'btc-usd', from, to, interval: 60, ...query }, { asOf: new Date(asOf * 1000) })
  const first = (from: number, to: number) => bars(from, to, clock, { first: true })
  const status = () => host.call('getMarketStatus', { symbol: 'BTC-USD' })
  const facts = () => host.registrations[0]!.facts!()
  /** Polls as the gateway would until `to`, every twenty seconds. */
  const pollUntil = async (to: number): Promise<void> => {
    for (; clock < to; clock = Math.min(to, clock + 20)) {
      await host.run('poll')
      await host.run('backfill')
    }
    await host.run('poll')
  }
  const startsOf = (venue: FakeVenue): string[] =>
    venue.requests.map((request) => new URL(request, 'http://v').searchParams.get('start')!.slice(0, 16))

  beforeEach(async () => {
    const opened = await Promise.all(NAMES.map(() => openVenue(() => clock)))
    venues = Object.fromEntries(NAMES.map((name, i) => [name, opened[i]!])) as Record<Name, FakeVenue>
    live = NAMES
    clock = START + 20 * HOUR + 12
    db = openDatabase({ file: ':memory:' })
    host = await openHost()
  })
  afterEach(async () => {
    await host.stop()
    await db.destroy()
    await Promise.all(NAMES.map((name) => venues[name].close()))
  })

  it('back-fills all of the past, from the newest window to the oldest', async () => {
    await host.run('backfill')
    expect(startsOf(venues.coinbase)).to.deep.equal([
      '2026-02-01T19:00',
      '2026-02-01T09:20',
      '2026-02-01T14:20',
      '2026-01-31T23:40',
      '2026-02-01T04:40',
    ])
    const seconds = venues.bitstamp.requests.map((request) =>
      Number(new URL(request, 'http://v').searchParams.get('start')),
    )
    expect(seconds).to.deep.equal([START + 19 * HOUR, START + (9 * 60 + 20) * 60, START - 20 * 60])
    const { count, close, time, open, venue } = await bars(START, START + 20 * HOUR)
    expect([venue, count]).to.deep.equal(['median', 1200])
    expect([...close]).to.deep.equal([...time].map(closeAt))
    expect(open[1]).to.equal(close[0])
  })

  it('continues an interrupted back-fill without fetching a window twice', async () => {
    const controller = new AbortController()
    venues.coinbase.onRequest = () => venues.coinbase.requests.length === 4 && controller.abort()
    await host.run('backfill', controller.signal).catch(() => undefined)
    venues.coinbase.onRequest = () => {}
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    expect((await bars(START, START + 20 * HOUR)).count).to.equal(1200)
    expect(startsOf(venues.coinbase).filter((start) => start === '2026-02-01T09:20')).to.have.length(1)
  })

  it('publishes what two venues agree on while one asks to wait, and obeys its Retry-After', async () => {
    venues.coinbase.faults.push({ status: 429, headers: { 'retry-after': '300' } })
    await host.run('backfill')
    await host.run('poll')
    expect((await bars(START, START + 20 * HOUR)).count).to.equal(1200)
    await pollUntil(clock + 290)
    expect(venues.coinbase.requests).to.have.length(1)
    await pollUntil(clock + 60)
    expect(venues.coinbase.requests.length).to.be.above(1)
    expect((await facts())['venues_failing']).to.deep.equal([])
  })

  it('remembers over a restart that a venue refuses service, and asks it again after ever longer pauses', async () => {
    venues.coinbase.broken.set('/', { status: 451 })
    await host.run('poll')
    host = await openHost()
    await pollUntil(clock + 590)
    expect(venues.coinbase.requests).to.have.length(1)
    expect((await facts())['venues_failing']).to.deep.equal(['coinbase BTC-USD 451'])
    await pollUntil(clock + 30)
    expect(venues.coinbase.requests).to.have.length(2)
    await pollUntil(clock + 1200)
    expect(venues.coinbase.requests).to.have.length(2)
    expect((await bars(START + 20 * HOUR, clock)).count).to.equal(Math.floor((clock - START - 20 * HOUR) / 60))
  })

  const HTML = { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Down for maintenance</html>' }
  for (const [failure, fault] of [
    ['an empty list', { status: 200, body: '[]' }],
    ['a page of HTML', HTML],
    ['403', { status: 403 }],
    ['500', { status: 500 }],
    ['a redirect', { status: 302, headers: { location: '/elsewhere' } }],
    ['a slow drip', { status: 200, drips: true }],
  ] as const satisfies readonly (readonly [string, Fault])[])
    it(`publishes every minute while a venue answers ${failure}, and uses the venue again soon after`, async () => {
      await host.run('backfill')
      await host.run('poll')
      const from = Math.floor(clock / 60) * 60
      venues.coinbase.broken.set('/', fault)
      await pollUntil(from + 5 * 60 + 25)
      const during = await first(from, from + 300)
      expect(during.count).to.equal(5)
      expect(new Set(during.venues)).to.deep.equal(new Set([BIT.kraken + BIT.bitstamp + BIT.bitfinex]))
      venues.coinbase.broken.clear()
      await pollUntil(clock + 660)
      expect([...(await first(clock - 120, clock)).venues!].at(-1)! & BIT.coinbase).to.equal(BIT.coinbase)
    })

  it('gets through a failure of any venue in the back-fill', async () => {
    venues.bitstamp.broken.set('/', HTML)
    await host.run('backfill')
    await host.run('poll')
    expect((await bars(START, START + 20 * HOUR)).count).to.equal(1200)
    expect((await status()).ready).to.equal(true)
  })

  it('sets a null candle aside and publishes the minute without it', async () => {
    await host.run('backfill')
    await host.run('poll')
    const minute = Math.floor(clock / 60) * 60
    venues.coinbase.change = (time, bar) => (time === minute ? { ...bar, open: null, close: null } : bar)
    await pollUntil(minute + 120 + 25)
    const { close, venues: masks } = await first(minute, minute + 60)
    expect(close[0]).to.equal(closeAt(minute))
    expect(masks![0]! & BIT.coinbase).to.equal(0)
    expect(await facts()).to.deep.include({ rejected_rows: 1, gaps: 0 })
    const [row] = (await db('market_rejected_rows')) as { venue: string; reason: string; t_open: number }[]
    expect(row).to.include({ venue: 'coinbase', reason: 'not_a_number', t_open: minute })
  })

  it('back-fills and polls one symbol while a venue has delisted another', async () => {
    host = await openHost(['DOGE', 'BTC'])
    for (const [name, text] of [
      ['coinbase', 'DOGE'],
      ['bitstamp', 'DOGE'],
      ['bitfinex', 'DOGE'],
      ['kraken', 'DOGE'],
    ] as const)
      venues[name].broken.set(text, { status: 404 })
    await pollUntil(clock + 120)
    expect((await bars(START, clock)).count).to.equal(Math.floor((clock - START) / 60))
    expect((await status()).venues!.map(({ failures }) => failures)).to.deep.equal([0, 0, 0, 0])
    const asked = venues.coinbase.asked('DOGE')
    await pollUntil(clock + 400)
    expect(venues.coinbase.asked('DOGE')).to.equal(asked)
  })

  it('back-fills the newest window of each symbol, then the others in their order, and any gap before it goes on', async () => {
    host = await openHost(['BTC', 'ETH'])
    await host.run('poll')
    // A gap of the second symbol becomes due while the first one is back-filled.
    venues.coinbase.closes.set(START + 20 * HOUR, closeAt(START + 20 * HOUR) * 1.05)
    venues.kraken.closes.set(START + 20 * HOUR, closeAt(START + 20 * HOUR) * 1.05)
    clock += 80
    await host.run('poll')
    expect((await facts())['gaps']).to.equal(2)
    clock += 70
    const asked = venues.bitstamp.requests.length
    await host.run('backfill')
    const order = venues.bitstamp.requests.slice(asked).map((request) => /ohlc\/(\w+)usd/.exec(request)![1])
    expect(order.slice(0, 2)).to.have.members(['BTC', 'ETH'])
    expect(order.slice(2)).to.deep.equal(['BTC', 'ETH', 'BTC', 'BTC', 'ETH', 'ETH'])
  })

  it('leaves out a symbol with fewer than two venues that are enabled, and collects the others', async () => {
    const settings = (disabled: readonly Name[]) => openHost(['BTC', 'ETH'], disabled)
    live = ['coinbase', 'kraken', 'bitstamp']
    host = await settings(['bitfinex'])
    await host.run('backfill')
    expect((await status()).ready).to.equal(true)
    const none = await settings(['coinbase', 'bitstamp']).catch((error: unknown) => String(error))
    expect(none).to.match(/fewer than two venues of every symbol are enabled/)
  })

  it('counts the minutes that it has no bar of', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    const whole = 20 * 60
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: whole, undecided: 0, given_up: 0 })
    await host.run('backfill')
    await host.run('poll')
    expect(await status()).to.deep.include({
      collected_from: START,
      missing_minutes: { to_fetch: 0, undecided: 0, given_up: 0 },
    })
    const minute = Math.floor(clock / 60) * 60
    venues.coinbase.change = (time, bar) =>
      time === minute ? { ...bar, close: bar.close! * 1.05, high: bar.high * 1.06 } : bar
    await pollUntil(minute + 85)
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 1, given_up: 0 })
    // Five attempts, and a sixth a day later.
    await pollUntil(minute + 3200)
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 1, given_up: 0 })
    clock += 86_400
    await pollUntil(clock + 40)
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 0, given_up: 1 })
  })

  it('asks again for a window of which no minute was agreed on', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    const windowEnd = START + 580 * 60
    venues.coinbase.change = (time, bar) =>
      time >= windowEnd ? bar : { ...bar, close: bar.close! * 1.05, high: bar.high * 1.06 }
    await host.run('backfill')
    await host.run('poll')
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 580, given_up: 0 })
    venues.coinbase.change = (_, bar) => bar
    clock += 60
    await host.run('backfill')
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 0, given_up: 0 })
    expect((await bars(START, START + 20 * HOUR)).count).to.equal(1200)
  })

  it('asks again for a window of which one venue sent an empty page', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    venues.bitstamp.faults.push({ status: 200, body: '{"data":{"pair":"BTC/USD","ohlc":[]}}' })
    await host.run('backfill')
    await host.run('poll')
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 40, given_up: 0 })
    clock += 60
    await host.run('backfill')
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 0, given_up: 0 })
    expect((await bars(START, START + 20 * HOUR)).count).to.equal(1200)
  })

  /** Makes every venue send empty pages for requests whose address contains a text. Returns the function that ends it. */
  const sendEmptyPages = (texts: Readonly<Record<Name, string>>): (() => void) => {
    const bodies = {
      coinbase: '[]',
      bitstamp: '{"data":{"pair":"BTC/USD","ohlc":[]}}',
      bitfinex: '[]',
      kraken: '{"error":[],"result":{"XXBTZUSD":[],"last":0}}',
    }
    for (const name of NAMES) venues[name].broken.set(texts[name], { status: 200, body: bodies[name] })
    return () => NAMES.forEach((name) => venues[name].broken.delete(texts[name]))
  }
  const everyPage = { coinbase: '/', bitstamp: '/', bitfinex: '/', kraken: '/' }
  /** Does something when the newest window has been fetched, before the next one is answered. */
  const afterNewestWindow = (act: () => void): void => {
    for (const name of ['coinbase', 'bitstamp'] as const)
      venues[name].onRequest = () => {
        if (venues[name].requests.length === 2) act()
      }
  }
  const nothingMissing = { to_fetch: 0, undecided: 0, given_up: 0 }

  it('loses no window while all venues send empty pages for an hour, and waits for them', async () => {
    let recover = (): void => {}
    afterNewestWindow(() => (recover = sendEmptyPages(everyPage)))
    await host.run('backfill')
    await pollUntil(clock + HOUR)
    const during = await status()
    expect([during.ready, during.settled]).to.deep.equal([false, START])
    expect(during.missing_minutes).to.deep.equal({ to_fetch: 1160, undecided: 0, given_up: 0 })
    recover()
    await pollUntil(clock + 900)
    expect(await status()).to.deep.include({ ready: true, missing_minutes: nothingMissing })
    const { count, close, time } = await first(START, START + 20 * HOUR)
    expect(count).to.equal(1200)
    expect([...close]).to.deep.equal([...time].map(closeAt))
  })

  it('asks again for a window of which all venues sent empty pages though they have bars before and after it', async () => {
    const from = START + (580 - 20) * 60
    const recover = sendEmptyPages({
      coinbase: encodeURIComponent(new Date(from * 1000).toISOString().slice(0, 16)),
      bitstamp: `start=${from}`,
      bitfinex: `start=${from}000`,
      kraken: `since=${from - 60}`,
    })
    venues.coinbase.broken.set(encodeURIComponent('2026-02-01T14:20'), { status: 200, body: '[]' })
    await host.run('backfill')
    await host.run('poll')
    expect(await status()).to.deep.include({
      ready: true,
      settled: START + 580 * 60,
      missing_minutes: { to_fetch: 0, undecided: 580, given_up: 0 },
    })
    clock += 60
    await host.run('backfill')
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 580, given_up: 0 })
    recover()
    venues.coinbase.broken.clear()
    clock += 120
    await host.run('backfill')
    expect((await status()).missing_minutes).to.deep.equal(nothingMissing)
    const { close, time } = await first(START, START + 20 * HOUR)
    expect([...close]).to.deep.equal([...time].map(closeAt))
  })

  it('waits for no window for ever of which all venues send empty pages, and says that it is missing', async () => {
    clock = START + 24 * HOUR + 12
    afterNewestWindow(() => {
      for (const name of NAMES)
        for (let at = START - HOUR; at < START + 24 * HOUR; at += 60) venues[name].missing.add(at)
    })
    await pollUntil(clock + 600)
    const pass = async (hours: number): Promise<void> => {
      for (const end = clock + hours * HOUR; clock < end;) {
        clock += HOUR - 60
        await pollUntil(clock + 60)
      }
    }
    await pass(12)
    expect((await status()).ready).to.equal(false)
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 1160, undecided: 0, given_up: 0 })
    await pass(24)
    const { ready, settled, missing_minutes } = await status()
    expect([ready, settled]).to.deep.equal([true, Math.floor((clock - 3) / 60) * 60])
    expect(missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 1160, given_up: 0 })
    await pass(24)
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 0, given_up: 1160 })
  })

  it('counts the minutes before a symbol was listed as given up', async () => {
    const listed = START + 580 * 60
    for (const name of NAMES) for (let at = START - HOUR; at < listed; at += 60) venues[name].missing.add(at)
    await host.run('backfill')
    await host.run('poll')
    expect((await status()).missing_minutes).to.deep.equal({ to_fetch: 0, undecided: 0, given_up: 580 })
    expect((await status()).ready).to.equal(true)
  })

  it('moves no minute for a venue that states 1.05 times the price for an hour, and marks the hour', async () => {
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    venues.coinbase.change = (time, bar) =>
      time < from || time >= from + HOUR
        ? bar
        : {
            open: bar.open! * 1.05,
            high: bar.high * 1.05,
            low: bar.low * 1.05,
            close: bar.close! * 1.05,
            volume: bar.volume,
          }
    await pollUntil(from + HOUR + 125)
    const { count, close, high, low, time, venues: masks } = await first(from, from + HOUR)
    expect(count).to.equal(60)
    expect([...close]).to.deep.equal([...time].map(closeAt))
    expect([...high]).to.deep.equal([...time].map((at) => Math.max(closeAt(at), closeAt(at - 60))))
    expect([...low]).to.deep.equal([...time].map((at) => Math.min(closeAt(at), closeAt(at - 60))))
    expect(new Set(masks)).to.deep.equal(new Set([BIT.kraken + BIT.bitstamp + BIT.bitfinex + BIT.coinbase * 2 ** 16]))
    expect(await facts()).to.deep.include({ venue_differences: 60 })
    const after = await first(from + HOUR, from + HOUR + 60)
    expect(after.venues![0]! & BIT.coinbase).to.equal(BIT.coinbase)
  })

  it('counts no wick that one venue alone had', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    await host.run('backfill')
    const minute = Math.floor(clock / 60) * 60
    venues.coinbase.change = (time, bar) =>
      time === minute ? { ...bar, high: bar.high * 1.08, low: bar.low * 0.9 } : bar
    await pollUntil(minute + 85)
    const { high, low } = await first(minute, minute + 60)
    expect([high[0], low[0]]).to.deep.equal([
      Math.max(closeAt(minute), closeAt(minute - 60)),
      Math.min(closeAt(minute), closeAt(minute - 60)),
    ])
  })

  it('holds a minute on which two venues disagree, gives it up, and stores what comes later as a correction', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const minute = Math.floor(clock / 60) * 60
    venues.coinbase.change = (time, bar) =>
      time === minute ? { ...bar, close: bar.close! * 1.05, high: bar.high * 1.06 } : bar
    await pollUntil(minute + 60 + 25)
    expect((await bars(minute, minute + 60)).count).to.equal(0)
    expect((await status()).settled).to.equal(minute)
    await pollUntil(minute + 180)
    expect((await bars(minute, minute + 180)).count).to.equal(1)
    expect((await status()).settled).to.equal(minute)
    await pollUntil(minute + 60 + 260)
    expect((await status()).settled).to.be.above(minute + 180)
    venues.coinbase.change = (_, bar) => bar
    await pollUntil(minute + 60 + 2200)
    const { close, state } = await bars(minute, minute + 60)
    expect([close[0], state[0]]).to.deep.equal([closeAt(minute), 2])
    expect((await first(minute, minute + 60)).count).to.equal(0)
    expect((await bars(minute, minute + 60, minute + 400)).count).to.equal(0)
  })

  it('publishes a held minute as it is once the venues agree on it', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const minute = Math.floor(clock / 60) * 60
    venues.coinbase.closes.set(minute, closeAt(minute) * 1.05)
    await pollUntil(minute + 60 + 25)
    venues.coinbase.closes.clear()
    await pollUntil(minute + 60 + 110)
    expect((await first(minute, minute + 60)).close[0]).to.equal(closeAt(minute))
    expect((await status()).settled).to.be.above(minute)
  })

  it('polls the minutes that closed since the last one, and never the open minute', async () => {
    await host.run('backfill')
    await host.run('poll')
    clock += 120
    await host.run('poll')
    const { time } = await bars(START + 20 * HOUR - 600, clock + 600)
    expect(time.at(-1)).to.equal(START + 20 * HOUR + 60)
    const last = new URL(venues.coinbase.requests.at(-1)!, 'http://v').searchParams
    expect(Date.parse(last.get('end')!) / 1000 + 60).to.equal(START + 20 * HOUR + 120)
    const count = venues.coinbase.requests.length
    await host.run('poll')
    expect(venues.coinbase.requests).to.have.length(count)
  })

  it('waits for a venue that is late, but not for longer than twenty seconds after the close', async () => {
    await host.run('backfill')
    await host.run('poll')
    const minute = Math.floor(clock / 60) * 60
    venues.kraken.missing.add(minute)
    clock = minute + 60 + 5
    await host.run('poll')
    expect((await bars(minute, minute + 60)).count).to.equal(0)
    clock = minute + 60 + 20
    await host.run('poll')
    expect((await first(minute, minute + 60)).venues![0]! & BIT.kraken).to.equal(0)
  })

  it('fills a minute in which nothing traded anywhere with the close before', async () => {
    const quiet = START + 2 * HOUR
    for (const name of NAMES) venues[name].missing.add(quiet)
    await host.run('backfill')
    const { close, volume, state } = await bars(quiet, quiet + 60)
    expect([close[0], volume[0], state[0]]).to.deep.equal([closeAt(quiet - 60), 0, 1])
  })

  /** Leaves all minutes of the next hour out, as a venue does that repeats its last answer. */
  const freeze = (names: readonly Name[], from: number): void => {
    for (const name of names) for (let at = from; at < from + HOUR; at += 60) venues[name].missing.add(at)
  }

  /** Makes venues repeat one flat bar, volume included, from a minute on. */
  const repeatBar = (names: readonly Name[], from: number): void => {
    const price = closeAt(from - 60)
    const repeated = { open: price, high: price, low: price, close: price, volume: 2.5 }
    for (const name of names) venues[name].change = (time, bar) => (time < from ? bar : repeated)
  }

  it('publishes nothing that one venue alone states while another one stands still, and all of it afterwards', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    freeze(['coinbase'], from)
    await pollUntil(from + 600)
    expect((await bars(from, clock)).count).to.equal(0)
    venues.coinbase.missing.clear()
    await pollUntil(clock + 25)
    const { count, venues: masks } = await first(from, from + 600)
    expect([count, new Set(masks)]).to.deep.equal([10, new Set([BIT.coinbase + BIT.bitstamp])])
  })

  it('publishes no quiet minutes of two venues that both stand still', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    freeze(live, from)
    await pollUntil(from + 600)
    expect((await bars(from, clock)).count).to.equal(0)
  })

  it('publishes a minute that was quiet at one of two venues once this one lists a later minute', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const quiet = Math.floor(clock / 60) * 60
    venues.coinbase.missing.add(quiet)
    await pollUntil(quiet + 145)
    const { close, venues: masks } = await first(quiet, quiet + 60)
    expect([close[0], masks![0]]).to.deep.equal([closeAt(quiet), BIT.coinbase + BIT.bitstamp])
  })

  it('publishes the quiet minutes of all venues once one of them lists a later minute', async () => {
    live = ['coinbase', 'bitstamp', 'bitfinex']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    for (let time = from; time < from + 300; time += 60) for (const name of live) venues[name].missing.add(time)
    await pollUntil(from + 300 + 10)
    expect((await bars(from, clock)).count).to.equal(0)
    await pollUntil(from + 360 + 25)
    const { count, state } = await first(from, from + 300)
    expect([count, ...new Set(state)]).to.deep.equal([5, 1])
  })

  it('believes no silence of all venues, and publishes what happened once they go on', async () => {
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    freeze(NAMES, from)
    await pollUntil(from + 900)
    expect((await bars(from, clock)).count).to.equal(0)
    expect((await status()).settled).to.equal(from)
    for (const name of NAMES) venues[name].missing.clear()
    await pollUntil(clock + 25)
    const { close, time } = await first(from, from + 900)
    expect([...close]).to.deep.equal([...time].map(closeAt))
    expect(time).to.have.length(15)
  })

  it('counts no venue that repeats one bar with its volume, so three of them publish no flat market', async () => {
    live = ['coinbase', 'bitstamp', 'bitfinex']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    repeatBar(live, from)
    await pollUntil(from + 600)
    expect((await bars(from, clock)).count).to.equal(1)
    for (const name of live) venues[name].change = (_, bar) => bar
    await pollUntil(clock + 25)
    const { close, time } = await first(from + 60, from + 600)
    expect([...close]).to.deep.equal([...time].map(closeAt))
    expect(time).to.have.length(9)
  })

  it('takes two venues that repeat a bar for no majority over one that goes on', async () => {
    live = ['coinbase', 'bitstamp', 'bitfinex']
    host = await openHost()
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    repeatBar(['coinbase', 'bitstamp'], from)
    await pollUntil(from + 600)
    expect((await bars(from + 60, clock)).count).to.equal(0)
  })

  it('fills a quiet minute at the end of a window of the back-fill', async () => {
    live = ['coinbase', 'bitstamp']
    host = await openHost()
    const last = START + 579 * 60
    venues.coinbase.missing.add(last)
    await host.run('backfill')
    clock += 60
    await host.run('backfill')
    expect((await first(last, last + 60)).close[0]).to.equal(closeAt(last))
  })

  it('fetches what was missed in a pause of five hours, known from then on', async () => {
    await host.run('backfill')
    await host.run('poll')
    const from = Math.floor(clock / 60) * 60
    for (const name of NAMES) venues[name].broken.set('/', { status: 503 })
    await pollUntil(clock + 600)
    clock += 5 * HOUR
    for (const name of NAMES) venues[name].broken.clear()
    await pollUntil(clock + 180)
    const { count, close, time } = await first(from, clock)
    expect(count).to.equal(Math.floor((clock - from) / 60))
    expect([...close]).to.deep.equal([...time].map(closeAt))
    expect((await bars(from, clock, from + HOUR)).count).to.equal(0)
  })

  it('fetches what was missed in a pause of days, newest first', async () => {
    await host.run('backfill')
    await host.run('poll')
    clock += 50 * HOUR
    await pollUntil(clock + 40)
    expect((await bars(START, clock)).count).to.equal(Math.floor((clock - START) / 60))
    expect((await status()).settled).to.equal(Math.floor((clock - 3) / 60) * 60)
  })

  it('keeps a move of one minute that all venues saw, polled or back-filled', async () => {
    const spikes = [START + 3 * HOUR, START + 580 * 60 - 60, START + 20 * HOUR]
    for (const name of NAMES) for (const spike of spikes) venues[name].closes.set(spike, closeAt(spike) * 0.95)
    await host.run('backfill')
    await pollUntil(START + 20 * HOUR + 600)
    for (const spike of spikes)
      for (const found of [await bars(spike, spike + 60), await first(spike, spike + 60)])
        expect(found.close[0]).to.equal(closeAt(spike) * 0.95)
  })

  it('leaves out a move that one venue alone saw', async () => {
    await host.run('backfill')
    await host.run('poll')
    const spike = START + 20 * HOUR
    venues.coinbase.closes.set(spike, closeAt(spike) * 0.95)
    await pollUntil(spike + 600)
    expect((await bars(spike, spike + 60)).close[0]).to.equal(closeAt(spike))
  })

  it('reports the history as complete only when every window was fetched', async () => {
    expect((await status()).ready).to.equal(false)
    await host.run('backfill')
    await host.run('poll')
    const { ready, series, settled, live_since } = await status()
    expect(ready).to.equal(true)
    expect(series).to.have.length(1)
    expect(series[0]).to.deep.include({ venue: 'median', first: START, last: START + 20 * HOUR - 60 })
    expect([settled, live_since]).to.deep.equal([START + 20 * HOUR, START + 20 * HOUR])
  })

  it('refuses settings that leave a symbol with one venue, or with one that is not quoted in dollars', async () => {
    const open = (change: object) =>
      openPluginHost([{ plugin: market, settings: { symbols: [{ ...symbolOf('BTC'), ...change }] } }], {
        dataMode: 'online',
        now: () => new Date(clock * 1000),
        db,
      }).catch((error: unknown) => String(error))
    expect(await open({ live: ['coinbase'] })).to.match(/live has 1 venues.*name more/)
    expect(await open({ backfill: ['coinbase', 'kraken'] })).to.match(/backfill has 1 venues/)
    const tether = { venues: { coinbase: 'BTC-USD', bitstamp: 'btcusd', binance: 'BTCUSDT' } }
    expect(await open({ ...tether, live: ['coinbase', 'binance'], backfill: undefined })).to.match(
      /not quoted in dollars/,
    )
    // Bitfinex has names of its own for Tether and USD Coin.
    for (const bitfinex of ['tBTCUST', 'tBTCUDC', 'tLINK:UST'])
      expect(await open({ venues: { coinbase: 'BTC-USD', bitfinex }, live: ['coinbase', 'bitfinex'] })).to.match(
        /bitfinex is not quoted in dollars/,
      )
  })
})
