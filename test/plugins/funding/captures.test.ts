import { expect } from 'chai'
import { openTestProduct, TestClock } from 'tollgate/testing'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import funding from '../../../plugins/funding/index.ts'
import { quarantine, type FundingRate, type VenueName } from '../../../plugins/funding/funding-rate.ts'
import { readFundingRecordings } from '../../../plugins/funding/recorded-payloads.ts'
import { VENUES } from '../../../plugins/funding/venues/funding-venues.ts'
import { PayloadError } from '../../../plugins/funding/venues/funding-venue.ts'
import { ANSWERS, AT } from './fake-venues.ts'

describe('recorded answers of venues', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kept-'))
    mkdirSync(join(folder, 'deep'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))
  const record = (name: string, content: unknown): void => {
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    writeFileSync(join(folder, name), name.endsWith('.gz') ? gzipSync(text) : text)
  }
  const readPolls = async () => {
    const { polls } = await readFundingRecordings(folder)
    return Object.fromEntries(polls.map(({ venue, at, parsed }) => [venue, [at, parsed.rates.length]]))
  }

  it('are recognised by their content and combined, with or without their URL', async () => {
    record('binance-premiumIndex.json', ANSWERS.binance['rates'])
    record('2026-11-20T12-03-09_binance_fundingInfo.json', ANSWERS.binance['intervals'])
    record('deep/Bybit_tickers_linear.json', ANSWERS.bybit['linear'])
    record('deep/Bybit_tickers_inverse.json', ANSWERS.bybit['inverse'])
    record('okx.json.gz', ANSWERS.okx['rates'])
    record('hyperliquid_2026-11-20T12:03:03Z.json', ANSWERS.hyperliquid['contexts'])
    record('dydx_20261120_120303.json', { httpResponse: ANSWERS.dydx['markets'] })
    record('kraken_latest.json', ANSWERS.kraken['tickers'])
    const [{ path }] = Object.values(VENUES.gate.requests) as [{ path: string }]
    record('funding-1.json', {
      url: VENUES.gate.url + path,
      captured_at: new Date(AT * 1000),
      body: ANSWERS.gate['contracts'],
    })
    record('bitmex_active_2026-11-20T12:03:03.json', ANSWERS.bitmex['instruments'])
    expect(await readPolls()).to.deep.equal({
      binance: [AT, 3],
      bybit: [AT, 3],
      okx: [AT, 2],
      hyperliquid: [AT, 2],
      dydx: [AT, VENUES.dydx.parse(ANSWERS.dydx, AT).rates.length],
      kraken: [AT, 1],
      gate: [AT, 2],
      bitmex: [AT, 2],
    })
  })

  it('are read from streams and from single rows', async () => {
    const time = AT * 1000
    const [linear] = (ANSWERS.bybit['linear'] as { result: { list: object[] } }).result.list
    record('bybit__ws_ticker_linear.json', { ts: time, data: linear })
    record('bybit__ws_ticker_inverse.json', { ts: time + 3_600_000, data: { ...linear, symbol: 'BTCUSD' } })
    const [row] = ANSWERS.bitmex['instruments'] as object[]
    record('bitmex__http_get_instrument_a.json', { ...row, timestamp: new Date(time) })
    record('bitmex__http_get_instrument_b.json', [{ ...row, symbol: 'B', timestamp: new Date(time + 3_600_000) }])
    const { polls } = await readFundingRecordings(folder)
    const told = polls.map(({ venue, at, parsed: { rates } }) => [venue, at, rates[0]?.instrument, rates[0]?.contract])
    expect(told).to.have.deep.members([
      ['bybit', AT, 'BTCUSDT', 'linear'],
      ['bybit', AT + 3600, 'BTCUSD', 'inverse'],
      ['bitmex', AT, 'XBTUSD', 'inverse'],
      ['bitmex', AT + 3600, 'B', 'inverse'],
    ])
  })

  it('are skipped without a time, or when they are something else', async () => {
    record('hyperliquid_now.json', ANSWERS.hyperliquid['contexts'])
    record('gate_candles_2026-11-20.json', [[1, 2, 3]])
    record('bybit_klines_2026-11-20.json', { retCode: 0, result: { category: 'linear', list: [['1', '2']] } })
    record('okx_funding_2026-11-20.csv', 'a,b')
    expect(await readPolls()).to.deep.equal({})
  })

  it('are read even if one of them is broken or incomplete', async () => {
    record('kraken_latest.json', ANSWERS.kraken['tickers'])
    record('gate_2026-11-20.json', '{"cut":')
    record('kraken__http_futures_tickers.json', '')
    record('binance-premiumIndex.json', ANSWERS.binance['rates'])
    const { unread } = await readFundingRecordings(folder)
    expect(unread.map(({ file }) => file)).to.have.members([
      'gate_2026-11-20.json',
      'kraken__http_futures_tickers.json',
      'binance',
    ])
    const product = await openTestProduct(funding, {
      clock: new TestClock(new Date((AT + 60) * 1000).toISOString()),
      environment: { DATA_MODE: 'replay', REPLAY_DIR: folder, REPLAY_SHIFT: 'none' },
    })
    const { rates, unavailable } = await product.call('getPerpFundingRates', { query: { limit: 10 } })
    expect(rates.map(({ venue }) => venue)).to.deep.equal(['kraken'])
    expect(unavailable).to.have.length(7)
    await product.close()
  })

  it('may spread one history over several files', async () => {
    const head = 'timestamp,symbol,funding_rate\n'
    const row = (hour: number): string => `${(AT - 183 + hour * 3600) * 1000},BTCUSDT,0.0001\n`
    record('binance_usdm_funding_2026Q3.csv', head + row(0) + row(8))
    record('binance_usdm_funding_2026Q4.csv.gz', head + row(8) + row(16))
    const { settled } = await readFundingRecordings(folder)
    expect(settled?.get('BTCUSDT')).to.have.length(3)
  })
})

/** The rates that a parser reads; none if it refuses the answer with a PayloadError. Other errors are thrown. */
function ratesOrNone(venue: VenueName, payloads: Record<string, unknown>): readonly FundingRate[] {
  try {
    return VENUES[venue].parse(payloads, AT).rates
  } catch (error) {
    if (error instanceof PayloadError) return []
    throw error
  }
}

type Fields = Record<string, unknown>
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** Every value in a payload, as the object that holds it and the name of the field. */
function fieldsOf(value: unknown): { holder: Fields; name: string }[] {
  if (!isFields(value)) return []
  return Object.entries(value).flatMap(([name, child]) => [{ holder: value, name }, ...fieldsOf(child)])
}

describe('a venue answer that is not quite as documented', () => {
  const venues = Object.keys(VENUES) as VenueName[]
  const copyOf = (venue: VenueName): Record<string, unknown> => structuredClone({ ...ANSWERS[venue] })
  const ratesOf = (venue: VenueName, payloads: Record<string, unknown>) => VENUES[venue].parse(payloads, AT).rates

  it('gives the same rates with unknown fields in every object', () => {
    for (const venue of venues) {
      const payloads = copyOf(venue)
      for (const holder of new Set(fieldsOf(payloads).map((place) => place.holder)))
        if (!Array.isArray(holder) && holder !== payloads && !('BTC-USD' in holder)) holder['brandNew'] = { a: [1] }
      expect(ratesOf(venue, payloads), venue).to.deep.equal(ratesOf(venue, copyOf(venue)))
    }
  })

  it('gives the same rates with strings for numbers and numbers for strings', () => {
    for (const venue of venues) {
      const payloads = copyOf(venue)
      for (const { holder, name } of fieldsOf(payloads)) {
        const value = holder[name]
        if (typeof value === 'number') holder[name] = String(value)
        else if (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)) holder[name] = Number(value)
      }
      const plain = (rates: ReturnType<typeof ratesOf>) => rates.map((rate) => ({ ...rate, rate: Number(rate.rate) }))
      expect(plain(ratesOf(venue, payloads)), venue).to.deep.equal(plain(ratesOf(venue, copyOf(venue))))
    }
  })

  it('never leads to an invented rate or interval if a field is missing', () => {
    for (const venue of venues) {
      const originals = new Map(ratesOf(venue, copyOf(venue)).map((rate) => [rate.instrument, rate]))
      const count = fieldsOf(copyOf(venue)).length
      for (let at = 0; at < count; at += 1) {
        const payloads = copyOf(venue)
        const { holder, name } = fieldsOf(payloads)[at] as ReturnType<typeof fieldsOf>[number]
        // Binance lists adjusted intervals by contract. Without the name it is unknown whose interval it was.
        if (Array.isArray(holder) || ('fundingIntervalHours' in holder && name === 'symbol')) continue
        // These fields mark a contract that does not trade. Without them, it counts as one that does.
        if (['isDelisted', 'status', 'state', 'suspended'].includes(name)) continue
        delete holder[name]
        for (const { instrument, rate, intervalHours } of ratesOrNone(venue, payloads))
          expect([rate, intervalHours], `${venue} without ${name}`).to.deep.equal([
            originals.get(instrument)?.rate,
            originals.get(instrument)?.intervalHours,
          ])
      }
    }
  })

  it('never yields a figure that is not a number', () => {
    for (const venue of venues)
      for (const junk of [null, '', 'abc', [], {}, true, -1, 1e300, '1e999', '-1e999', 'NaN'])
        for (let at = 0; at < fieldsOf(copyOf(venue)).length; at += 1) {
          const payloads = copyOf(venue)
          const { holder, name } = fieldsOf(payloads)[at] as ReturnType<typeof fieldsOf>[number]
          holder[name] = junk
          for (const one of quarantine(ratesOrNone(venue, payloads)).rates)
            for (const figure of [
              one.rate,
              one.markPrice,
              one.indexPrice,
              one.predictedRate,
              one.nextFunding,
              one.observed,
            ])
              expect(Number.isFinite(Number(figure ?? 0)), `${venue} ${name} ${JSON.stringify(junk)}`).to.equal(true)
        }
  })
})
