import { expect } from 'chai'
import { aprOf } from '../../../plugins/funding/rate-arithmetic.ts'
import { quarantine, type FundingRate, type VenueName } from '../../../plugins/funding/funding-rate.ts'
import { VENUES } from '../../../plugins/funding/venues/funding-venues.ts'
import { PayloadError } from '../../../plugins/funding/venues/funding-venue.ts'
import { ANSWERS, AT } from './fake-venues.ts'

const parse = (venue: VenueName, payloads: Readonly<Record<string, unknown>>) => VENUES[venue].parse(payloads, AT)
const only = (venue: VenueName, payloads: Readonly<Record<string, unknown>> = ANSWERS[venue]): FundingRate => {
  const { rates } = parse(venue, payloads)
  expect(rates).to.have.length(1)
  return rates[0]!
}

describe('the funding rate parser', () => {
  it('uses the same symbol for the same coin at all venues', () => {
    for (const venue of Object.keys(VENUES) as VenueName[]) {
      const symbols = parse(venue, ANSWERS[venue]).rates.map(({ symbol }) => symbol)
      expect(symbols, venue).to.include('BTC')
    }
  })

  describe('of Binance', () => {
    it('takes the interval of adjusted contracts from the second list, and the published eight hours for the rest', () => {
      const { rates } = parse('binance', ANSWERS.binance)
      expect(
        rates.map(({ instrument, intervalHours, intervalSource }) => [instrument, intervalHours, intervalSource]),
      ).to.deep.equal([
        ['BTCUSDT', 8, 'published'],
        ['1000PEPEUSDT', 4, 'venue'],
        ['ETHUSDC', 1, 'venue'],
      ])
    })

    it('refuses the rates without the second list', () => {
      expect(() => parse('binance', { rates: ANSWERS.binance['rates'], intervals: { code: -1 } })).to.throw(
        PayloadError,
      )
    })

    it('skips dated contracts', () => {
      const rates = [{ symbol: 'BTCUSDT_261225', lastFundingRate: '', nextFundingTime: 0, time: AT * 1000 }]
      expect(parse('binance', { rates, intervals: [] })).to.deep.include({ rates: [], untold: [] })
    })

    it('skips delisted contracts', () => {
      const delisted = { symbol: 'LUNAUSDT', lastFundingRate: '0.00000000', nextFundingTime: 0, time: AT * 1000 }
      expect(parse('binance', { rates: [delisted], intervals: [] })).to.deep.include({ rates: [], untold: [] })
    })

    it('names the contradiction if the next settlement does not fit the interval', () => {
      const at = (hour: number): number => Date.UTC(2026, 10, 20, hour)
      const rates = [
        { symbol: 'XUSDT', lastFundingRate: '0.0001', nextFundingTime: at(13), time: AT * 1000 },
        { symbol: 'YUSDT', lastFundingRate: '0.0002', nextFundingTime: at(14), time: AT * 1000 },
        { symbol: 'ZUSDT', lastFundingRate: '0.0003', nextFundingTime: at(16), time: AT * 1000 },
      ]
      const intervals = [{ symbol: 'YUSDT', fundingIntervalHours: 4 }]
      const { untold, rates: read } = parse('binance', { rates, intervals })
      const reason = (hours: number) => `the next settlement does not fit the interval of ${hours} hours`
      expect(untold).to.deep.equal([
        { instrument: 'XUSDT', rate: '0.0001', reason: reason(8) },
        { instrument: 'YUSDT', rate: '0.0002', reason: reason(4) },
      ])
      expect(read.map(({ instrument }) => instrument)).to.deep.equal(['ZUSDT'])
    })

    it('takes the bounds of adjusted contracts from the second list, and the published ones for the rest', () => {
      const [rest, adjusted] = parse('binance', ANSWERS.binance).rates
      expect(rest).to.include({ floor: '-0.02', cap: '0.02', boundsSource: 'published' })
      expect(adjusted).to.include({ cap: '0.02', boundsSource: 'venue' })
    })

    it('keeps the digits of a rate as Binance wrote them', () => {
      expect(parse('binance', ANSWERS.binance).rates[1]!.rate).to.equal('-0.00030299')
    })
  })

  describe('of Bybit', () => {
    it('reads the interval in hours from every row', () => {
      const { rates } = parse('bybit', ANSWERS.bybit)
      expect(
        rates.map(({ instrument, intervalHours, contract, quote, settle }) => [
          instrument,
          intervalHours,
          contract,
          quote,
          settle,
        ]),
      ).to.deep.equal([
        ['BTCUSDT', 8, 'linear', 'USDT', 'USDT'],
        ['SOLPERP', 4, 'linear', 'USDC', 'USDC'],
        ['BTCUSD', 8, 'inverse', 'USD', 'BTC'],
      ])
    })

    it('does not assume eight hours if a row states no interval', () => {
      const list = [{ symbol: 'XUSDT', fundingRate: '0.0001', nextFundingTime: String((AT + 100) * 1000) }]
      const payload = { retCode: 0, result: { list } }
      const { rates, untold } = parse('bybit', { linear: payload, inverse: { retCode: 0, result: { list: [] } } })
      expect(rates).to.deep.equal([])
      expect(untold).to.deep.equal([{ instrument: 'XUSDT', rate: '0.0001', reason: 'the venue reports no interval' }])
    })

    it('turns the turnover and the open interest of an inverse contract, which are in coins, into dollars', () => {
      const row = {
        symbol: 'BTCUSD',
        fundingRate: '0.0001',
        fundingIntervalHour: '8',
        markPrice: '100000',
        turnover24h: '115.5',
        openInterest: '208979000',
        openInterestValue: '2089.79',
      }
      const answer = (list: readonly object[]) => ({ retCode: 0, result: { list } })
      const rate = only('bybit', { linear: answer([]), inverse: answer([row]) })
      expect(rate).to.include({ volumeUsd: 11_550_000, openInterestUsd: 208_979_000 })
      const linear = only('bybit', { linear: answer([{ ...row, symbol: 'BTCUSDT' }]), inverse: answer([]) })
      expect(linear).to.include({ volumeUsd: 115.5, openInterestUsd: 2089.79 })
    })

    it('refuses an error that arrives with status 200', () => {
      const refused = { retCode: 10006, retMsg: 'Too many visits!', result: { list: [] } }
      expect(() => parse('bybit', { linear: refused, inverse: refused })).to.throw(
        PayloadError,
        /10006: Too many visits/,
      )
    })
  })

  describe('of OKX', () => {
    it('computes the interval from the next two funding times', () => {
      const { rates } = parse('okx', ANSWERS.okx)
      expect(
        rates.map(({ instrument, intervalHours, contract }) => [instrument, intervalHours, contract]),
      ).to.deep.equal([
        ['BTC-USDT-SWAP', 8, 'linear'],
        ['ETH-USD-SWAP', 4, 'inverse'],
      ])
    })

    it('computes the interval from the previous funding time if the one after next is missing', () => {
      const { data } = ANSWERS.okx['rates'] as { data: { fundingTime: string }[] }
      const row = {
        ...data[0]!,
        nextFundingTime: '',
        prevFundingTime: String(Number(data[0]!.fundingTime) - 14_400_000),
      }
      expect(only('okx', { rates: { data: [row] } }).intervalHours).to.equal(4)
    })

    it('refuses an error that arrives with status 200', () => {
      expect(() => parse('okx', { rates: { code: '50011', msg: 'Too Many Requests', data: [] } })).to.throw(/50011/)
    })
  })

  describe('of Hyperliquid', () => {
    it('joins names and rates by position, and expects payment at the full hour after the request', () => {
      const { rates } = parse('hyperliquid', ANSWERS.hyperliquid)
      expect(rates.map(({ instrument, symbol }) => [instrument, symbol])).to.deep.equal([
        ['BTC', 'BTC'],
        ['kPEPE', 'PEPE'],
      ])
      expect(rates.map(({ nextFunding, observed }) => [nextFunding, observed])).to.deep.equal([
        [AT - 183 + 3600, AT],
        [AT - 183 + 3600, AT],
      ])
    })

    it('refuses an answer with more names than rates', () => {
      const [meta, figures] = ANSWERS.hyperliquid['contexts'] as [object, object[]]
      expect(() => parse('hyperliquid', { contexts: [meta, figures.slice(1)] })).to.throw(PayloadError, /3 names and 2/)
    })
  })

  it('of dYdX uses an interval of one hour and skips inactive markets', () => {
    const rate = only('dydx')
    expect(rate).to.include({ instrument: 'BTC-USD', intervalHours: 1, nextFunding: AT - 183 + 3600 })
  })

  it('of dYdX bounds what is paid by the margins of the market, and keeps a rate that is expected beyond', () => {
    const { markets } = ANSWERS.dydx['markets'] as { markets: Record<string, object> }
    const margins = { initialMarginFraction: '0.02', maintenanceMarginFraction: '0.012' }
    const market = { ...markets['BTC-USD'], ...margins, nextFundingRate: '-0.02' }
    const rate = only('dydx', { markets: { markets: { 'BTC-USD': market } } })
    // 600% of 0.008 for eight hours, an eighth of it for one.
    expect(rate).to.include({ rate: '-0.02', floor: '-0.006', cap: '0.006', boundsSource: 'published' })
    expect(quarantine([rate]).rates).to.deep.equal([rate])
  })

  describe('of Kraken', () => {
    it('divides the amount of money that a linear contract pays by the mark price', () => {
      const rate = parse('kraken', ANSWERS.kraken).rates.find(({ instrument }) => instrument === 'PF_XBTUSD')!
      expect(Number(rate.rate)).to.be.closeTo(1.1 / 98_000, 1e-16)
      expect(rate).to.include({ symbol: 'BTC', intervalHours: 1, nextFunding: null })
    })

    it('yields no rate for an inverse contract that states only an absolute amount', () => {
      const { rates, untold } = parse('kraken', ANSWERS.kraken)
      expect(rates.map(({ instrument }) => instrument)).to.not.include('PI_XBTUSD')
      expect(untold.map(({ instrument }) => instrument)).to.deep.equal(['PI_XBTUSD'])
    })
  })

  it('of Kraken bounds a rate by the list of contracts, which may have another floor, and keeps a rate beyond', () => {
    const list = (ANSWERS.kraken['tickers'] as { tickers: { symbol: string }[] }).tickers
    const squeezed = { ...list[0], fundingRate: -2000 }
    const boundsOf = (contract: object | null) => {
      const instruments = contract ? [{ symbol: 'PF_XBTUSD', type: 'flexible_futures', ...contract }] : []
      const rate = only('kraken', { tickers: { tickers: [squeezed] }, instruments: { instruments } })
      expect(quarantine([rate]).rates).to.deep.equal([rate])
      return [rate.floor ?? null, rate.cap ?? null, rate.boundsSource ?? null]
    }
    expect(boundsOf({ maxRelativeFundingRate: 0.005 })).to.deep.equal(['-0.005', '0.005', 'published'])
    const both = { maxRelativeFundingRate: 7e-6, minRelativeFundingRate: 6.25e-6 }
    expect(boundsOf(both)).to.deep.equal(['0.00000625', '0.000007', 'published'])
    expect(boundsOf({})).to.deep.equal([null, null, null])
    expect(boundsOf(null)).to.deep.equal([null, null, null])
  })

  it('of Kraken recognises inverse contracts in lower case, as Kraken once wrote them', () => {
    const list = (ANSWERS.kraken['tickers'] as { tickers: { symbol: string; tag?: string }[] }).tickers
    const tickers = list.map(({ tag: _, ...row }) => ({ ...row, symbol: row.symbol.toLowerCase(), pair: undefined }))
    const { rates, untold } = parse('kraken', { tickers: { tickers } })
    expect(rates.map(({ instrument, symbol, quote }) => [instrument, symbol, quote])).to.deep.equal([
      ['PF_XBTUSD', 'BTC', 'USD'],
    ])
    expect(untold.map(({ instrument }) => instrument)).to.deep.equal(['PI_XBTUSD'])
  })

  it('of Gate reads the interval in seconds', () => {
    const { rates } = parse('gate', ANSWERS.gate)
    expect(rates.map(({ intervalHours, nextFunding }) => [intervalHours, nextFunding])).to.deep.equal([
      [8, AT - 183 + 4 * 3600],
      [4, AT - 183 + 3600],
    ])
  })

  it('of Gate values the open interest of contracts that are worth less than a cent', () => {
    const [row] = ANSWERS.gate['contracts'] as object[]
    const contracts = [{ ...row, mark_price: '0.0042', quanto_multiplier: '1', position_size: 1_000_000 }]
    expect(parse('gate', { contracts }).rates[0]!.openInterestUsd).to.equal(4200)
  })

  it('of Gate recognises inverse contracts, which settle in their coin', () => {
    const [row] = ANSWERS.gate['contracts'] as object[]
    const contracts = [{ ...row, name: 'BTC_USD', type: 'inverse' }]
    expect(parse('gate', { contracts }).rates[0]).to.include({ contract: 'inverse', quote: 'USD', settle: 'BTC' })
  })

  describe('of BitMEX', () => {
    it('reads an interval that is written as a date', () => {
      const { rates } = parse('bitmex', ANSWERS.bitmex)
      expect(
        rates.map(({ instrument, intervalHours, contract, settle }) => [instrument, intervalHours, contract, settle]),
      ).to.deep.equal([
        ['XBTUSD', 8, 'inverse', 'BTC'],
        ['ETHUSDT', 4, 'linear', 'USDT'],
      ])
    })

    it('bounds a rate by the margins of the contract, and keeps a rate beyond', () => {
      const [first] = ANSWERS.bitmex['instruments'] as object[]
      const bounded = (more: object) => only('bitmex', { instruments: [{ ...first, fundingRate: 0.01, ...more }] })
      const rate = bounded({ initMargin: 0.01, maintMargin: 0.005 })
      expect(rate).to.include({ floor: '-0.00375', cap: '0.00375', boundsSource: 'published' })
      expect(quarantine([rate]).rates).to.deep.equal([rate])
      for (const more of [{}, { initMargin: 0.01 }, { initMargin: 0.01, maintMargin: 0.01 }])
        expect(bounded(more)).to.not.have.any.keys('floor', 'cap', 'boundsSource')
    })

    it('reads an interval of one day, which is written as the second of January', () => {
      const [first] = ANSWERS.bitmex['instruments'] as object[]
      const daily = only('bitmex', { instruments: [{ ...first, fundingInterval: '2000-01-02T00:00:00.000Z' }] })
      expect(daily.intervalHours).to.equal(24)
    })
  })

  it('refuses an answer of another shape as a whole', () => {
    for (const venue of Object.keys(VENUES) as VenueName[])
      for (const junk of [null, '<html>', 3, {}, { data: 'no' }]) {
        const payloads = Object.fromEntries(Object.keys(VENUES[venue].requests).map((name) => [name, junk]))
        expect(() => parse(venue, payloads), `${venue} ${JSON.stringify(junk)}`).to.throw(PayloadError)
      }
  })
})

describe('the quarantine', () => {
  const plausible = only('dydx')
  const reasonOf = (change: Partial<FundingRate>): string | undefined =>
    quarantine([{ ...plausible, ...change }]).quarantined[0]?.reason

  it('lets plausible rates pass', () => {
    expect(quarantine([plausible])).to.deep.equal({ rates: [plausible], quarantined: [] })
  })

  it('lets the rates pass that are worth most, and holds those that no venue could charge', () => {
    for (const rate of ['-0.02', '0.0375', '-0.25']) expect(reasonOf({ rate }), rate).to.equal(undefined)
    expect(reasonOf({ rate: '0.9' })).to.equal('90% at one settlement')
    expect(reasonOf({ rate: '-0.2501' })).to.equal('-25.01% at one settlement')
  })

  it('lets every rate pass that is within the bounds of its venue', () => {
    for (const boundsSource of ['venue', 'published'] as const) {
      const bounds = { floor: '-0.6', cap: '0.4', boundsSource }
      for (const rate of ['0.4', '-0.6', '-0.3']) expect(reasonOf({ ...bounds, rate }), rate).to.equal(undefined)
    }
    expect(reasonOf({ cap: '0.4', boundsSource: 'venue', floor: null, rate: '-0.3' })).to.equal(
      '-30% at one settlement',
    )
    const bounds = { floor: '-0.04', cap: '0.04', boundsSource: 'published' } as const
    expect(reasonOf({ ...bounds, rate: '0.3' })).to.equal('30% at one settlement')
    // A bound in percent.
    expect(reasonOf({ cap: '2', boundsSource: 'venue', rate: '0.3' })).to.equal('30% at one settlement')
  })

  it('holds expected rates beyond the bounds that their venue states, and no settled rate', () => {
    const bounds = { floor: '-0.02', cap: '0.02', boundsSource: 'venue' } as const
    expect(reasonOf({ ...bounds, rate: '-0.02' })).to.equal(undefined)
    expect(reasonOf({ ...bounds, rate: '0.02000001' })).to.equal(undefined)
    expect(reasonOf({ ...bounds, rate: '0.021' })).to.equal("2.1%, beyond the venue's own bounds of -0.02 and 0.02")
    expect(reasonOf({ ...bounds, rate: '-0.03', kind: 'settled' })).to.equal(undefined)
    expect(reasonOf({ ...bounds, boundsSource: 'published', rate: '0.021' })).to.equal(undefined)
  })

  it('holds impossible intervals and times', () => {
    expect(reasonOf({ intervalHours: 0 })).to.match(/0 hours/)
    expect(reasonOf({ intervalHours: -8 })).to.match(/-8 hours/)
    expect(reasonOf({ intervalHours: 100 })).to.match(/100 hours/)
    expect(reasonOf({ nextFunding: AT + 2 * 3600 })).to.match(/further away/)
  })

  it('keeps the first rate of an instrument and holds a second one', () => {
    const { rates, quarantined } = quarantine([plausible, { ...plausible, rate: '0.001' }])
    expect(rates).to.deep.equal([plausible])
    expect(quarantined.map(({ reason }) => reason)).to.deep.equal(['told twice'])
  })

  it('compares rates over equal times: an hourly rate counts eight times as much as an eight-hourly one', () => {
    expect(aprOf(0.0001, 1)).to.equal(0.876)
    expect(aprOf(0.0001, 8)).to.equal(0.1095)
  })
})
