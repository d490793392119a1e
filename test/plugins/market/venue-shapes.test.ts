import { expect } from 'chai'
import { RequestError } from '../../../plugins/lib/feeds/requests.ts'
import { VENUES, VENUES_BY_BIT, type VenueName } from '../../../plugins/market/venues/bar-venues.ts'

const OPEN = Date.UTC(2026, 10, 20, 9, 40) / 1000
const NOW = OPEN + 150
const signal = new AbortController().signal

interface Sent {
  readonly status?: number
  readonly date?: string
  readonly bookUrl?: string
}

/** A venue that gives one answer, and what it was asked. */
function venueWith(
  name: VenueName,
  answer: unknown,
  { status = 200, date = new Date(NOW * 1000).toUTCString(), bookUrl }: Sent = {},
) {
  const asked: URL[] = []
  const fetch = async (url: string | URL | Request): Promise<Response> => {
    asked.push(new URL(url instanceof Request ? url.url : url))
    return new Response(JSON.stringify(answer), { status, headers: date === '' ? {} : { date } })
  }
  const venue = VENUES[name].create({ url: 'http://venue.test', bookUrl, fetch, now: () => NOW })
  return { venue, asked }
}

const klines = (times: readonly number[]) =>
  times.map((time) => [time * 1000, '10', '12', '9', '11', '2', time * 1000 + 59_999, '22', 3])

/** Two closed minutes and the open one, as each venue sends them: 10, 12, 9, 11 with a volume of 2. */
const ANSWERS: Readonly<Record<VenueName, (times: readonly number[]) => unknown>> = {
  coinbase: (times) => times.map((time) => [time, 9, 12, 10, 11, 2]).toReversed(),
  binance: klines,
  binance_us: klines,
  kraken: (times) => ({
    error: [],
    result: {
      XXBTZUSD: times.map((time) => [time, '10.0', '12.0', '9.0', '11.0', '10.5', '2.0', 7]),
      last: times.at(-2),
    },
  }),
  bitstamp: (times) => ({
    data: {
      pair: 'BTC/USD',
      ohlc: times.map((time) => ({
        timestamp: String(time),
        open: '10',
        high: '12',
        low: '9',
        close: '11',
        volume: '2',
      })),
    },
  }),
  bitfinex: (times) => times.map((time) => [time * 1000, 10, 11, 12, 9, 2]),
}
const NAMES = Object.keys(ANSWERS) as VenueName[]

for (const name of NAMES)
  describe(`minutes of ${name}`, () => {
    const minutes = (answer: unknown, options?: { status?: number; date?: string }) =>
      venueWith(name, answer, options).venue.minutes('PAIR', OPEN, OPEN + 180, signal)
    const times = [OPEN, OPEN + 60, OPEN + 120]

    it('are read in their order, without the one that is still open', async () => {
      const { bars, rejected } = await minutes(ANSWERS[name](times))
      expect([...bars.time]).to.deep.equal([OPEN, OPEN + 60])
      const first = ['open', 'high', 'low', 'close', 'volume'].map((column) => bars[column as 'open'][0])
      expect(first).to.deep.equal([10, 12, 9, 11, 2])
      expect(rejected).to.deep.equal([])
    })

    it('are closed by the clock of the venue, even if ours is ahead of it', async () => {
      const date = new Date((OPEN + 119) * 1000).toUTCString()
      expect([...(await minutes(ANSWERS[name](times), { date })).bars.time]).to.deep.equal([OPEN])
      expect((await minutes(ANSWERS[name](times), { date: '' })).bars.count).to.equal(2)
    })

    it('are asked for at the address of the settings, with the symbol of the venue', async () => {
      const { venue, asked } = venueWith(name, ANSWERS[name](times))
      await venue.minutes('PAIR', OPEN, OPEN + 180, signal)
      expect(asked[0]!.origin).to.equal('http://venue.test')
      expect(asked[0]!.href).to.include('PAIR')
    })

    it('are an error if the answer is an object, a page or a refusal', async () => {
      for (const answer of [{ message: 'NotFound' }, 'maintenance', null])
        expect(await minutes(answer).catch((error: unknown) => error)).to.be.instanceOf(RequestError)
      expect(await minutes([], { status: 403 }).catch((error: unknown) => error)).to.include({ status: 403 })
    })
  })

describe('errors that venues send with status 200', () => {
  const errorOf = (name: VenueName, answer: unknown): Promise<unknown> =>
    venueWith(name, answer)
      .venue.minutes('PAIR', OPEN, OPEN + 180, signal)
      .catch((error: unknown) => error)

  it('mean an unknown symbol, a rate limit or an outage at Kraken', async () => {
    expect(await errorOf('kraken', { error: ['EQuery:Unknown asset pair'] })).to.include({ status: 404 })
    expect(await errorOf('kraken', { error: ['EGeneral:Too many requests'] })).to.include({ status: 429 })
    expect(await errorOf('kraken', { error: ['EService:Unavailable'] })).to.include({ status: 503 })
  })

  it('mean a rate limit at Bitfinex', async () => {
    expect(await errorOf('bitfinex', ['error', 11_010, 'ratelimit: error'])).to.include({ status: 429 })
  })
})

describe('order books', () => {
  const book = { bids: [[10, 2]], asks: [[11, 3]] }
  const sides = { bids: [['10.0', '2.0', 1]], asks: [['11.0', '3.0', 1]] }

  it('are read from the lists of Kraken and from the signed amounts of Bitfinex', async () => {
    const { venue } = venueWith('kraken', { error: [], result: { XXBTZUSD: sides } })
    expect((await venue.book('PAIR', signal)).book).to.deep.equal(book)
    const signed = venueWith('bitfinex', [
      [10, 1, 2],
      [11, 4, -3],
    ])
    expect((await signed.venue.book('PAIR', signal)).book).to.deep.equal(book)
  })

  it('come with the time of the venue, if it states one', async () => {
    expect((await venueWith('binance', sides).venue.book('PAIR', signal)).date).to.equal(NOW)
    expect((await venueWith('binance', sides, { date: '' }).venue.book('PAIR', signal)).date).to.equal(null)
  })

  it('have 500 levels at Coinbase if its other API is configured, otherwise all', async () => {
    const levels = { bids: [{ price: '10.0', size: '2.0' }], asks: [{ price: '11.0', size: '3.0' }] }
    const limited = venueWith(
      'coinbase',
      { pricebook: { product_id: 'PAIR', ...levels } },
      { bookUrl: 'http://books.test' },
    )
    expect((await limited.venue.book('PAIR', signal)).book).to.deep.equal(book)
    expect(limited.asked[0]!.href).to.equal(
      'http://books.test/api/v3/brokerage/market/product_book?product_id=PAIR&limit=500',
    )
    const whole = venueWith('coinbase', sides)
    expect((await whole.venue.book('PAIR', signal)).book).to.deep.equal(book)
    expect(whole.asked[0]!.href).to.equal('http://venue.test/products/PAIR/book?level=2')
  })
})

describe('the bits of the venues', () => {
  it('are those that stored bars were written with, and follow each other', () => {
    const stored = ['coinbase', 'binance', 'kraken', 'bitstamp', 'bitfinex', 'binance_us']
    expect(VENUES_BY_BIT.slice(0, stored.length)).to.deep.equal(stored)
    expect(VENUES_BY_BIT.map((name) => VENUES[name].bit)).to.deep.equal(VENUES_BY_BIT.map((_, at) => at))
  })
})
