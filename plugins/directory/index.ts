/** The agent-economy directory: who sells to agents, at what price, and whether they answer. */
import { definePlugin, type Job, Reply } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { answer, listingsFreshness } from './directory-query.ts'
import { method } from './directory-methodology.ts'
import { createJobs, listOurselves } from './directory-jobs.ts'
import { ingestRecordings } from './recorded-listings.ts'
import { addSampleListings, SAMPLE_SOURCES } from './sample-listings.ts'
import { settingsSchema } from './directory-settings.ts'
import { DirectoryStore } from './directory-store.ts'
import { migrations } from './directory-tables.ts'
import { createVisitor, type Visitor } from './visits.ts'

/** Creates the plugin with a visitor. Tests pass one with an internet of their own. */
export function createDirectory(visit: Visitor) {
  return definePlugin({
    name: 'directory',
    migrations,
    settings: settingsSchema,
    async setup(context) {
      const { db, log, settings } = context
      const { dataMode } = dataSettings(context)
      const store = new DirectoryStore(db)
      const now = (): number => Math.ceil(context.now().getTime() / 1000)
      const replayed = dataMode === 'replay' ? await ingestRecordings(context, store, settings) : null
      if (dataMode === 'sample') await addSampleListings(store, now(), log)
      const made = (replayed?.sources ?? SAMPLE_SOURCES).map((id) => ({ id, enabled: true }))
      const sources = dataMode === 'online' ? settings.sources : made

      const self: Job = { name: 'self', everySeconds: 60, run: ({ ask }) => listOurselves(ask, store, now()) }
      const grow: Job = { name: 'grow', everySeconds: 3600, run: () => addSampleListings(store, now(), log) }
      const jobs = dataMode === 'online' ? createJobs({ context, settings, store, visit }) : []
      return {
        handlers: {
          async getAgentDirectory({ input: { query }, asOf }) {
            const shiftSeconds = replayed?.shift_seconds ?? null
            const keptSeconds = dataMode === 'online' ? settings.keep_hours * 3600 : null
            const found = await answer(db, store, { query, asOf, dataMode, sources, shiftSeconds, keptSeconds })
            return new Reply(found, { empty: found.total === 0 })
          },
          getAgentDirectoryMethod: () => method,
        },
        jobs: [self, ...(dataMode === 'sample' ? [grow] : []), ...jobs],
        freshness: (_, asOf) => listingsFreshness(store, { asOf, dataMode, sources }),
        facts: () => store.facts(),
      }
    },
  })
}

export default createDirectory(createVisitor())
