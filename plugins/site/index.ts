/** The pages about the service itself. Each handler returns the values that its view shows. */
import { type Call, definePlugin } from 'tollgate/plugin'
import { docs, docsOf } from './docs.ts'
import { guardPage } from './guard-page.ts'
import { home } from './home.ts'
import { cachedRead } from './cached-read.ts'
import { methodology } from './methodology.ts'
import { createHistoryReader } from './regime-history.ts'
import { pricing } from './pricing-page.ts'
import { createExamples, strategies } from './strategies.ts'

const MINUTE = 60_000

export default definePlugin({
  name: 'site',
  setup() {
    const readHistory = createHistoryReader()
    const readExamples = cachedRead(MINUTE, createExamples(readHistory))
    return {
      handlers: {
        getHome: (call: Call) => home(call, readHistory),
        getPricingPage: pricing,
        getMethodology: methodology,
        getGuard: guardPage,
        getStrategies: (call: Call) => strategies(call, readExamples),
        getDocs: docs,
        getDocsOperation: docsOf,
      },
    }
  },
})
