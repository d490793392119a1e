/** Gathers what is known about a symbol at a point in time, with the source of each number. */
import {
  type Ask,
  type Catalog,
  type InputOf,
  NotFound,
  type OperationId,
  type OutputOf,
  Unavailable,
} from 'tollgate/plugin'
import type { CoveredSymbols, OrderBook, Quotes, TradingSession } from '../../schemas/types.d.ts'
import type { BarFigures } from './bar-figures.ts'
import { type MarketClasses, type ClassName, coinOf, marketBehind, perpetualOf } from './market-classes.ts'
import type { BarHistory } from './bar-history.ts'
import type { ErrorHistory } from './error-history.ts'
import type { EstimateInputs } from './estimate.ts'

export interface MarketInputs {
  readonly symbol: string
  readonly className: ClassName
  readonly session: TradingSession
  /** The fees are those of the order. */
  readonly inputs: Omit<EstimateInputs, 'takerFeeBps' | 'makerFeeBps'>
  /** Middle of the book or of the last quote, otherwise the last close; null without data. */
  readonly price: number | null
  readonly tickBps: number | null
  readonly sources: {
    readonly price: string | null
    readonly spread: string
    readonly volatility: string
    readonly volume: string
  }
  /** A perpetual's own book says which contract it is of; that of its spot market does not. */
  readonly book: (NonNullable<OrderBook['book']> & { readonly instrument?: string }) | null
  readonly bars: BarFigures | null
  /** Time of the newest number used, epoch seconds; without data, the requested time. */
  readonly newest: number
  /** Seconds from the oldest number used to the requested time, or to the last close of a closed market. */
  readonly age: number
  readonly isStale: boolean
}

const DAY = 86_400
/** Older books are not used. */
export const BOOK_SECONDS = 120
/** Quotes are averaged over this time, and used only if the bars are not newer by more than this. */
const QUOTES_SECONDS = 3600
/** How far back quotes are read: over a weekend and a holiday. */
const QUOTES_REACH = 8 * DAY
/** An input is stale if it is older than this, plus an allowance for the length of its bars. */
const STALE_SECONDS = 300
/** Books of perpetuals are read every five minutes. A stale one is worse than the newer book of the spot market. */
const PERPETUAL_BOOK_SECONDS = STALE_SECONDS
/** Daily bars of a market with sessions may be as old as a long weekend. */
const STALE_DAYS = 4 * DAY
/** A price and the last close disagree if they differ by more than this, and by more standard deviations of the time between. */
const DISAGREEMENT = { share: 0.05, sigmas: 8 }
/** Gathers the inputs of an estimate for a symbol at `at` (epoch seconds). Throws NotFound for an unknown symbol. */
export async function gatherInputs(
  ask: Ask,
  requested: string,
  at: number,
  parts: {
    readonly classes: MarketClasses
    readonly history: BarHistory
    readonly errors: ErrorHistory
    readonly catalog: Pick<Catalog, 'operations'>
  },
): Promise<MarketInputs> {
  const { classes, history, errors: errorsOf, catalog } = parts
  const of = <Id extends OperationId>(id: Id, query: object): Promise<OutputOf<Id>> => ask(id, { query } as InputOf<Id>)
  const { market, isPerpetual } = marketBehind(requested)
  const session = await of('getTradingSession', { symbol: market })
  const { symbol } = session
  if (isPerpetual && session.session === 'us_equity') throw new NotFound(`symbol: ${symbol} has no perpetual`)
  const dayMinutes = session.session === '24x7' ? 1440 : 390
  const traded = { symbol, session: session.session, openSince: session.is_open ? session.opened : null, dayMinutes }
  const [{ symbols }, { book: latestBook }, { quotes: latestQuotes }, bars, { book: perpetualBook }] =
    await Promise.all([
      of('getSymbols', {}),
      of('getBook', { symbol }),
      of('getQuotes', { symbol, from: at - QUOTES_REACH }),
      history(ask, traded, at),
      isPerpetual && catalog.operations.has('getPerpetualBook')
        ? of('getPerpetualBook', { symbol: coinOf(symbol), max_age_seconds: PERPETUAL_BOOK_SECONDS })
        : { book: null },
    ])
  const about = symbols.find((one) => one.symbol === symbol) as CoveredSymbols['symbols'][number]
  const className = session.session === 'us_equity' ? 'equity' : isPerpetual ? 'perpetual' : 'spot'
  const row = classes[className]
  const book = perpetualBook ?? (latestBook && at - latestBook.time <= BOOK_SECONDS ? latestBook : null)
  // The books of contracts are not kept, and those of the spot market say nothing of a contract.
  const errors = book && !isPerpetual ? await errorsOf(ask, { symbol, venue: book.venue }, at) : null
  const quoted = book || !latestQuotes ? null : quotedOf(latestQuotes, bars?.newest ?? 0)
  const middle = book ? (book.bids[0]![0] + book.asks[0]![0]) / 2 : null
  const price = middle ?? quoted?.middle ?? bars?.lastClose ?? null
  // The tick of the spot market is not that of a contract.
  const tickBps = tickOf(perpetualBook ? null : about.tick, session.session, price)
  const barSource = bars ? nameOf(bars.intervalSeconds) : 'class'

  const quotedSpread = book ? ((book.asks[0]![0] - book.bids[0]![0]) / middle!) * 1e4 : (quoted?.spreadBps ?? null)
  const spread =
    quotedSpread === null
      ? estimatedSpread(bars?.spreadBps ?? null, tickBps ?? 0, { barSource, classBps: row.spread_bps })
      : { bps: quotedSpread, source: book ? 'book' : 'quotes' }
  const used = [
    ...(book ? [{ time: book.time, allowance: 0 }] : []),
    ...(quoted ? [{ time: quoted.time, allowance: 0 }] : []),
    ...(bars
      ? [{ time: bars.newest, allowance: bars.intervalSeconds === DAY ? STALE_DAYS : bars.intervalSeconds }]
      : []),
  ]
  const until = session.is_open ? at : (session.closes ?? at)
  const ageOf = ({ time }: { time: number }): number => Math.max(0, until - time)
  return {
    symbol: isPerpetual ? perpetualOf(symbol) : symbol,
    className,
    session,
    inputs: {
      spreadBps: spread.bps,
      sigmaDaily: bars?.sigmaDaily ?? row.sigma_daily,
      advUsd: bars?.advUsd ?? row.adv_usd,
      dayMinutes,
      book,
      errors,
    },
    price,
    tickBps,
    sources: {
      price: book ? 'book' : quoted ? 'quotes' : bars ? barSource : null,
      spread: spread.source,
      volatility: bars?.sigmaDaily == null ? 'class' : barSource,
      volume: bars?.advUsd == null ? 'class' : barSource,
    },
    book,
    bars,
    newest: used.length > 0 ? Math.max(...used.map(({ time }) => time)) : at,
    age: Math.max(0, ...used.map(ageOf)),
    isStale: used.some((one) => ageOf(one) > STALE_SECONDS + one.allowance),
  }
}

/** Throws Unavailable if the bars have another price than the book or the quotes: one of them is then of another market. */
export function requireAgreement({ symbol, price, book, bars, newest, inputs }: MarketInputs): void {
  if (!bars || price === null) return
  const { share, sigmas } = DISAGREEMENT
  const usual = sigmas * inputs.sigmaDaily * Math.sqrt((newest - bars.newest) / DAY)
  if (Math.abs(Math.log(price / bars.lastClose)) <= Math.max(share, usual)) return
  throw new Unavailable(
    `${symbol} stands at ${price} in its ${book ? 'order book' : 'quotes'} but at ${bars.lastClose} in its bars. Nothing was charged.`,
  )
}

/** The mean spread of the last hour of quotes and the middle of the last quote; null if the bars are much newer. */
function quotedOf({ time, bid, ask }: NonNullable<Quotes['quotes']>, barsEnd: number) {
  const last = time.length - 1
  if (last < 0 || time[last]! < barsEnd - QUOTES_SECONDS) return null
  let sum = 0
  let count = 0
  for (let i = last; i >= 0 && time[i]! > time[last]! - QUOTES_SECONDS; i -= 1) {
    sum += (2 * (ask[i]! - bid[i]!)) / (ask[i]! + bid[i]!)
    count += 1
  }
  return { spreadBps: (1e4 * sum) / count, middle: (bid[last]! + ask[last]!) / 2, time: time[last]! }
}

/** The spread without a book or quotes: from bars, otherwise that of the class, and never below one tick. */
function estimatedSpread(
  barsBps: number | null,
  tickBps: number,
  { barSource, classBps }: { readonly barSource: string; readonly classBps: number },
) {
  if (barsBps === null) return { bps: Math.max(classBps, tickBps), source: 'class' }
  return { bps: Math.max(barsBps, tickBps), source: barSource }
}

/** One tick in basis points of the price. US equities trade in cents, and in hundredths of a cent below a dollar. */
function tickOf(tick: number | null, session: '24x7' | 'us_equity', price: number | null): number | null {
  if (price === null) return null
  const step = session === 'us_equity' ? (price >= 1 ? 0.01 : 0.0001) : tick
  return step === null ? null : (1e4 * step) / price
}

const SPANS: Readonly<Record<number, string>> = { 60: '1m', 300: '5m', 900: '15m', 3600: '1h', [DAY]: '1d' }

function nameOf(seconds: number): string {
  return `bars_${SPANS[seconds] ?? `${seconds}s`}`
}
