/** Replays recorded rates with their times moved: a pure function of the recordings and `asOf`. */
import type { PluginContext, ReplayShift } from 'tollgate/plugin'
import { dataSettings, loopShift } from '../lib/feeds/data-settings.ts'
import { splitPair, symbolOf } from './contract-names.ts'
import { type ContractSettlements, createHeldSettlements } from './held-settlements.ts'
import { settledAt, type History } from './recorded-settlements.ts'
import type { SettlementSource } from './settlement-store.ts'
import {
  quarantine,
  type FundingRate,
  type Poll,
  type VenueName,
  type RateSource,
  type VenueState,
} from './funding-rate.ts'
import { readFundingRecordings, type Recording } from './recorded-payloads.ts'
import { VENUES } from './venues/funding-venues.ts'
import type { Parsed } from './venues/funding-venue.ts'

const HOUR = 3600
const EIGHT_HOURS = 8 * HOUR
/** A history starts after this much of it, so that three gaps of eight hours lie before. */
const LEAD = 3 * EIGHT_HOURS

/** A recorded answer loops by whole hours, so that it is never older than an hour and hourly fundings stay on the hour. */
const answerLoop = (at: number) => ({ start: at, period: HOUR })

/** A history loops by whole eight hours, from the first time with enough settlements before it. */
function historyLoop(history: History): { readonly start: number; readonly period: number } {
  const times = [...history.values()].flatMap((list) => [list[0]!.time, list.at(-1)!.time])
  const start = Math.min(...times) + LEAD
  const period = Math.max(EIGHT_HOURS, Math.floor((Math.max(...times) - start) / EIGHT_HOURS + 1) * EIGHT_HOURS)
  return { start, period }
}

/**
 * Reads the recordings of REPLAY_DIR and replays them. A venue without a recording at a time has no poll and says so. A file
 * that cannot be read is logged and skipped.
 */
export async function openReplayedRates(
  context: PluginContext,
): Promise<RateSource & { readonly settled: SettlementSource }> {
  const { log } = context
  const { replayDir = '', replayShift } = dataSettings(context)
  const { polls, settled, unread } = await readFundingRecordings(replayDir)
  log.info({ payloads: polls.length, settled: settled?.size ?? 0 }, 'recorded funding rates read')
  for (const one of unread) log.warn(one, 'could not read a recording of funding rates')

  function stateOf(venue: VenueName, asOf: number): VenueState {
    const known: MovedRecording[] = polls
      .filter((one) => one.venue === venue)
      .map((one) => ({ ...one, shift: loopShift(replayShift, answerLoop(one.at), asOf) }))
      .filter(({ at, shift }) => at + shift <= asOf)
    if (venue === 'binance' && settled) known.push(...historyAt(settled, asOf, replayShift))
    const last = known.at(-1)
    if (!last) return { venue, enabled: true, poll: null, fetched: null, error: 'nothing was recorded at this time' }
    const recent = known.filter((one) => one === last || asOf - one.at - one.shift < HOUR)
    const poll = join(recent.map(({ parsed, shift }) => moved(parsed, shift)))
    return { venue, enabled: true, poll, fetched: last.at + last.shift, error: null, shiftSeconds: last.shift }
  }

  return {
    at: async (asOf) => (Object.keys(VENUES) as VenueName[]).map((venue) => stateOf(venue, asOf)),
    settled: createHeldSettlements((symbols) =>
      settled ? recordedSettlements(settled, symbols, context.now().getTime() / 1000, replayShift) : [],
    ),
  }
}

/** The recorded settlements of Binance until now, with their times moved. */
function recordedSettlements(
  history: History,
  symbols: readonly string[],
  now: number,
  replayShift: ReplayShift,
): ContractSettlements[] {
  const shift = loopShift(replayShift, historyLoop(history), now)
  return [...history].flatMap(([instrument, recorded]) => {
    const symbol = symbolOf(splitPair(instrument)?.base ?? instrument)
    if (!symbols.includes(symbol)) return []
    const settlements = recorded
      .map(({ time, rate }) => ({
        venue: 'binance' as const,
        instrument,
        symbol,
        time: Math.round(time + shift),
        rate,
      }))
      .filter(({ time }) => time <= now)
    const [first, last] = [settlements[0], settlements.at(-1)]
    if (!first || !last) return []
    // Nothing was settled between the last settlement and the next one.
    const reached = Math.min(Math.floor(now), last.time + EIGHT_HOURS)
    const contract = { venue: 'binance' as const, instrument, symbol, held_from: first.time, reached }
    return [{ contract: { ...contract, updated_at: last.time, error: null }, settlements }]
  })
}

/** A recording and how far its times are moved. */
interface MovedRecording extends Recording {
  readonly shift: number
}

/** The last settlements of Binance at a time as one recording; none if no settlement is old enough. */
function historyAt(settled: History, asOf: number, replayShift: ReplayShift): MovedRecording[] {
  const shift = loopShift(replayShift, historyLoop(settled), asOf)
  const parsed = settledAt(settled, asOf - shift)
  const at = Math.max(...parsed.rates.map(({ observed }) => observed))
  return parsed.rates.length === 0 ? [] : [{ venue: 'binance', at, payloads: {}, parsed, shift }]
}

function moved({ rates, untold }: Parsed, seconds: number): Parsed {
  const later = (time: number | null): number | null => (time === null ? null : time + seconds)
  const move = (rate: FundingRate): FundingRate => ({
    ...rate,
    observed: rate.observed + seconds,
    nextFunding: later(rate.nextFunding),
  })
  return { rates: rates.map(move), untold }
}

/** Merges the recordings of one venue within an hour. Of an instrument recorded twice the later rate counts. */
function join(parts: readonly Parsed[]): Poll {
  const rates = new Map(parts.flatMap(({ rates }) => rates).map((rate) => [rate.instrument, rate]))
  const untold = parts.flatMap(({ untold }) => untold).filter(({ instrument }) => !rates.has(instrument))
  return { ...quarantine([...rates.values()]), untold }
}
