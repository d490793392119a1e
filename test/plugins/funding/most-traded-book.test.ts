import { expect } from 'chai'
import { openTestProduct, TestClock, type TestProduct } from 'tollgate/testing'
import type { FundingRate, VenueName } from '../../../plugins/funding/funding-rate.ts'
import funding from '../../../plugins/funding/index.ts'
import { PerpetualBookStore } from '../../../plugins/funding/perpetual-books.ts'
import { createRateStore } from '../../../plugins/funding/rate-store.ts'

/** 2026-11-20T12:03:00Z, epoch seconds. */
const NOW = Date.UTC(2026, 10, 20, 12, 3) / 1000

const rateOf = (instrument: string, symbol: string, more: Partial<FundingRate> = {}): FundingRate => ({
  instrument,
  symbol,
  quote: 'USDT',
  settle: 'USDT',
  contract: 'linear',
  rate: '0.0001',
  intervalHours: 8,
  intervalSource: 'venue',
  kind: 'predicted',
  predictedRate: null,
  nextFunding: null,
  markPrice: 98_000,
  indexPrice: null,
  observed: NOW - 400,
  ...more,
})

const bookAt = (price: number) => ({ bids: [[price - 1, 2] as const], asks: [[price + 1, 2] as const] })

describe('the order book of a perpetual that other products ask for', () => {
  let product: TestProduct<'funding'>
  let books: PerpetualBookStore

  const open = async (dataMode: 'online' | 'sample' | 'replay'): Promise<void> => {
    product = await openTestProduct(funding, {
      clock: new TestClock('2026-11-20T12:03:00Z'),
      environment: { DATA_MODE: dataMode, REPLAY_DIR: import.meta.dirname },
    })
    books = new PerpetualBookStore(product.db)
  }
  const poll = (venue: VenueName, rates: readonly FundingRate[]): Promise<void> =>
    createRateStore(product.db).add(venue, NOW - 400, { rates, quarantined: [], untold: [] })
  const bookOf = async (symbol: string, asOf = NOW) =>
    (
      await product.call('getPerpetualBook', {
        query: { symbol, max_age_seconds: 300 },
        asOf: new Date(asOf * 1000),
      })
    ).book

  afterEach(() => product.close())

  describe('online', () => {
    beforeEach(async () => {
      await open('online')
      await poll('kraken', [rateOf('PF_XBTUSD', 'BTC', { quote: 'USD', volumeUsd: 2e8 })])
      await poll('gate', [rateOf('BTC_USDT', 'BTC')])
      await poll('binance', [rateOf('BTCUSDT', 'BTC', { volumeUsd: 9e9 }), rateOf('BTCUSDC', 'BTC', { quote: 'USDC' })])
    })

    it('is that of the contract that is traded most, with its venue and the time at which it was read', async () => {
      await books.add('kraken', 'PF_XBTUSD', NOW - 10, bookAt(98_010))
      await books.add('binance', 'BTCUSDT', NOW - 250, bookAt(98_000))
      expect(await bookOf('BTC')).to.deep.equal({
        venue: 'binance',
        instrument: 'BTCUSDT',
        time: NOW - 250,
        ...bookAt(98_000),
      })
      expect((await bookOf('xbt'))?.venue, 'by any name of the coin').to.equal('binance')
    })

    it('is that of the next contract while the book of the first is too old', async () => {
      await books.add('gate', 'BTC_USDT', NOW - 5, bookAt(98_020))
      await books.add('binance', 'BTCUSDT', NOW - 301, bookAt(98_000))
      expect((await bookOf('BTC'))?.venue, 'a contract without a volume comes last').to.equal('gate')
      await books.add('kraken', 'PF_XBTUSD', NOW - 300, bookAt(98_010))
      expect((await bookOf('BTC'))?.venue).to.equal('kraken')
    })

    it('is one that was known at the time of the call', async () => {
      await books.add('binance', 'BTCUSDT', NOW - 200, bookAt(98_000))
      await books.add('binance', 'BTCUSDT', NOW - 100, bookAt(98_050))
      expect(await bookOf('BTC', NOW - 201)).to.equal(null)
      expect((await bookOf('BTC', NOW - 101))?.time).to.equal(NOW - 200)
      expect(await bookOf('ETH')).to.equal(null)
    })

    it('is not that of a contract on another coin of the same name', async () => {
      await poll('bybit', [rateOf('BTCUSDT', 'BTC', { markPrice: 3, volumeUsd: 1e10 })])
      await books.add('bybit', 'BTCUSDT', NOW - 10, bookAt(3))
      await books.add('binance', 'BTCUSDT', NOW - 20, bookAt(98_000))
      expect((await bookOf('BTC'))?.venue).to.equal('binance')
    })

    it('has the price and the quantity of single coins where a contract is on a thousand', async () => {
      await poll('bybit', [rateOf('1000PEPEUSDT', 'PEPE', { markPrice: 0.02, volumeUsd: 1e8 })])
      await books.add('bybit', '1000PEPEUSDT', NOW - 10, { bids: [[0.0195, 512]], asks: [[0.0205, 256]] })
      const { bids, asks } = (await bookOf('PEPE'))!
      expect(bids[0]![0]).to.be.closeTo(0.0000195, 1e-15)
      expect([bids[0]![1], asks[0]![1]]).to.deep.equal([512_000, 256_000])
    })
  })

  it('is made up in the sample, and missing in a replay', async () => {
    await open('sample')
    const book = (await bookOf('BTC'))!
    expect(book.time).to.be.within(NOW - 300, NOW)
    expect(book.bids[0]![0]).to.be.lessThan(book.asks[0]![0])
    expect(await bookOf('NOPE')).to.equal(null)
    await product.close()
    await open('replay')
    expect(await bookOf('BTC')).to.equal(null)
  })
})
