/** Asks the sources: one request a host at a time, patience where one fails, and a rest where it keeps failing. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Cron } from 'croner'
import type { Job, Database, Logger } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import type { Writer } from './event-writer.ts'
import type { Fetcher, Validators } from './fetch.ts'

export interface PollerParts {
  readonly db: Database
  readonly writer: Pick<Writer, 'write'>
  readonly fetcher: Fetcher
  readonly sources: readonly Source[]
  readonly log: Logger
  readonly now: () => number
}

interface Standing {
  /** Bad answers in a row. */
  failures: number
  /** Not asked before this. */
  notBefore: number
}

/** Between two requests to one host. */
const APART_MS = 1_000
/** After so many failures in a row a source rests. */
const BREAKS_AFTER = 5
const REST_MS = 15 * 60_000
const LONGEST_MS = 3_600_000

/** One job for each source that is on, so that none waits for another. */
export function pollJobs({ db, writer, fetcher, sources, log, now }: PollerParts): Job[] {
  const hosts = new Map<string, Promise<unknown>>()
  const standings = new Map<string, Standing>()

  /** Runs when the host's last request is over and a second old. */
  function inTurn<Result>(host: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const before = hosts.get(host)
    const run = (async () => {
      if (before) {
        await before.catch(() => {})
        await sleep(APART_MS, undefined, { signal })
      }
      return work()
    })()
    hosts.set(host, run)
    void run.catch(() => {}).finally(() => hosts.get(host) === run && hosts.delete(host))
    return run
  }

  async function validatorsOf(source: Source): Promise<Validators> {
    const row = (await db('potus_feeds').where({ source: source.id }).first()) as
      { etag: string | null; last_modified: string | null; parser: string } | undefined
    const known = row?.parser === source.parser ? row : undefined
    return { etag: known?.etag ?? null, lastModified: known?.last_modified ?? null }
  }

  async function poll(source: Source, signal: AbortSignal): Promise<void> {
    const standing = standings.get(source.id) ?? { failures: 0, notBefore: 0 }
    standings.set(source.id, standing)
    if (now() < standing.notBefore) return
    await inTurn(new URL(source.url).host, signal, async () => {
      const begun = now()
      const fetched = await fetcher.fetch(source, await validatorsOf(source), begun, signal)
      const at = now()
      const written = await writer.write({ source, at, ...fetched })
      const isGood = written.outcome !== 'failed' && written.outcome !== 'quarantined'
      standing.failures = isGood ? 0 : standing.failures + 1
      standing.notBefore = isGood
        ? begun + pollSecondsAt(source, at) * 1000 - TOLERANCE_MS
        : at + pauseAfterFailure(source, standing.failures, fetched.headers, at)
      if (!isGood)
        log.warn(
          { source: source.id, failures: standing.failures, detail: fetched.failure },
          'a source gave nothing good',
        )
      if (written.fresh > 0) log.info({ source: source.id, fresh: written.fresh }, 'new items')
    })
  }

  return sources
    .filter(({ enabled }) => enabled)
    .map((source) => ({
      name: `poll ${source.id}`,
      everySeconds: shortestPollSeconds(source),
      run: ({ signal }) => poll(source, signal),
    }))
}

/** A run that starts a little early is still the next one. */
const TOLERANCE_MS = 500

/** How long a source is left alone: as Retry-After says, else twice as long each time, give or take a quarter. */
export function pauseAfterFailure(
  { pollSeconds }: Pick<Source, 'pollSeconds'>,
  failures: number,
  headers: Readonly<Record<string, string>>,
  at: number,
  random: () => number = Math.random,
): number {
  const asked = retryAfter(headers['retry-after'], at)
  if (asked !== null) return Math.min(asked, LONGEST_MS)
  const growing = pollSeconds * 1000 * 2 ** (failures - 1)
  const pause = failures >= BREAKS_AFTER ? Math.max(REST_MS, growing) : growing
  return Math.min(pause, LONGEST_MS) * (0.75 + random() / 2)
}

/** Milliseconds of a Retry-After header: seconds, or a date. */
function retryAfter(value: string | undefined, at: number): number | null {
  if (value === undefined) return null
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000
  const date = Date.parse(value)
  return Number.isNaN(date) ? null : Math.max(0, date - at)
}

/* --- When a source is asked: at its pace, quicker around the hours at which its news come, slower at night. --- */

const ZONE = 'America/New_York'
/** Around a slot a source is asked every two minutes: from two minutes before to twenty after. */
const SLOT_SECONDS = 120
const BEFORE_MS = 120_000
const AFTER_MS = 20 * 60_000
/** Hours at which an office may publish. */
const OPENS = 7
const CLOSES = 20

const slots = new Map<string, Cron>()
const hours = new Intl.DateTimeFormat('en-US', { timeZone: ZONE, hour: 'numeric', hour12: false, weekday: 'short' })

/** Seconds from one look at a source to the next, at a moment. */
export function pollSecondsAt({ slots: times, pollSeconds, nightSeconds }: Source, at: number): number {
  if (times.some((time) => isNear(time, at))) return Math.min(SLOT_SECONDS, pollSeconds)
  return nightSeconds > 0 && isNight(at) ? Math.max(nightSeconds, pollSeconds) : pollSeconds
}

/** The shortest pace a source is ever asked at: how often to look whether it is due. */
export function shortestPollSeconds({ slots: times, pollSeconds }: Source): number {
  return times.length > 0 ? Math.min(SLOT_SECONDS, pollSeconds) : pollSeconds
}

/** Slots are clock times of weekdays in New York, whatever the season. */
function isNear(time: string, at: number): boolean {
  const [hour, minute] = time.split(':').map(Number)
  const pattern = `${minute} ${hour} * * 1-5`
  const cron = slots.get(pattern) ?? new Cron(pattern, { timezone: ZONE, paused: true })
  slots.set(pattern, cron)
  const next = cron.nextRun(new Date(at - AFTER_MS - 1000))
  return next !== null && next.getTime() <= at + BEFORE_MS
}

function isNight(at: number): boolean {
  const parts = hours.formatToParts(new Date(at))
  const weekday = parts.find(({ type }) => type === 'weekday')?.value ?? ''
  const hour = Number(parts.find(({ type }) => type === 'hour')?.value) % 24
  return ['Sat', 'Sun'].includes(weekday) || hour < OPENS || hour >= CLOSES
}
