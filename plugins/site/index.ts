/** The pages about the service itself. Each handler returns the values that its view shows. */
import { type Call, definePlugin } from 'tollgate/plugin'
import { docs, docsOf } from './docs.ts'
import { guard } from './guard.ts'
import { home } from './home.ts'
import { cachedRead } from './cached-read.ts'
import { methodology } from './methodology.ts'
import { createPastReader } from './regime-past.ts'
import { pricing } from './pricing-page.ts'
import { createExamples, strategies } from './strategies.ts'

const MINUTE = 60_000

export default definePlugin({
  name: 'site',
  setup() {
    const readPast = createPastReader()
    const readExamples = cachedRead(MINUTE, createExamples(readPast))
    return {
      handlers: {
        getHome: (call: Call) => home(call, readPast),
        getPricingPage: pricing,
        getMethodology: methodology,
        getGuard: guard,
        getStrategies: (call: Call) => strategies(call, readExamples),
        getDocs: docs,
        getDocsOperation: docsOf,
      },
    }
  },
})
