/** Counts to ten, one number in a fifth of a second. */
import { setTimeout } from 'node:timers/promises'
import { definePlugin, InvalidInput, Reply } from 'tollgate/plugin'

const LAST = 10

/** Yields the numbers after `last`, until the buyer leaves. */
async function* count(last: number, signal: AbortSignal) {
  for (let tick = last + 1; tick <= LAST && !signal.aborted; tick += 1) {
    yield { id: String(tick), data: { tick } }
    await setTimeout(200, null, { signal }).catch(() => {})
  }
}

const invalid = (header: string, msg: string) =>
  new InvalidInput([{ loc: ['header', header], msg, type: 'value_error' }])

export default definePlugin({
  name: 'ticks',
  setup: () => ({
    handlers: {
      followTicks({ stream, signal }) {
        if (!stream) throw invalid('accept', 'must include text/event-stream')
        const last = stream.lastEventId ?? '0'
        if (!/^\d{1,2}$/.test(last)) throw invalid('last-event-id', 'must be the id of an event of this stream')
        return Reply.events(count(Number(last), signal))
      },
    },
  }),
})
