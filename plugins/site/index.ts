/** The pages about the service itself. Each handler returns what its view shows; the views hold the words. */
import { type Call, definePlugin } from 'tollgate/plugin'
import { docs, docsOf } from './docs.ts'
import { guard } from './guard.ts'
import { home } from './home.ts'
import { kept } from './kept.ts'
import { methodology } from './methodology.ts'
import { createPast } from './past.ts'
import { pricing } from './pricing.ts'
import { createExamples, strategies } from './strategies.ts'

const MINUTE = 60_000

export default definePlugin({
  name: 'site',
  setup() {
    const readPast = createPast()
    const readExamples = kept(MINUTE, createExamples(readPast))
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
