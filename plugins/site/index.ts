/** The pages about the service itself, beside those that every shop has. Each handler returns the values that its view shows. */
import { definePlugin } from 'tollgate/plugin'
import { guardPage } from './guard-page.ts'
import { home } from './home.ts'
import { cachedRead } from './cached-read.ts'
import { methodology } from './methodology.ts'
import { createHistoryReader } from './regime-history.ts'
import { examples, strategies } from './strategies.ts'

const MINUTE = 60_000

export default definePlugin({
  name: 'site',
  setup() {
    const readHistory = createHistoryReader()
    const readExamples = cachedRead(MINUTE, examples)
    return {
      handlers: {
        getHome: (call) => home(call, readHistory),
        getMethodology: methodology,
        getGuard: guardPage,
        getStrategies: (call) => strategies(call, readExamples),
      },
    }
  },
})
