/** The rates that may be sold at a moment, and the state of each venue: what is too old or disagrees is left out. */
import type { RateSource, VenueName, VenueState } from './funding-rate.ts'
import { agreeOnPrices, type OtherPrice, type PriceCheck, type VenueRate } from './price-agreement.ts'

/** A predicted rate is sold for an hour: after that, an hourly venue has the next one. */
const CURRENT_SECONDS = 3600
/** Venues are read once a minute. Rates that are older than this come from a venue that fails or stands still. */
const LATE_SECONDS = 300

/** True while a rate is current. A settled rate is current until an hour after the next settlement is due. */
function isCurrent({ kind, observed, intervalHours }: VenueRate, asOf: number): boolean {
  return asOf - observed <= CURRENT_SECONDS + (kind === 'settled' ? intervalHours * 3600 : 0)
}

export interface VenueReport extends VenueState {
  readonly status: 'ok' | 'degraded' | 'unavailable' | 'off'
  /** Why the venue is degraded or unavailable. */
  readonly problem: string | null
  /** When its newest current rate was reported, epoch seconds. */
  readonly newest: number | null
  /** Number of its current rates. */
  readonly rates: number
}

export interface CurrentRates {
  readonly rates: readonly VenueRate[]
  readonly checkOf: (rate: VenueRate) => PriceCheck
  readonly venues: readonly VenueReport[]
  readonly others: readonly OtherPrice[]
}

/** Reads what is known of every venue at `asOf`, epoch seconds. */
export async function readCurrentRates(source: RateSource, asOf: number): Promise<CurrentRates> {
  const states = await source.at(asOf)
  const reported = states.flatMap(({ venue, poll, shiftSeconds: shift = 0 }) =>
    (poll?.rates ?? []).map((rate): VenueRate => ({ ...rate, venue, shift })),
  )
  const { rates, checkOf, others, wrong } = agreeOnPrices(reported.filter((rate) => isCurrent(rate, asOf)))
  const venues = states.map((state) => reportOf(state, rates, wrong, asOf))
  return { rates, checkOf, venues, others }
}

function reportOf(
  state: VenueState,
  current: readonly VenueRate[],
  wrong: ReadonlyMap<VenueName, string>,
  asOf: number,
): VenueReport {
  const { venue, enabled, error } = state
  const own = current.filter((rate) => rate.venue === venue)
  const newest = own.length === 0 ? null : own.reduce((last, { observed }) => Math.max(last, observed), -Infinity)
  // Settlements are hours apart, and the clock of a recording moves its rates.
  const isLate =
    newest !== null &&
    state.shiftSeconds === undefined &&
    asOf - newest > LATE_SECONDS &&
    own.some(({ kind }) => kind === 'predicted')
  const late = isLate ? `its newest rates are ${Math.floor(asOf - newest)} seconds old` : null
  const problem = error ?? wrong.get(venue) ?? late
  const status = !enabled ? 'off' : newest === null ? 'unavailable' : problem === null ? 'ok' : 'degraded'
  return { ...state, status, problem, newest, rates: own.length }
}
