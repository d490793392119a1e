/** Builds the answer of the settled history: what was paid, beside the rates that are expected next. Says how fresh it would be. */
import type { DataMode } from 'tollgate/plugin'
import {
  type Freshness,
  InvalidInput,
  NotFound,
  NotHeld,
  type Place,
  readCursor,
  Unavailable,
  writeCursor,
} from 'tollgate/plugin'
import type { FundingHistory, FundingHistoryQuery, FundingSettlement } from '../../schemas/types.d.ts'
import { epochSeconds, formatSeconds } from '../lib/time/timestamps.ts'
import { readCurrentRates } from './current-rates.ts'
import type { RateSource } from './funding-rate.ts'
import { aprOf, rateOver } from './rate-arithmetic.ts'
import { itemOf, symbolsIn, venuesIn } from './rates-answer.ts'
import type { HeldContract, Settlement, SettlementSource } from './settlement-store.ts'
import { representatives } from './spreads.ts'

const DAY = 86_400
/** Days of an answer without `start`. */
const USUAL_DAYS = 7
/** The longest interval of any venue. A longer gap is a settlement that is not held. */
const LONGEST_HOURS = 24
/** A contract that is read on time is held to within this of the present: venues may list a settlement late. */
const ON_TIME_SECONDS = 3 * 3600

export interface HistoryParts {
  readonly settled: SettlementSource
  readonly current: RateSource
  readonly dataMode: DataMode
}

/** What a query asks for. Times are epoch seconds. */
interface Window {
  readonly symbols: readonly string[]
  /** All venues if it is empty. */
  readonly venues: readonly string[]
  readonly start: number
  /** Exclusive, and at most a second after `asOf`. */
  readonly end: number
  readonly asOf: number
}

/** The window of a query. Throws InvalidInput for an unknown venue, and for a window that ends before it starts. */
function windowOf(query: FundingHistoryQuery, asOf: number): Window {
  const [symbols, venues] = [symbolsIn(query.symbol), venuesIn(query.venue)]
  const end = Math.min(momentOf(query.end, 'end') ?? asOf + 1, asOf + 1)
  const start = momentOf(query.start, 'start') ?? end - USUAL_DAYS * DAY
  if (start >= end) {
    const msg = `must be before end, which is ${formatSeconds(end)}`
    throw new InvalidInput([{ loc: ['query', 'start'], msg, type: 'value_error', input: query.start }])
  }
  return { symbols, venues, start, end, asOf }
}

/**
 * One page of settlements, oldest first. Throws InvalidInput for a window that ends before it starts, Unavailable while the
 * settlements of the window are still to be read, and NotHeld for one in which nothing was settled, with the window that holds
 * something.
 */
export async function answerFundingHistory(
  parts: HistoryParts,
  query: FundingHistoryQuery,
  now: Date,
): Promise<FundingHistory> {
  const { settled, current, dataMode } = parts
  const place = query.cursor === undefined ? null : readCursor(query.cursor, query)
  const asOf = Math.floor(Math.min(now.getTime() / 1000, place?.asOf ?? Infinity))
  const window = windowOf(query, asOf)
  const { symbols, venues, start, end } = window
  const contracts = await heldContracts(settled, window)
  const after = place === null ? null : settlementKey(place.key)
  const range = { symbols, venues, from: start, to: end, after, limit: query.limit + 1 }
  const found = await settled.read(range)
  if (found.length === 0 && after === null) throw await nothingHeld(parts, window, contracts)
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
    contracts: contracts.map((contract) => ({
      venue: contract.venue,
      instrument: contract.instrument,
      symbol: contract.symbol,
      held_from: formatSeconds(contract.held_from),
      held_to: formatSeconds(Math.min(contract.reached, asOf)),
      complete: contract.held_from <= start && isReached(contract, window),
      error: contract.error,
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

/**
 * How fresh the settlements of a query are; null if none of its contracts is collected. A settled rate does not age, so the newest
 * data are those of the present, less what the window asks for beyond what is held. Throws Unavailable while nothing of the window
 * has been read, and InvalidInput as the answer does.
 */
export async function historyFreshness(
  parts: HistoryParts,
  query: FundingHistoryQuery,
  now: Date,
): Promise<Freshness | null> {
  const window = windowOf(query, Math.floor(now.getTime() / 1000))
  const collected = await collectedContracts(parts, window, await heldContracts(parts.settled, window))
  if (collected.length === 0) return null
  const reached = Math.max(...collected.map((contract) => contract?.reached ?? -Infinity))
  if (reached <= window.start) throw notReadYet(window, collected)
  const ageSeconds = Math.max(0, Math.min(window.end, window.asOf) - reached)
  return {
    newest: new Date((window.asOf - ageSeconds) * 1000),
    sources: null,
    coverage: collected.filter((contract) => isReached(contract, window)).length / collected.length,
  }
}

/** The contracts of a query of which something is held. */
async function heldContracts(settled: SettlementSource, { symbols, venues }: Window): Promise<readonly HeldContract[]> {
  const contracts = await settled.contracts(symbols)
  return contracts.filter(({ venue }) => venues.length === 0 || venues.includes(venue))
}

/** A contract whose settlements are read as they come; null if nothing of it has been read yet. */
type CollectedContract = HeldContract | null

/** The contracts of a query that are collected: those that the venues list, or an unknown one until any of them has been read. */
async function collectedContracts(
  { settled, current }: HistoryParts,
  { symbols, venues, asOf }: Window,
  held: readonly HeldContract[],
): Promise<readonly CollectedContract[]> {
  const wanted = new Set(await settled.collected(symbols))
  if (wanted.size === 0) return []
  const states = (await current.at(asOf)).filter(
    ({ venue, enabled }) => enabled && (venues.length === 0 || venues.includes(venue)),
  )
  const listed = states.flatMap(({ venue, poll }) =>
    representatives(poll?.rates ?? [], wanted).map(
      ({ instrument }) => held.find((one) => one.venue === venue && one.instrument === instrument) ?? null,
    ),
  )
  return listed.length === 0 && states.some(({ poll }) => poll === null) ? [null] : listed
}

/** True if a contract has been read to the end of a window, or to the present as far as venues list settlements. */
function isReached(contract: CollectedContract, { end, asOf }: Window): boolean {
  return contract !== null && contract.reached >= Math.min(end - 1, asOf - ON_TIME_SECONDS)
}

/** The refusal of a window whose settlements are still to be read. */
function notReadYet({ symbols, asOf }: Window, collected: readonly CollectedContract[]): Unavailable {
  const begun = collected.filter((contract) => contract !== null)
  const shares = begun.map(({ held_from: from, reached }) => Math.max(0, Math.min(1, (reached - from) / (asOf - from))))
  const progress = shares.reduce((sum, share) => sum + share, 0) / collected.length
  const far =
    begun.length === 0
      ? 'have not been read yet'
      : `have been read up to ${formatSeconds(Math.max(...begun.map(({ reached }) => reached)))}`
  const message = `Settled rates of ${symbols.join(', ')} ${far}. Nothing was charged; try again in a minute.`
  return new Unavailable(message, 60, progress)
}

/** Why a window holds no settlement. */
async function nothingHeld(
  parts: HistoryParts,
  window: Window,
  contracts: readonly HeldContract[],
): Promise<Unavailable | NotFound | NotHeld> {
  const { symbols, asOf } = window
  const name = symbols.join(', ')
  const collected = await collectedContracts(parts, window, contracts)
  if (!collected.every((contract) => isReached(contract, window))) return notReadYet(window, collected)
  if (contracts.length === 0) return new NotFound(`No settled rates of ${name} are held. Nothing was charged.`)
  const [from, to] = [
    Math.min(...contracts.map(({ held_from }) => held_from)),
    Math.max(...contracts.map(({ reached }) => reached)),
  ]
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
