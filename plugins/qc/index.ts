/** Bar quality: a forensic report on the bars that a caller sends. It uses no data of our own and runs no jobs. */
import { definePlugin, hasUnreadBody } from 'tollgate/plugin'
import type { BarQualityReport } from '../../schemas/types.d.ts'
import { countBars } from './bar-input.ts'
import checkBarQuality, { checkBarFile, fileIn } from './bar-quality.ts'
import { methodology } from './quality-methodology.ts'

/**
 * More bars are checked in a worker thread. Checking this many takes 4 ms, and handing them to a thread and back takes
 * 0.7 ms, of which 0.3 ms are spent on the event loop.
 */
const MAX_INLINE_BARS = 200
/** Larger files are. A file of this size has about 200 bars. */
const MAX_INLINE_BYTES = 8192

export default definePlugin({
  name: 'qc',
  setup: ({ work }) => ({
    handlers: {
      checkBarQuality(call) {
        const { input } = call
        const file = hasUnreadBody(input) ? null : fileIn(input.body)
        if (file && file.bytes.length <= MAX_INLINE_BYTES) return checkBarFile(input.body)
        if (!file && !hasUnreadBody(input) && countBars(input.body) <= MAX_INLINE_BARS)
          return checkBarQuality(input.body)
        return work<BarQualityReport>(new URL('./bar-quality-work.ts', import.meta.url), input, { call })
      },
      getBarQualityMethod: () => methodology(),
    },
  }),
})
