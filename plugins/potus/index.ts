/** The POTUS feeds: what the President of the United States says, signs and publishes, with exact times. */
import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin, type Job, type Logger } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { LOG_DAYS } from './answers/feed-health.ts'
import { GAZETTEER_VERSION } from './entities/gazetteer.ts'
import { feedFreshness } from './answers/feed-freshness.ts'
import { createHandlers } from './answers/operations.ts'
import { createRecentFigures } from './answers/recent-figures.ts'
import { createFetcher, type Fetcher } from './ingest/fetch.ts'
import { historyJobs } from './ingest/history-loads.ts'
import { createHostPace } from './ingest/pace-per-host.ts'
import { pollJobs } from './ingest/polling.ts'
import { createWriter, type Writer } from './ingest/event-writer.ts'
import { openReplay, type Replay } from './replay/replay-feed.ts'
import { createSample, type Sample, SAMPLED_SOURCES } from './sample/sample-feed.ts'
import { readSources, SOURCES_VERSION, type Source } from './sources/source.ts'
import { type PollRetention, prunePolls } from './store/poll-retention.ts'
import { createReader } from './store/event-reader.ts'
import { migrations } from './store/tables.ts'
import { DAY, formatOrNull } from './time-range.ts'
import { LEXICON_VERSION } from './entities/topics.ts'
import { EMPTY_COVERAGE } from './answers/watched-feed.ts'

const settings = {
  type: 'object',
  additionalProperties: false,
  properties: {
    sources: {
      type: 'object',
      description: 'Changes to a source, by its id.',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: {
          enabled: { type: 'boolean', description: 'Whether the source is polled.' },
          url: { type: 'string', format: 'uri', description: 'Address to poll instead of the default.' },
          poll_seconds: {
            type: 'integer',
            minimum: 1,
            description: 'Seconds between two polls instead of the default.',
          },
          history: {
            type: 'boolean',
            description: 'False if the older items of the source are not to be fetched.',
          },
        },
      },
    },
    empty_coverage: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: EMPTY_COVERAGE,
      description:
        'Least coverage with which an answer without items is sold: the part of the time of all sources in which they were watched.',
    },
    keep_polls_days: {
      type: 'integer',
      minimum: LOG_DAYS,
      maximum: 36_500,
      description:
        'Days for which the answers of the sources are kept, from which a feed can be replayed. Without it they are kept for good. Records and their versions always are.',
    },
  },
} as const

/** Longest time that the start waits for the sample. On a busy machine the sample is ready a little later. */
const SAMPLE_WAIT_MS = 10_000

export default definePlugin({
  name: 'potus',
  migrations,
  settings,
  async setup(context) {
    const { db, product, log } = context
    const { dataMode } = dataSettings(context)
    const now = (): number => context.now().getTime()
    const configured = readSources(context.settings['sources'])
    const byId = new Map(configured.map((source) => [source.id, source]))
    const reader = createReader(db)
    const figures = createRecentFigures({ db, reader, sources: configured, now })
    const written = createWriter(db, now, (source) => byId.get(source)?.publisher ?? source)
    // What this process writes is served at once, what others write within a second.
    const writer: Writer = {
      write: (...args) => written.write(...args).finally(() => figures.expire()),
      add: (...args) => written.add(...args).finally(() => figures.expire()),
      writeListing: (...args) => written.writeListing(...args).finally(() => figures.expire()),
    }
    const keepDays = context.settings['keep_polls_days']
    const retention = (): PollRetention => ({
      before: now() - LOG_DAYS * DAY,
      bodiesBefore: keepDays === undefined ? null : now() - keepDays * DAY,
    })
    const stopping = new AbortController()
    const jobs: Job[] = [
      { name: 'prune', everySeconds: 86_400, run: ({ signal }) => prunePolls(db, retention(), signal) },
    ]
    let sources: readonly Source[] = configured
    let replay: Replay | null = null
    let sample: Sample | null = null
    let fetcher: Fetcher | null = null
    if (dataMode === 'sample') {
      sources = configured.map(sampledSource)
      const opened = createSample(db, writer, byId, now)
      sample = opened
      await waitForSample(opened, stopping.signal, log)
      jobs.push({ name: 'sample', everySeconds: 2, run: ({ signal }) => opened.step(signal) })
    } else if (dataMode === 'replay') {
      const opened = await openReplay({ context, writer, sources: byId, now })
      replay = opened
      sources = configured.map((source) => opened.replayedSource(source))
      jobs.push({ name: 'replay', everySeconds: 1, run: ({ signal }) => opened.step(signal) })
    } else {
      fetcher = createFetcher()
      const parts = { db, writer, fetcher, pace: createHostPace({ now }), sources, log, now }
      jobs.push(...pollJobs(parts), ...historyJobs(parts))
    }
    return {
      handlers: createHandlers({
        db,
        reader,
        figures,
        context: {
          dataMode,
          shift: () => replay?.shift ?? null,
          sources: new Map(sources.map((source) => [source.id, source])),
        },
        sources,
        product,
        emptyCoverage: context.settings['empty_coverage'],
        now: () => context.now(),
        assertReady() {
          replay?.assertReady()
          sample?.assertReady()
        },
      }),
      jobs,
      /**
       * The feed is as fresh as its last successful poll: nothing may have happened since. A delayed caller sees an earlier
       * moment, which was watched then or back-filled since.
       */
      async freshness({ operation, params }, asOf) {
        if (dataMode !== 'online') {
          const isReady = (await figures.ofEvents(asOf.getTime())).newest !== null
          return { newest: isReady ? asOf : null, sources: null, coverage: isReady ? 1 : 0 }
        }
        // A stored event does not age. What the feed may lack by now is in its answer.
        if (operation === 'getPotusEvent' && params['selector'] !== 'latest')
          return { newest: asOf, sources: null, coverage: 1 }
        return feedFreshness(figures, sources, asOf, now())
      },
      // These facts are free, so they are a day old: the time of the newest event is what the live feed sells.
      async facts() {
        const asOf = now() - DAY
        const { events, newest } = await figures.remember({ name: 'facts', asOf, reach: 0 }, async () => ({
          events: await reader.countAll(asOf),
          newest: await reader.newest(asOf),
        }))
        return {
          events,
          newest: formatOrNull(newest),
          sources_on: sources.filter(({ enabled }) => enabled).length,
          versions: { sources: SOURCES_VERSION, gazetteer: GAZETTEER_VERSION, lexicon: LEXICON_VERSION },
        }
      },
      async stop() {
        stopping.abort()
        await fetcher?.close()
      },
    }
  },
})

/** Opens the sample and waits for it, but not longer than SAMPLE_WAIT_MS. */
async function waitForSample(sample: Sample, signal: AbortSignal, log: Logger): Promise<void> {
  const opened = sample.open(signal)
  await Promise.race([opened, sleep(SAMPLE_WAIT_MS, undefined, { ref: false })])
  opened.catch((error: unknown) => signal.aborted || log.error({ err: error }, 'the sample could not be opened'))
}

/** In sample mode only the sources that the sample imitates are on, and their licence says that they are made up. */
function sampledSource(source: Source): Source {
  return { ...source, enabled: SAMPLED_SOURCES.includes(source.id), licence: 'made-up sample', attribution: '' }
}
