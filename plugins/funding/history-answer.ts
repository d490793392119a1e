/** Builds the answer of the settled history: what was paid, beside the rates that are expected next. */
import { InvalidInput, NotFound, NotHeld, type Place, readCursor, Unavailable, writeCursor } from 'tollgate/plugin'
import type { DataMode } from '../lib/feeds/data-settings.ts'
import type { FundingHistory, FundingHistoryQuery, FundingSettlement } from '../../schemas/types.d.ts'
import { epochSeconds, formatSeconds } from '../lib/time/timestamps.ts'
import { readCurrentRates } from './current-rates.ts'
import type { RateSource } from './funding-rate.ts'
import { aprOf, rateOver } from './rate-arithmetic.ts'
import { itemOf, symbolsIn, venuesIn } from './rates-answer.ts'
import type { HeldContract, Settlement, SettlementSource } from './settlement-store.ts'

const DAY = 86_400
/** Days of an answer without `start`. */
const USUAL_DAYS = 7
/** The longest interval of any venue. A longer gap is a settlement that is not held. */
const LONGEST_HOURS = 24
/** A contract whose last settlement is not older is read up to the present. */
const CAUGHT_UP_SECONDS = LONGEST_HOURS * 3600
/** A contract that is read on time is held to within this of the present: venues may list a settlement late. */
const ON_TIME_SECONDS = 3 * 3600

export interface HistoryParts {
  readonly settled: SettlementSource
  readonly current: RateSource
  readonly dataMode: DataMode
}

/**
 * One page of settlements, oldest first. Throws InvalidInput for a window that ends before it starts, NotHeld for one in which
 * nothing was settled, with the window that holds something, and Unavailable while the settlements are still being fetched.
 */
export async function answerFundingHistory(
  { settled, current, dataMode }: HistoryParts,
  query: FundingHistoryQuery,
  now: Date,
): Promise<FundingHistory> {
  const place = query.cursor === undefined ? null : readCursor(query.cursor, query)
  const asOf = Math.floor(Math.min(now.getTime() / 1000, place?.asOf ?? Infinity))
  const [symbols, venues] = [symbolsIn(query.symbol), venuesIn(query.venue)]
  const end = Math.min(momentOf(query.end, 'end') ?? asOf + 1, asOf + 1)
  const start = momentOf(query.start, 'start') ?? end - USUAL_DAYS * DAY
  if (start >= end) {
    const msg = `must be before end, which is ${formatSeconds(end)}`
    throw new InvalidInput([{ loc: ['query', 'start'], msg, type: 'value_error', input: query.start }])
  }
  const contracts = (await settled.contracts(symbols)).filter(
    ({ venue }) => venues.length === 0 || venues.includes(venue),
  )
  const after = place === null ? null : settlementKey(place.key)
  const range = { symbols, venues, from: start, to: end, after, limit: query.limit + 1 }
  const found = await settled.read(range)
  if (found.length === 0 && after === null) throw nothingHeld(contracts, symbols, start, asOf)
  const page = found.slice(0, query.limit)
  const last = page.at(-1)
  const more = last !== undefined && found.length > page.length
  return {
    as_of: formatSeconds(asOf),
    data_mode: dataMode,
    start: formatSeconds(start),
    end: formatSeconds(end),
    count: page.length,
    next_cursor: more ? writeCursor({ asOf, key: [last.time, last.venue, last.instrument] }, query) : null,
    settlements: await withIntervals(settled, page),
    contracts: contracts.map(({ venue, instrument, symbol, held_from, reached, error }) => ({
      venue,
      instrument,
      symbol,
      held_from: formatSeconds(held_from),
      held_to: formatSeconds(Math.min(reached, asOf)),
      complete: held_from <= start && reached >= Math.min(end - 1, asOf - ON_TIME_SECONDS),
      error,
    })),
    expected: place === null ? await expectedRates(current, symbols, venues, asOf) : [],
  }
}

/** The key of a settlement in a cursor, which the buyer may have written. Throws InvalidInput for any other. */
function settlementKey([time, venue, instrument, ...rest]: Place['key']): [number, string, string] {
  if (Number.isSafeInteger(time) && typeof venue === 'string' && typeof instrument === 'string' && rest.length === 0)
    return [time as number, venue, instrument]
  throw new InvalidInput('is not a cursor of this query', ['query', 'cursor'])
}

function momentOf(value: string | number | undefined, name: string): number | null {
  if (value === undefined) return null
  const seconds = epochSeconds(value)
  if (seconds !== null) return Math.ceil(seconds)
  const msg = 'must be a date and time such as 2026-11-19T00:00:00Z, or seconds since 1970'
  throw new InvalidInput([{ loc: ['query', name], msg, type: 'value_error', input: value }])
}

/** Why a window holds no settlement. */
function nothingHeld(
  contracts: readonly HeldContract[],
  symbols: readonly string[],
  start: number,
  asOf: number,
): Error {
  const name = symbols.join(', ')
  if (contracts.length === 0) return new NotFound(`No settled rates of ${name} are held. Nothing was charged.`)
  const [from, to] = [
    Math.min(...contracts.map(({ held_from }) => held_from)),
    Math.max(...contracts.map(({ reached }) => reached)),
  ]
  // Old settlements are read first, so the newest are missing until the load is through.
  if (start >= to && asOf - to > CAUGHT_UP_SECONDS) {
    const done = `Settled rates of ${name} have been read up to ${formatSeconds(to)}`
    const progress = Math.max(0, Math.min(1, (to - from) / (asOf - from)))
    return new Unavailable(`${done}. Nothing was charged; try again in a minute.`, 60, progress)
  }
  const held = `they are held from ${formatSeconds(from)} to ${formatSeconds(to)}`
  const nearest = { start: new Date(from * 1000), end: new Date(Math.min(to, asOf) * 1000 + 1000) }
  return new NotHeld(`Nothing was settled for ${name} in this window; ${held}. Nothing was charged.`, nearest)
}

/** Adds to each settlement the hours since the one before it. */
async function withIntervals(source: SettlementSource, page: readonly Settlement[]): Promise<FundingSettlement[]> {
  const last = new Map<string, number>()
  const shown: FundingSettlement[] = []
  for (const settlement of page) {
    const { venue, instrument, symbol, time, rate } = settlement
    const contract = `${venue} ${instrument}`
    const before = last.get(contract) ?? (await source.before(settlement))?.time ?? null
    last.set(contract, time)
    const hours = before === null ? null : Math.round((time - before) / 3600)
    const interval = hours !== null && hours >= 1 && hours <= LONGEST_HOURS ? hours : null
    const value = Number(rate)
    shown.push({
      symbol,
      venue,
      instrument,
      settled_at: formatSeconds(time),
      rate: value,
      rate_decimal: rate,
      interval_hours: interval,
      rate_8h: interval === null ? null : rateOver(value, interval, 8),
      apr: interval === null ? null : aprOf(value, interval),
    })
  }
  return shown
}

async function expectedRates(source: RateSource, symbols: readonly string[], venues: readonly string[], asOf: number) {
  const { rates, checkOf } = await readCurrentRates(source, asOf)
  return rates
    .filter(({ symbol, venue }) => symbols.includes(symbol) && (venues.length === 0 || venues.includes(venue)))
    .map((rate) => itemOf(rate, checkOf(rate), asOf))
}
