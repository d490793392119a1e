import { rateOver } from './arithmetic.ts'
import type { Excluded, FundingRate } from './rate.ts'

/** Above 5% in eight hours a rate is a fault of the feed: the venues cap theirs below that. */
const HIGHEST_8H = 0.05
const LONGEST_HOURS = 24
/** Clocks of venues may differ from ours by this much. */
const SLACK_SECONDS = 300

/** Why a rate cannot be true, or null. */
export function impossible(rate: FundingRate): string | null {
  const { intervalHours, nextFunding, observed } = rate
  if (!(intervalHours > 0 && intervalHours <= LONGEST_HOURS)) return `an interval of ${intervalHours} hours`
  const eight = rateOver(Number(rate.rate), intervalHours, 8)
  if (!(Math.abs(eight) <= HIGHEST_8H)) return `${(eight * 100).toPrecision(3)}% in eight hours`
  if (nextFunding !== null && nextFunding > observed + intervalHours * 3600 + SLACK_SECONDS)
    return `the next funding is further away than the interval of ${intervalHours} hours`
  return null
}

/** Parts rates that can be true from those that cannot; of an instrument told twice the first counts. */
export function quarantine(rates: readonly FundingRate[]): { rates: FundingRate[]; quarantined: Excluded[] } {
  const kept = new Map<string, FundingRate>()
  const quarantined: Excluded[] = []
  for (const rate of rates) {
    const reason = kept.has(rate.instrument) ? 'told twice' : impossible(rate)
    if (reason === null) kept.set(rate.instrument, rate)
    else quarantined.push({ instrument: rate.instrument, rate: rate.rate, reason })
  }
  return { rates: [...kept.values()], quarantined }
}
