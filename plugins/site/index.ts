/** The pages about the service itself. Each handler returns what its view shows; the views hold the words. */
import { definePlugin } from '#gateway'
import { docs } from './docs.ts'
import { home } from './home.ts'
import { methodology } from './methodology.ts'
import { pricing } from './pricing.ts'

export default definePlugin({
  name: 'site',
  setup: () => ({
    handlers: { getHome: home, getPricingPage: pricing, getMethodology: methodology, getDocs: docs },
  }),
})
