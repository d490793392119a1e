/** What the President of the United States says, signs and publishes: real sources, exact times, no direction. */
import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin, type Job, type Database } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { LOG_DAYS } from './answers/feed-health.ts'
import { GAZETTEER_VERSION } from './entities/gazetteer.ts'
import { createHandlers } from './answers/operations.ts'
import { createFetcher } from './ingest/fetch.ts'
import { pollJobs } from './ingest/polling.ts'
import { createWriter } from './ingest/event-writer.ts'
import { openReplay } from './replay/replay-feed.ts'
import { createSample, SAMPLED } from './sample/sample-feed.ts'
import { readSources, SOURCES_VERSION, type Source, type SourceSettings } from './sources/source.ts'
import { createReader } from './store/event-reader.ts'
import { migrations } from './store/tables.ts'
import { DAY, isoOrNull } from './moment.ts'
import { LEXICON_VERSION } from './entities/topics.ts'

const settings = {
  type: 'object',
  additionalProperties: false,
  properties: {
    sources: {
      type: 'object',
      description: 'What is changed of a source, by its id.',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: {
          enabled: { type: 'boolean', description: 'Whether it is asked at all.' },
          url: { type: 'string', format: 'uri', description: 'Another address.' },
          poll_seconds: { type: 'integer', minimum: 1, description: 'Another pace.' },
        },
      },
    },
  },
} as const

/** So long the start waits for the sample; where a machine is too busy it comes a little later. */
const PATIENCE_MS = 10_000

export default definePlugin({
  name: 'potus',
  migrations,
  settings,
  async setup(context) {
    const { db, product } = context
    const { dataMode } = dataSettings(context)
    const now = (): number => context.now().getTime()
    const all = readSources(context.settings['sources'] as Readonly<Record<string, SourceSettings>> | undefined)
    const byId = new Map(all.map((source) => [source.id, source]))
    const reader = createReader(db)
    const writer = createWriter(db, now, (source) => byId.get(source)?.publisher ?? source)
    const jobs: Job[] = []
    const replay = dataMode === 'replay' ? await openReplay({ context, writer, sources: byId, now }) : null
    const sources = all.map((source) => (dataMode === 'sample' ? sampled(source) : (replay?.played(source) ?? source)))
    const marks = {
      dataMode,
      shift: () => replay?.shift ?? null,
      sources: new Map(sources.map((source) => [source.id, source])),
    }
    if (replay) jobs.push({ name: 'replay', everySeconds: 1, run: ({ signal }) => replay.step(signal) })
    const sample = dataMode === 'sample' ? createSample(db, writer, byId, now) : null
    const leaving = new AbortController()
    if (sample) {
      const opened = sample.open(leaving.signal)
      await Promise.race([opened, sleep(PATIENCE_MS, undefined, { ref: false })])
      opened.catch((error: unknown) => leaving.signal.aborted || context.log.error({ err: error }, 'no sample yet'))
      jobs.push({ name: 'sample', everySeconds: 2, run: ({ signal }) => sample.step(signal) })
    }
    const fetcher = dataMode === 'online' ? createFetcher() : null
    if (fetcher) jobs.push(...pollJobs({ db, writer, fetcher, sources, log: context.log, now }))
    jobs.push({ name: 'prune', everySeconds: 86_400, run: () => prune(db, now()) })
    return {
      handlers: createHandlers({
        db,
        reader,
        marks,
        sources,
        product,
        now: () => context.now(),
        assertReady() {
          replay?.assertReady()
          sample?.assertReady()
        },
      }),
      jobs,
      // Free to read, so as late as everything free: when the newest came is what the live feed sells.
      facts: async () => ({
        events: await reader.count(0, now() - DAY),
        newest: isoOrNull(await reader.newest(now() - DAY)),
        sources_on: sources.filter(({ enabled }) => enabled).length,
        versions: { sources: SOURCES_VERSION, gazetteer: GAZETTEER_VERSION, lexicon: LEXICON_VERSION },
      }),
      async stop() {
        leaving.abort()
        await fetcher?.close()
      },
    }
  },
})

/** In the sample the sources it speaks for are on, and all say so in their licence. */
function sampled(source: Source): Source {
  return { ...source, enabled: SAMPLED.includes(source.id), licence: 'made-up sample', attribution: '' }
}

/** Polls that brought nothing are forgotten after a while; bodies are kept. */
async function prune(db: Database, now: number): Promise<void> {
  await db('potus_polls')
    .where('at', '<', now - LOG_DAYS * DAY)
    .whereNull('body')
    .delete()
}
