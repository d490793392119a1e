/** Funding rates of perpetual futures, by venue and across venues. */
import { definePlugin, type Job, type PluginContext, type DataMode } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import type { RateSource } from './funding-rate.ts'
import { bookJobs } from './book-polls.ts'
import { readCurrentRates } from './current-rates.ts'
import { answerFundingHistory, historyFreshness } from './history-answer.ts'
import { answerFundingRates } from './rates-answer.ts'
import { methodology } from './funding-methodology.ts'
import { answerPerpetualBook } from './most-traded-book.ts'
import { openOnlineRates } from './online-rates.ts'
import { openReplayedRates } from './replayed-rates.ts'
import { type PerpetualBooks, PerpetualBookStore } from './perpetual-books.ts'
import { openSampleBooks, openSampleRates, openSampleSettlements } from './sample-rates.ts'
import { settlementJobs } from './settlement-loads.ts'
import { createSettlementSource, type SettlementSource } from './settlement-store.ts'
import { settingsSchema, type Settings } from './funding-settings.ts'
import { createRateStore, migrations } from './rate-store.ts'

export default definePlugin({
  name: 'funding',
  migrations,
  settings: settingsSchema,
  async setup(context) {
    const { dataMode } = dataSettings(context)
    const { settings } = context
    if (settings.keep_settled_days < settings.history_days)
      throw new Error(
        `keep_settled_days (${settings.keep_settled_days}) is less than history_days (${settings.history_days}): what is fetched would be deleted; raise keep_settled_days or lower history_days`,
      )
    const { source, settled, books, jobs } = await openRates(context, settings, dataMode)
    const history = { settled, current: source, dataMode }
    return {
      handlers: {
        getPerpFundingRates: ({ input, asOf }) =>
          answerFundingRates({ source, books }, { query: input.query, asOf, dataMode }),
        getPerpFundingHistory: ({ input, asOf }) => answerFundingHistory(history, input.query, asOf),
        getPerpetualBook: ({ input, asOf }) =>
          answerPerpetualBook({ source, books }, input.query, asOf.getTime() / 1000),
        getPerpFundingMethod: () => methodology,
      },
      jobs,
      /**
       * Current rates are as fresh as the newest rate of any venue; one that is repeated counts from its first report.
       */
      async freshness({ operation, query }, asOf) {
        if (operation === 'getPerpFundingHistory') return historyFreshness(history, query, asOf)
        const { venues } = await readCurrentRates(source, asOf.getTime() / 1000)
        const enabled = venues.filter(({ status }) => status !== 'off')
        const newest = Math.max(-Infinity, ...enabled.map((venue) => venue.newest ?? -Infinity))
        const alive = enabled.filter(({ status }) => status === 'ok').length
        const coverage = enabled.length === 0 ? 0 : alive / enabled.length
        // Recorded and made-up rates are as old as they are, so the moment that the caller may see counts.
        if (dataMode !== 'online') return { newest: Number.isFinite(newest) ? asOf : null, sources: null, coverage }
        return { newest: Number.isFinite(newest) ? new Date(newest * 1000) : null, sources: alive, coverage }
      },
      async facts() {
        const states = await source.at(context.now().getTime() / 1000)
        return {
          venues: states.filter(({ poll, error }) => poll !== null && error === null).length,
          rates: states.reduce((sum, { poll }) => sum + (poll?.rates.length ?? 0), 0),
        }
      },
    }
  },
})

interface Rates {
  readonly source: RateSource
  readonly settled: SettlementSource
  readonly books: PerpetualBooks
  readonly jobs: readonly Job[]
}

/** Where the rates of a data mode come from, and what keeps them up to date. */
async function openRates(context: PluginContext, settings: Settings, dataMode: DataMode): Promise<Rates> {
  if (dataMode === 'sample') {
    const settled = openSampleSettlements(() => context.now().getTime() / 1000)
    const source = openSampleRates()
    return { source, settled, books: openSampleBooks(source), jobs: [] }
  }
  if (dataMode === 'replay') {
    const source = await openReplayedRates(context)
    // Recordings of funding rates have no order books.
    return { source, settled: source.settled, books: async () => null, jobs: [] }
  }
  const store = createRateStore(context.db)
  const source = openOnlineRates(context, settings, store)
  const books = new PerpetualBookStore(context.db)
  const jobs = [
    ...source.jobs,
    ...settlementJobs(context, settings, source),
    ...bookJobs(context, settings, { rates: store, books, pauses: source.pauses }),
  ]
  return { source, settled: createSettlementSource(context.db, settings.history_symbols), books: books.last, jobs }
}
