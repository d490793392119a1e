/** Bars as vendors write them. */
import * as fc from 'fast-check'

export interface Bar {
  /** Epoch milliseconds of the open. */
  readonly time: number
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: number
}

/** The parts of a UTC clock. */
function parts(time: number) {
  const [date = '', clock = ''] = new Date(time).toISOString().slice(0, 19).split('T')
  const [year = '', month = '', day = ''] = date.split('-')
  return { date, clock, year, month, day, digits: `${year}${month}${day}`, clockDigits: clock.replaceAll(':', '') }
}

type Cells = readonly (string | number)[]

export interface Vendor {
  readonly header: string | null
  readonly delimiter?: ',' | ';' | '\t'
  /** Lines above the header, or below it. */
  readonly above?: string
  readonly below?: string
  readonly row: (bar: Bar) => Cells
  readonly isNewestFirst?: boolean
  /** Null if the vendor sends no volume. */
  readonly volume?: null
  readonly isZoned?: boolean
}

const usual = ({ open, high, low, close, volume }: Bar): Cells => [open, high, low, close, volume]

export const VENDORS: Readonly<Record<string, Vendor>> = {
  'MetaTrader 5': {
    header: '<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>',
    delimiter: '\t',
    row: (bar) => [parts(bar.time).date.replaceAll('-', '.'), parts(bar.time).clock, ...usual(bar), 0, 12],
  },
  'MetaTrader 4, without a header': {
    header: null,
    row: (bar) => [parts(bar.time).date.replaceAll('-', '.'), parts(bar.time).clock.slice(0, 5), ...usual(bar)],
  },
  'date and time': {
    header: 'date,time,open,high,low,close,volume',
    row: (bar) => [parts(bar.time).date, parts(bar.time).clock.slice(0, 5), ...usual(bar)],
  },
  'a day with midnight, and an hour': {
    header: 'Date,Hour,Open,High,Low,Close',
    volume: null,
    row: (bar) => [`${parts(bar.time).date} 00:00:00`, parts(bar.time).clock, ...usual(bar).slice(0, 4)],
  },
  'a clock of an unknown name': {
    header: 'jour,moment,open,high,low,close,volume',
    row: (bar) => [parts(bar.time).date, parts(bar.time).clock.slice(0, 5), ...usual(bar)],
  },
  Stooq: {
    header: '<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>',
    row: (bar) => ['EURUSD', '5', parts(bar.time).digits, parts(bar.time).clockDigits, ...usual(bar), 0],
  },
  'Stooq, in Polish': {
    header: 'Data,Czas,Otwarcie,Najwyzszy,Najnizszy,Zamkniecie,Wolumen',
    row: (bar) => [parts(bar.time).date, parts(bar.time).clock, ...usual(bar)],
  },
  TradeStation: {
    header: '"Date","Time","Open","High","Low","Close","Vol","OI"',
    row: (bar) => {
      const { month, day, year, clockDigits } = parts(bar.time)
      return [`${month}/${day}/${year}`, clockDigits.slice(0, 4), ...usual(bar), 0]
    },
  },
  'Yahoo Finance': {
    header: 'Date,Open,High,Low,Close,Adj Close,Volume',
    isZoned: true,
    row: (bar) => [
      `${parts(bar.time).date} ${parts(bar.time).clock}+00:00`,
      ...usual(bar).slice(0, 4),
      bar.close * 0.9,
      bar.volume,
    ],
  },
  'yfinance, with a header of three lines': {
    header: 'Price,Close,High,Low,Open,Volume',
    below: 'Ticker,AAA,AAA,AAA,AAA,AAA\nDatetime,,,,,',
    isZoned: true,
    row: (bar) => [
      `${parts(bar.time).date} ${parts(bar.time).clock}+00:00`,
      bar.close,
      bar.high,
      bar.low,
      bar.open,
      bar.volume,
    ],
  },
  'Binance, with a header': {
    header:
      'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
    isZoned: true,
    row: (bar) => [bar.time, ...usual(bar), bar.time + 59_999, bar.volume * bar.close, 9, bar.volume / 2, 7, 0],
  },
  'Binance, in microseconds without a header': {
    header: null,
    isZoned: true,
    row: (bar) => [bar.time * 1000, ...usual(bar), bar.time * 1000 + 59_999_999, bar.volume * bar.close, 9, 5, 7, 0],
  },
  'Kraken, without a header': {
    header: null,
    isZoned: true,
    row: (bar) => [bar.time / 1000, ...usual(bar), 17],
  },
  'Kraken, as its API sends them': {
    header: null,
    isZoned: true,
    row: (bar) => [bar.time / 1000, ...usual(bar).slice(0, 4), (bar.high + bar.low) / 2, bar.volume, 17],
  },
  KuCoin: {
    header: null,
    isNewestFirst: true,
    isZoned: true,
    row: (bar) => [bar.time / 1000, bar.open, bar.close, bar.high, bar.low, bar.volume, bar.volume * bar.close],
  },
  Coinbase: {
    header: null,
    isNewestFirst: true,
    isZoned: true,
    row: (bar) => [bar.time / 1000, bar.low, bar.high, bar.open, bar.close, bar.volume],
  },
  Bitfinex: {
    header: 'MTS,OPEN,CLOSE,HIGH,LOW,VOLUME',
    isZoned: true,
    row: (bar) => [bar.time, bar.open, bar.close, bar.high, bar.low, bar.volume],
  },
  'Alpha Vantage': {
    header: 'timestamp,1. open,2. high,3. low,4. close,5. volume',
    isNewestFirst: true,
    row: (bar) => [`${parts(bar.time).date} ${parts(bar.time).clock}`, ...usual(bar)],
  },
  Dukascopy: {
    header: 'Gmt time,Open,High,Low,Close,Volume',
    isZoned: true,
    row: (bar) => {
      const { day, month, year, clock } = parts(bar.time)
      return [`${day}.${month}.${year} ${clock}.000`, ...usual(bar)]
    },
  },
  'Dukascopy, in local time': {
    header: 'Local time,Open,High,Low,Close,Volume',
    isZoned: true,
    row: (bar) => {
      const { day, month, year, clock } = parts(bar.time + 3_600_000)
      return [`${day}.${month}.${year} ${clock}.000 GMT+0100`, ...usual(bar)]
    },
  },
  'Interactive Brokers': {
    header: 'date,open,high,low,close,volume,average,barCount',
    row: (bar) => [`${parts(bar.time).digits} ${parts(bar.time).clock}`, ...usual(bar), (bar.high + bar.low) / 2, 5],
  },
  Polygon: {
    header: 'v,vw,o,c,h,l,t,n',
    isZoned: true,
    row: (bar) => [bar.volume, (bar.high + bar.low) / 2, bar.open, bar.close, bar.high, bar.low, bar.time, 4],
  },
  CryptoDataDownload: {
    above: 'https://www.CryptoDataDownload.com',
    header: 'unix,date,symbol,open,high,low,close,Volume BTC,Volume USD',
    isNewestFirst: true,
    isZoned: true,
    row: (bar) => [
      bar.time,
      `${parts(bar.time).date} ${parts(bar.time).clock}`,
      'BTC/USD',
      ...usual(bar),
      bar.volume * bar.close,
    ],
  },
  'HistData, without a header': {
    header: null,
    delimiter: ';',
    row: (bar) => [`${parts(bar.time).digits} ${parts(bar.time).clockDigits}`, ...usual(bar)],
  },
  'nanoseconds as text': {
    header: 'ts,o,h,l,c,v',
    isZoned: true,
    row: (bar) => [`"${bar.time}000000"`, ...usual(bar)],
  },
  'German words, with decimal commas': {
    header: 'Datum;Uhrzeit;Eröffnung;Hoch;Tief;Schluss;Stück',
    delimiter: ';',
    row: (bar) => {
      const { day, month, year, clock } = parts(bar.time)
      return [`${day}.${month}.${year}`, clock, ...usual(bar).map((value) => String(value).replace('.', ','))]
    },
  },
}

/** A file of bars. */
export function fileOf({ header, delimiter = ',', above, below, row, isNewestFirst }: Vendor, bars: readonly Bar[]) {
  const sorted = isNewestFirst ? bars.toReversed() : bars
  const lines = sorted.map((bar) => row(bar).join(delimiter))
  return Buffer.from([above, header, below, ...lines].filter((line) => line !== undefined && line !== null).join('\n'))
}

const STEPS = [1, 5, 15, 60, 240].map((minutes) => minutes * 60_000)

/** A random walk whose bars open where the ones before closed. No bar is flat. */
export const series: fc.Arbitrary<readonly Bar[]> = fc
  .record({
    start: fc.integer({ min: Date.UTC(2019, 0, 1) / 60_000, max: Date.UTC(2025, 0, 1) / 60_000 }),
    step: fc.constantFrom(...STEPS),
    price: fc.integer({ min: 5000, max: 9_000_000 }),
    moves: fc.array(fc.tuple(fc.integer({ min: -20, max: 20 }), fc.nat(9), fc.nat(9)), {
      minLength: 40,
      maxLength: 90,
    }),
  })
  .map(({ start, step, price, moves }) => {
    let last = price
    return moves.map(([move, up, down], index) => {
      const [open, close] = [last, last + move]
      last = close
      const cents = [open, Math.max(open, close) + up + 1, Math.min(open, close) - down - 1, close].map(
        (one) => one / 100,
      )
      const [o, high, low, c] = cents as [number, number, number, number]
      return {
        time: Math.floor((start * 60_000) / step) * step + index * step,
        open: o,
        high,
        low,
        close: c,
        volume: 50 + up * 7,
      }
    })
  })
