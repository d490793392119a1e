/** Polls every venue once a minute and keeps each answer with the time it was known. */
import { type Job, type PluginContext, timeoutSignal } from 'tollgate/plugin'
import { createPauses, type DatedJson, type Pauses, RequestError, requestDatedJson } from '../lib/feeds/requests.ts'
import { type FundingRate, quarantine, type Poll, type VenueName, type RateSource } from './funding-rate.ts'
import type { Settings } from './funding-settings.ts'
import type { RateStore } from './rate-store.ts'
import { VENUES } from './venues/funding-venues.ts'
import { PayloadError, type Venue, type VenueRequest } from './venues/funding-venue.ts'

const EVERY_SECONDS = 60
/** A request that takes longer counts as failed. A venue is asked everything at once, so its poll takes no longer either. */
const REQUEST_SECONDS = 10
/** Pause after a failure, unless the venue asks for another. */
const PAUSE_SECONDS = 30
/** Longest pause that a venue can ask for, and the pause after a refusal. */
const REFUSED_SECONDS = 3600
const REFUSALS = [403, 418, 451]
/** A payload that rarely changes is used until it is this many refresh periods old. */
const OLDEST_PERIODS = 6
/** A list that the rates can be read without is asked for again this long after a failure. */
const RETRY_SECONDS = 300

/** The last payload of a request. Times are epoch seconds. */
interface Kept {
  readonly payload: unknown
  /** When the venue sent it. */
  readonly at: number
  readonly askAgainAt: number
}

/** Prepares the polls of all venues. Only the job sends requests; `at` reads what earlier polls stored. */
export function openOnlineRates(
  context: PluginContext,
  settings: Settings,
  store: RateStore,
): RateSource & { readonly jobs: readonly Job[]; readonly pauses: Pauses<VenueName> } {
  const { log } = context
  const now = (): number => context.now().getTime() / 1000
  const kept = new Map<string, Kept>()
  const pauses = createPauses(now, store)
  const limitSeconds = settings.poll_request_seconds ?? REQUEST_SECONDS
  const isEnabled = (venue: VenueName): boolean => settings.venues?.[venue]?.enabled ?? true

  /** Fetches the payload of a request, or returns the cached one if it rarely changes, which has no date. */
  async function payload(venue: Venue, name: string, signal: AbortSignal): Promise<DatedJson> {
    const request = venue.requests[name]!
    const key = `${venue.name}/${name}`
    const { everySeconds = 0, keepSeconds = everySeconds * OLDEST_PERIODS, fits = () => true } = request
    const before = kept.get(key)
    if (before && now() < before.askAgainAt) return { body: before.payload, date: null }
    const url = (settings.venues?.[venue.name]?.url ?? venue.url).replace(/\/$/, '')
    try {
      const found = await ask(url, request, signal)
      if (!fits(found.body)) throw new PayloadError(`${request.path} answered something else than it should`)
      if (keepSeconds > 0) kept.set(key, { payload: found.body, at: now(), askAgainAt: now() + everySeconds })
      return found
    } catch (error) {
      if (signal.aborted) throw error
      const isUsable = before !== undefined && now() - before.at <= keepSeconds
      if (!isUsable && !request.optional) throw error
      log.warn({ venue: venue.name, err: error, path: request.path }, 'could not refresh a list; using the last one')
      const last = isUsable ? before : { payload: request.absent, at: now() }
      const retrySeconds = Math.min(everySeconds, RETRY_SECONDS)
      if (request.optional) kept.set(key, { ...last, askAgainAt: now() + retrySeconds })
      return { body: last.payload, date: null }
    }
  }

  /** Sends a request. Throws RequestError if it takes longer than the limit. */
  async function ask(url: string, { path, body }: VenueRequest, signal: AbortSignal): Promise<DatedJson> {
    const limit = timeoutSignal(limitSeconds * 1000)
    try {
      const ending = AbortSignal.any([signal, limit])
      return await requestDatedJson({ url: url + path, label: path, body, fetch: context.fetch, signal: ending })
    } catch (error) {
      if (signal.aborted || !limit.aborted) throw error
      throw new RequestError(`${path} did not answer within ${limitSeconds} seconds`, 0, null, error)
    }
  }

  async function read(venue: Venue, signal: AbortSignal): Promise<Poll> {
    const names = Object.keys(venue.requests)
    const payloads = await Promise.all(names.map((name) => payload(venue, name, signal)))
    const at = Math.floor(sentAt(payloads, now()))
    const parsed = venue.parse(Object.fromEntries(names.map((name, i) => [name, payloads[i]!.body])), at)
    const { rates, quarantined } = quarantine(parsed.rates)
    const { poll: before } = await store.last(venue.name, now())
    return { rates: before === null ? rates : dated(rates, before.rates), quarantined, untold: parsed.untold }
  }

  async function poll(venue: Venue, signal: AbortSignal): Promise<void> {
    const { name } = venue
    if (!isEnabled(name) || pauses.isPaused(name)) return
    try {
      const answer = await read(venue, signal)
      await store.add(name, now(), answer)
    } catch (error) {
      if (signal.aborted) throw error
      log.warn({ venue: name, err: error }, 'could not read a venue')
      await pauses.pause(name, pauseAfter(error))
      const isOurs = error instanceof RequestError || error instanceof PayloadError
      await store.add(name, now(), { error: isOurs ? error.message : 'answered something that cannot be read' })
    }
  }

  return {
    pauses,
    at: (asOf) =>
      Promise.all(
        Object.values(VENUES).map(async ({ name }) => ({
          venue: name,
          enabled: isEnabled(name),
          ...(await store.last(name, asOf)),
        })),
      ),
    jobs: [
      {
        name: 'poll',
        everySeconds: EVERY_SECONDS,
        run: async ({ signal }) => {
          await pauses.load()
          await Promise.all(Object.values(VENUES).map((venue) => poll(venue, signal)))
          await store.forget(now() - settings.keep_hours * 3600)
        },
      },
    ],
  }
}

/** Further behind ours, the clock of a venue does not count. */
const LONGEST_DELAY = 300

/**
 * When a venue sent its answer by its own clock, epoch seconds. A venue whose clock is behind still states the rate of the last
 * interval when ours says that the next one has begun.
 */
function sentAt(answers: readonly DatedJson[], now: number): number {
  const dates = answers.flatMap(({ date }) => (date !== null && date >= now - LONGEST_DELAY ? [date] : []))
  return Math.min(now, ...dates)
}

/**
 * The rates with the times at which they were first reported. A venue may state the time of its answer, or none, and repeat the
 * same figures: prices of all its contracts do not stand still for a minute, so it is the venue that does.
 */
function dated(rates: readonly FundingRate[], before: readonly FundingRate[]): readonly FundingRate[] {
  const known = new Map(before.map((rate) => [rate.instrument, rate]))
  const isRepeated =
    rates.length === before.length &&
    rates.every((rate) => {
      const last = known.get(rate.instrument)
      return last !== undefined && figuresOf(last) === figuresOf(rate)
    })
  if (!isRepeated) return rates
  return rates.map((rate) => ({ ...rate, observed: Math.min(rate.observed, known.get(rate.instrument)!.observed) }))
}

/** What moves while a contract is traded. */
const figuresOf = ({ rate, markPrice, indexPrice, openInterestUsd }: FundingRate): string =>
  `${rate} ${markPrice} ${indexPrice} ${openInterestUsd ?? null}`

/** Seconds that a venue is not asked after an error. */
export function pauseAfter(error: unknown): number {
  if (!(error instanceof RequestError)) return PAUSE_SECONDS
  if (REFUSALS.includes(error.status)) return REFUSED_SECONDS
  return Math.min(REFUSED_SECONDS, error.retryAfterSeconds ?? PAUSE_SECONDS)
}
