/** Replays recorded rates with their times moved: a pure function of the recordings and `asOf`. */
import type { PluginContext } from 'tollgate/plugin'
import { dataSettings, loopShift, type ReplayShift } from '../lib/feeds/data-settings.ts'
import { settledAt, type History } from './recorded-settlements.ts'
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

export async function openReplayedRates(context: PluginContext): Promise<RateSource> {
  const { log } = context
  const { replayDir = '', replayShift } = dataSettings(context)
  const { polls, settled, unread } = await readFundingRecordings(replayDir)
  log.info({ payloads: polls.length, settled: settled?.size ?? 0 }, 'recorded funding rates read')
  for (const one of unread) log.warn(one, 'could not read a recording of funding rates')

  function stateOf(venue: VenueName, asOf: number): VenueState {
    const known: Told[] = polls
      .filter((one) => one.venue === venue)
      .map((one) => ({ ...one, shift: loopShift(replayShift, answerLoop(one.at), asOf) }))
      .filter(({ at, shift }) => at + shift <= asOf)
    if (venue === 'binance' && settled) known.push(...history(settled, asOf, replayShift))
    const last = known.at(-1)
    if (!last) return { venue, enabled: true, poll: null, fetched: null, error: 'nothing was recorded at this time' }
    const together = known.filter((one) => one === last || asOf - one.at - one.shift < HOUR)
    const poll = join(together.map(({ told, shift }) => moved(told, shift)))
    return { venue, enabled: true, poll, fetched: last.at + last.shift, error: null, shiftSeconds: last.shift }
  }

  return { at: async (asOf) => (Object.keys(VENUES) as VenueName[]).map((venue) => stateOf(venue, asOf)) }
}

interface Told extends Recording {
  readonly shift: number
}

function history(settled: History, asOf: number, replayShift: ReplayShift): Told[] {
  const shift = loopShift(replayShift, historyLoop(settled), asOf)
  const told = settledAt(settled, asOf - shift)
  const at = Math.max(...told.rates.map(({ observed }) => observed))
  return told.rates.length === 0 ? [] : [{ venue: 'binance', at, payloads: {}, told, shift }]
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
