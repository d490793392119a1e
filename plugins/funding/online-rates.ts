/** The venues, each asked once a minute; what they say is kept with the moment it was known. */
import type { Job, PluginContext } from 'tollgate/plugin'
import { fetchJson, VenueError } from './fetching.ts'
import { quarantine, type Poll, type VenueName, type Source } from './funding-rate.ts'
import type { Settings } from './funding-settings.ts'
import type { Store } from './rate-store.ts'
import { VENUES } from './venues/venues.ts'
import { PayloadError, type Venue } from './venues/venue.ts'

const EVERY_SECONDS = 60
const MALFORMED_SECONDS = 30
/** What changes seldom may be this many times its period old before it is no longer believed. */
const OLDEST_PERIODS = 6

interface Kept {
  readonly payload: unknown
  readonly at: number
}

export function openOnline(
  context: PluginContext,
  settings: Settings,
  store: Store,
): Source & { readonly jobs: readonly Job[] } {
  const { log } = context
  const now = (): number => context.now().getTime() / 1000
  const kept = new Map<string, Kept>()
  const pausedUntil = new Map<VenueName, number>()
  const enabled = (venue: VenueName): boolean => settings.venues?.[venue]?.enabled ?? true

  /** The payload of a request: asked for now, or the kept one where it changes seldom. */
  async function payload(venue: Venue, word: string, signal: AbortSignal): Promise<unknown> {
    const request = venue.requests[word]!
    const key = `${venue.name}/${word}`
    const { everySeconds = 0, fits = () => true } = request
    const before = kept.get(key)
    if (before && now() - before.at < everySeconds) return before.payload
    const url = (settings.venues?.[venue.name]?.url ?? venue.url).replace(/\/$/, '')
    try {
      const found = await fetchJson(url, request, context.fetch, signal)
      if (!fits(found)) throw new PayloadError(`${request.path} answered something else than it should`)
      if (everySeconds > 0) kept.set(key, { payload: found, at: now() })
      return found
    } catch (error) {
      if (!before || now() - before.at > everySeconds * OLDEST_PERIODS) throw error
      log.warn({ venue: venue.name, err: error }, 'intervals were not refreshed; the last ones still hold')
      return before.payload
    }
  }

  async function ask(venue: Venue, signal: AbortSignal): Promise<Poll> {
    const words = Object.keys(venue.requests)
    const payloads = await Promise.all(words.map((word) => payload(venue, word, signal)))
    const parsed = venue.parse(Object.fromEntries(words.map((word, i) => [word, payloads[i]])), Math.floor(now()))
    return { ...quarantine(parsed.rates), untold: parsed.untold }
  }

  async function poll(venue: Venue, signal: AbortSignal): Promise<void> {
    const { name } = venue
    if (!enabled(name) || now() < (pausedUntil.get(name) ?? 0)) return
    try {
      const answer = await ask(venue, signal)
      await store.add(name, now(), answer)
    } catch (error) {
      if (signal.aborted) throw error
      log.warn({ venue: name, err: error }, 'a venue was not read')
      pausedUntil.set(name, now() + (error instanceof VenueError ? error.pauseSeconds : MALFORMED_SECONDS))
      const told = error instanceof VenueError || error instanceof PayloadError
      await store.add(name, now(), { error: told ? error.message : 'answered something that cannot be read' })
    }
  }

  return {
    at: (asOf) =>
      Promise.all(
        Object.values(VENUES).map(async ({ name }) => ({
          venue: name,
          enabled: enabled(name),
          ...(await store.last(name, asOf)),
        })),
      ),
    jobs: [
      {
        name: 'poll',
        everySeconds: EVERY_SECONDS,
        run: async ({ signal }) => {
          await Promise.all(Object.values(VENUES).map((venue) => poll(venue, signal)))
          await store.forget(now() - settings.keep_hours * 3600)
        },
      },
    ],
  }
}
