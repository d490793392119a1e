/** The pages about the service itself. Each handler returns what its view shows; the views hold the words. */
import { type Call, definePlugin } from '#gateway'
import { docs } from './docs.ts'
import { home } from './home.ts'
import { methodology } from './methodology.ts'
import { createPast } from './past.ts'
import { pricing } from './pricing.ts'

export default definePlugin({
  name: 'site',
  setup() {
    const readPast = createPast()
    return {
      handlers: {
        getHome: (call: Call) => home(call, readPast),
        getPricingPage: pricing,
        getMethodology: methodology,
        getDocs: docs,
      },
    }
  },
})
