/**
 * Polls the sources: one request per host at a time, with growing pauses after failures and a long pause after five in a
 * row. The schedule polls more often around the times at which a source publishes, and less often at night.
 */
import { Cron } from 'croner'
import { type Job, type Database, type Logger, once } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import type { Writer } from './event-writer.ts'
import type { Fetcher, Validators } from './fetch.ts'
import type { HostPace } from './pace-per-host.ts'

export interface PollerParts {
  readonly db: Database
  readonly writer: Pick<Writer, 'write' | 'writeListing'>
  readonly fetcher: Fetcher
  readonly pace: HostPace
  readonly sources: readonly Source[]
  readonly log: Logger
  readonly now: () => number
}

interface SourceState {
  /** Failures in a row. */
  failures: number
  /** The source is not polled before this time. */
  notBefore: number
}

/** After this many failures in a row a source pauses for at least LONG_PAUSE_MS. */
const MAX_FAILURES = 5
const LONG_PAUSE_MS = 15 * 60_000
const MAX_PAUSE_MS = 3_600_000
/** The first pause after a failure is no longer than this: the next poll of some sources is due in two hours. */
const FIRST_PAUSE_SECONDS = 120

/** One job per enabled source, so that none waits for another. */
export function pollJobs({ db, writer, fetcher, pace, sources, log, now }: PollerParts): Job[] {
  const states = new Map<string, SourceState>()

  async function validatorsOf(source: Source): Promise<Validators> {
    const row = (await db('potus_feeds').where({ source: source.id }).first()) as
      { etag: string | null; last_modified: string | null; parser: string } | undefined
    const known = row?.parser === source.parser ? row : undefined
    return { etag: known?.etag ?? null, lastModified: known?.last_modified ?? null }
  }

  async function poll(source: Source, signal: AbortSignal): Promise<void> {
    const state = states.get(source.id) ?? { failures: 0, notBefore: 0 }
    states.set(source.id, state)
    // The next poll is due by the time at which this one was. If its wait for the host counted, a source that shares one
    // would miss every second run of its job.
    const due = now()
    if (due < state.notBefore) return
    const fetched = await pace.run(source.url, signal, async () =>
      fetcher.fetch(source, await validatorsOf(source), now(), signal),
    )
    const at = now()
    const poll = { source, at, ...fetched }
    const written = await (source.streamed ? writer.writeListing(poll) : writer.write(poll))
    const isGood = written.outcome !== 'failed' && written.outcome !== 'quarantined'
    state.failures = isGood ? 0 : state.failures + 1
    state.notBefore = isGood
      ? due + pollSecondsAt(source, at) * 1000 - TOLERANCE_MS
      : at + pauseAfterFailure(source, state.failures, fetched.headers, at)
    if (!isGood)
      log.warn({ source: source.id, failures: state.failures, detail: fetched.failure }, 'the poll of a source failed')
    if (written.fresh > 0) log.info({ source: source.id, fresh: written.fresh }, 'stored new items')
  }

  return sources
    .filter(({ enabled }) => enabled)
    .map((source) => ({
      name: `poll ${source.id}`,
      everySeconds: runSeconds(source),
      run: ({ signal }) => poll(source, signal),
    }))
}

/** A job that runs this much early still polls. */
const TOLERANCE_MS = 500

/**
 * Milliseconds to wait after a failure: the time in Retry-After, otherwise two minutes at most at first and twice as long each
 * time, varied by up to a quarter. A Retry-After that asks for no wait, as a date in the past, is none.
 */
export function pauseAfterFailure(
  { pollSeconds }: Pick<Source, 'pollSeconds'>,
  failures: number,
  headers: Readonly<Record<string, string>>,
  at: number,
  random: () => number = Math.random,
): number {
  const requested = retryAfter(headers, at)
  if (requested !== null && requested > 0) return Math.min(requested, MAX_PAUSE_MS)
  const growing = Math.min(pollSeconds, FIRST_PAUSE_SECONDS) * 1000 * 2 ** (failures - 1)
  const pause = failures >= MAX_FAILURES ? Math.max(LONG_PAUSE_MS, growing) : growing
  return Math.min(pause, MAX_PAUSE_MS) * (0.75 + random() / 2)
}

/** Milliseconds of a Retry-After header: seconds, or a date, which counts from the `Date` of the answer if it has one. */
function retryAfter(headers: Readonly<Record<string, string>>, at: number): number | null {
  const value = headers['retry-after']
  if (value === undefined) return null
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000
  const [date, sent] = [Date.parse(value), Date.parse(headers['date'] ?? '')]
  return Number.isNaN(date) ? null : date - (Number.isNaN(sent) ? at : sent)
}

const ZONE = 'America/New_York'
/** Around a slot a source is polled every two minutes: from two minutes before it to twenty minutes after it. */
const SLOT_SECONDS = 120
const BEFORE_MS = 120_000
const AFTER_MS = 20 * 60_000
/** Hours in which an office may publish. */
const OPENS = 7
const CLOSES = 20

const slots = new Map<string, Cron>()
const hours = once(
  () => new Intl.DateTimeFormat('en-US', { timeZone: ZONE, hour: 'numeric', hour12: false, weekday: 'short' }),
)

/** Seconds between two polls of a source, at a given time. */
export function pollSecondsAt({ slots: times, pollSeconds, nightSeconds }: Source, at: number): number {
  if (times.some((time) => isNear(time, at))) return Math.min(SLOT_SECONDS, pollSeconds)
  return nightSeconds > 0 && isNight(at) ? Math.max(nightSeconds, pollSeconds) : pollSeconds
}

/**
 * Seconds between two runs of a source's job: often enough for polls near a slot and after a failure, and without slots a whole
 * part of the time between two polls, so that these stay on time.
 */
export function runSeconds({ slots: times, pollSeconds }: Pick<Source, 'slots' | 'pollSeconds'>): number {
  if (times.length > 0) return Math.min(SLOT_SECONDS, pollSeconds)
  return pollSeconds / Math.ceil(pollSeconds / FIRST_PAUSE_SECONDS)
}

/** Slots are clock times on weekdays in New York, in summer and winter. */
function isNear(time: string, at: number): boolean {
  const [hour, minute] = time.split(':').map(Number)
  const pattern = `${minute} ${hour} * * 1-5`
  const cron = slots.get(pattern) ?? new Cron(pattern, { timezone: ZONE, paused: true })
  slots.set(pattern, cron)
  const next = cron.nextRun(new Date(at - AFTER_MS - 1000))
  return next !== null && next.getTime() <= at + BEFORE_MS
}

function isNight(at: number): boolean {
  const parts = hours().formatToParts(new Date(at))
  const weekday = parts.find(({ type }) => type === 'weekday')?.value ?? ''
  const hour = Number(parts.find(({ type }) => type === 'hour')?.value) % 24
  return ['Sat', 'Sun'].includes(weekday) || hour < OPENS || hour >= CLOSES
}
