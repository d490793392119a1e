/** Answers in the format of each venue, three minutes past an hour, and a local server that serves them. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { VenueName } from '../../../plugins/funding/funding-rate.ts'
import { VENUES } from '../../../plugins/funding/venues/funding-venues.ts'

/** 2026-11-20T12:03:03Z, epoch seconds. */
export const AT = Date.UTC(2026, 10, 20, 12, 3, 3) / 1000
const HOUR = AT - 183
const ms = (hours: number): number => (HOUR + hours * 3600) * 1000

/** What a coin costs at every venue, by the beginning of the name of its contract. */
const PRICES = { BTC: 98_000.1, '1000PEPE': 0.02, PEPE: 0.00002, ETH: 3600, SOL: 190 }
const priceOf = (contract: string): string =>
  String(Object.entries(PRICES).find(([coin]) => contract.startsWith(coin))?.[1])

const binance = (symbol: string, lastFundingRate: string, hours: number) => ({
  symbol,
  markPrice: priceOf(symbol),
  indexPrice: priceOf(symbol),
  estimatedSettlePrice: priceOf(symbol),
  lastFundingRate,
  interestRate: '0.00010000',
  nextFundingTime: ms(hours),
  time: AT * 1000,
})
const bybit = (symbol: string, fundingRate: string, fundingIntervalHour: string) => ({
  symbol,
  markPrice: priceOf(symbol),
  indexPrice: priceOf(symbol),
  fundingRate,
  nextFundingTime: String(ms(4)),
  fundingIntervalHour,
})
const okx = (instId: string, fundingRate: string, next: number, after: number) => ({
  instId,
  instType: 'SWAP',
  fundingRate,
  nextFundingRate: '',
  fundingTime: String(ms(next)),
  nextFundingTime: String(ms(after)),
  ts: String(AT * 1000),
})
const gate = (name: string, funding_rate: string, funding_interval: number, hours: number) => ({
  name,
  type: 'direct',
  funding_rate,
  funding_rate_indicative: '0.0001',
  funding_interval,
  funding_next_apply: HOUR + hours * 3600,
  mark_price: priceOf(name),
  index_price: priceOf(name),
})

export const ANSWERS: Readonly<Record<VenueName, Readonly<Record<string, unknown>>>> = {
  binance: {
    rates: [
      binance('BTCUSDT', '0.00010000', 4),
      binance('1000PEPEUSDT', '-0.00030299', 4),
      binance('ETHUSDC', '0.00001250', 1),
      { ...binance('BTCUSDT_261225', '', 0), nextFundingTime: 0 },
    ],
    intervals: [
      { symbol: '1000PEPEUSDT', adjustedFundingRateCap: '0.02', fundingIntervalHours: 4, disclaimer: false },
      { symbol: 'ETHUSDC', adjustedFundingRateCap: '0.02', fundingIntervalHours: 1, disclaimer: false },
    ],
  },
  bybit: {
    linear: {
      retCode: 0,
      retMsg: 'OK',
      result: {
        category: 'linear',
        list: [bybit('BTCUSDT', '-0.000212', '8'), bybit('SOLPERP', '0.0001', '4'), bybit('BTC-26DEC26', '', '')],
      },
      time: AT * 1000,
    },
    inverse: {
      retCode: 0,
      retMsg: 'OK',
      result: { category: 'inverse', list: [bybit('BTCUSD', '0.0001', '8'), bybit('BTCUSDZ26', '', '')] },
      time: AT * 1000,
    },
  },
  okx: {
    rates: {
      code: '0',
      msg: '',
      data: [
        okx('BTC-USDT-SWAP', '0.0001', 4, 12),
        okx('ETH-USD-SWAP', '0.00005', 0.5, 4.5),
        okx('BTC-USDT-261225', '', 4, 12),
      ],
    },
  },
  hyperliquid: {
    contexts: [
      { universe: [{ name: 'BTC', szDecimals: 5 }, { name: 'MATIC', isDelisted: true }, { name: 'kPEPE' }] },
      [
        { funding: '0.0000125', markPx: '98000.0', oraclePx: '98001.0' },
        { funding: '0.0', markPx: '0.3', oraclePx: '0.3' },
        { funding: '-0.0000031', markPx: '0.02', oraclePx: '0.02' },
      ],
    ],
  },
  dydx: {
    markets: {
      markets: {
        'BTC-USD': {
          ticker: 'BTC-USD',
          status: 'ACTIVE',
          nextFundingRate: '0.00000254545454545455',
          oraclePrice: '98000',
        },
        'LUNA-USD': { ticker: 'LUNA-USD', status: 'FINAL_SETTLEMENT', nextFundingRate: '0', oraclePrice: '1' },
      },
    },
  },
  kraken: {
    tickers: {
      result: 'success',
      serverTime: new Date(AT * 1000).toISOString(),
      tickers: [
        {
          symbol: 'PF_XBTUSD',
          tag: 'perpetual',
          pair: 'XBT:USD',
          markPrice: 98_000,
          indexPrice: 98_001,
          fundingRate: 1.1,
          fundingRatePrediction: 1.2,
          suspended: false,
        },
        {
          symbol: 'PI_XBTUSD',
          tag: 'perpetual',
          pair: 'XBT:USD',
          markPrice: 98_000,
          indexPrice: 98_001,
          fundingRate: 1e-10,
          suspended: false,
        },
        { symbol: 'FF_XBTUSD_261225', tag: 'quarter', pair: 'XBT:USD', markPrice: 99_000, suspended: false },
      ],
    },
  },
  gate: { contracts: [gate('BTC_USDT', '0.000086', 28_800, 4), gate('PEPE_USDT', '-0.0001', 14_400, 1)] },
  bitmex: {
    instruments: [
      {
        symbol: 'XBTUSD',
        typ: 'FFWCSX',
        state: 'Open',
        underlying: 'XBT',
        quoteCurrency: 'USD',
        settlCurrency: 'XBt',
        isInverse: true,
        isQuanto: false,
        fundingRate: 0.0001,
        indicativeFundingRate: 0.000125,
        fundingInterval: '2000-01-01T08:00:00.000Z',
        fundingTimestamp: new Date(ms(8)).toISOString(),
        markPrice: 98_000,
        indicativeSettlePrice: 98_001,
        timestamp: new Date(AT * 1000).toISOString(),
      },
      {
        symbol: 'ETHUSDT',
        typ: 'FFWCSX',
        state: 'Open',
        underlying: 'ETH',
        quoteCurrency: 'USDT',
        settlCurrency: 'USDt',
        isInverse: false,
        isQuanto: false,
        fundingRate: 1e-7,
        fundingInterval: '2000-01-01T04:00:00.000Z',
        fundingTimestamp: new Date(ms(4)).toISOString(),
        markPrice: 3600,
        timestamp: new Date(AT * 1000).toISOString(),
      },
      { symbol: 'XBTZ26', typ: 'FFCCSX', state: 'Open', underlying: 'XBT', fundingRate: null },
      {
        symbol: 'OLDUSD',
        typ: 'FFWCSX',
        state: 'Unlisted',
        underlying: 'OLD',
        fundingRate: 0.0001,
        fundingInterval: '2000-01-01T08:00:00.000Z',
      },
    ],
  },
}

export interface Fault {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
}

export interface FakeVenues {
  /** Address of a venue, all on one server. */
  urlOf(venue: VenueName): string
  /** Requests so far: "binance GET /fapi/v1/premiumIndex". */
  readonly requests: string[]
  /** Answers that replace those of a venue until they are removed. */
  readonly faults: Map<VenueName, Fault>
  /** Payloads that replace the usual ones, by "venue/request". */
  readonly payloads: Map<string, unknown>
  close(): Promise<void>
}

/** One server for all venues, each under its own folder. */
export async function openVenues(): Promise<FakeVenues> {
  const requests: string[] = []
  const faults = new Map<VenueName, Fault>()
  const payloads = new Map<string, unknown>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, name = '', path = ''] = /^\/(\w+)(\/.*)$/.exec(request.url ?? '') ?? []
    const venue = name as VenueName
    requests.push(`${venue} ${request.method} ${path}`)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const fault = faults.get(venue)
    if (fault) return void response.writeHead(fault.status, fault.headers).end(fault.text ?? '{"message":"no"}')
    const found = Object.entries(VENUES[venue].requests).find(
      ([, expected]) => expected.path === path && (expected.body ? JSON.stringify(expected.body) : '') === body,
    )
    if (!found) return void response.writeHead(404).end('{}')
    const payload = payloads.get(`${venue}/${found[0]}`) ?? ANSWERS[venue][found[0]]
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(payload))
  }

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    urlOf: (venue) => `http://127.0.0.1:${port}/${venue}`,
    requests,
    faults,
    payloads,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
