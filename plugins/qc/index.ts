/** Bar quality: a forensic report on the bars a caller sends. Pure computing: no data of our own, no jobs. */
import { definePlugin, InvalidInput } from '#gateway'
import { readBars } from './bars.ts'
import { checkBars } from './check.ts'
import { parseInterval } from './interval.ts'
import { reportOf } from './report.ts'
import type { SessionName } from './session.ts'
import { createZone, UTC } from './zone.ts'

interface Settings {
  readonly symbol?: string
  readonly interval?: string | number
  readonly timezone?: string
  readonly session?: SessionName | 'auto'
  readonly allow_negative?: boolean
}

export default definePlugin({
  name: 'qc',
  setup: () => ({
    handlers: {
      checkBarQuality({ input }: { input: { body: unknown } }) {
        const { symbol, interval, timezone, session, allow_negative }: Settings = Array.isArray(input.body)
          ? {}
          : (input.body as Settings)
        const zone = timezone === undefined ? null : createZone(timezone)
        if (timezone !== undefined && zone === null)
          throw new InvalidInput(`Is ${JSON.stringify(timezone)}; write an IANA name such as America/New_York.`, [
            'body',
            'timezone',
          ])
        const bars = readBars(input.body, zone ?? UTC)
        const checked = checkBars(bars, {
          interval: interval === undefined ? null : parseInterval(interval),
          session: session ?? 'auto',
          zone,
          allowNegative: allow_negative ?? false,
        })
        return reportOf(bars, checked, symbol ?? null)
      },
    },
  }),
})
