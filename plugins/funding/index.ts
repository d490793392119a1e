/** Funding rates of perpetual futures, by venue and across venues. */
import { type Call, definePlugin } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import type { FundingQuery } from '../../schemas/types.d.ts'
import { answerFundingRates } from './rates-answer.ts'
import { methodology } from './funding-methodology.ts'
import { openOnlineRates } from './online-rates.ts'
import { openReplayedRates } from './replayed-rates.ts'
import { openSampleRates } from './sample-rates.ts'
import { settingsSchema, type Settings } from './funding-settings.ts'
import { createRateStore, migrations } from './rate-store.ts'

export default definePlugin({
  name: 'funding',
  migrations,
  settings: settingsSchema,
  async setup(context) {
    const { dataMode } = dataSettings(context)
    const settings = context.settings as unknown as Settings
    const online = dataMode === 'online' ? openOnlineRates(context, settings, createRateStore(context.db)) : null
    const source = online ?? (dataMode === 'replay' ? await openReplayedRates(context) : openSampleRates())
    return {
      handlers: {
        getPerpFundingRates: ({ input, asOf }: Call<{ query: FundingQuery }>) =>
          answerFundingRates(source, { query: input.query, asOf, dataMode }),
        getPerpFundingMethod: () => methodology,
      },
      jobs: online?.jobs ?? [],
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
