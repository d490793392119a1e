import { expect } from 'chai'
import type { BarSource } from '../../../plugins/market/bar-source.ts'
import type { OnlineBars } from '../../../plugins/market/online-bars.ts'
import { barFreshness } from '../../../plugins/market/market-freshness.ts'

const AT = 1_790_000_040
const LAST_MINUTE = Math.floor(AT / 60) * 60

/** A source with the bars of these open times. */
function sourceOf(times: readonly number[]): BarSource {
  const series = [{ id: 1, symbol: 'BTC-USD', venue: 'v', interval_seconds: 60 }]
  const read = async (_: unknown, from: number, to: number) => {
    const time = Float64Array.from(times.filter((at) => at >= from && at < to))
    return { count: time.length, time }
  }
  const last = async () => times.at(-1) ?? null
  return { series: async () => series, read, readFirst: read, last } as unknown as BarSource
}

/** Two of three live venues answer. One that is asked for the past only does not count. */
const VENUES = {
  venues: async () => [
    { live: true, failures: 0 },
    { live: true, failures: 0 },
    { live: true, failures: 3 },
    { live: false, failures: 0 },
  ],
} as unknown as Pick<OnlineBars, 'venues'>

describe('how fresh bars are', () => {
  const minutes = (count: number, last = LAST_MINUTE - 60): number[] =>
    Array.from({ length: count }, (_, at) => last - (count - 1 - at) * 60)
  const online = (times: readonly number[], asOf = AT) =>
    barFreshness(sourceOf(times), VENUES, { symbol: 'BTC-USD', asOf })

  it('is told by the close of the last bar, the venues that answer and the share of the last hour', async () => {
    expect(await online(minutes(120))).to.deep.equal({ newest: new Date(LAST_MINUTE * 1000), sources: 2, coverage: 1 })
    expect((await online(minutes(30)))?.coverage).to.equal(0.5)
  })

  it('counts the same bars at every second of a minute', async () => {
    expect((await online(minutes(120), AT + 30)).coverage).to.equal(1)
    expect((await online(minutes(30), AT + 59)).coverage).to.equal(0.5)
  })

  it('is told by the last bar of all if there was none in the last hour', async () => {
    const last = LAST_MINUTE - 7200
    expect(await online(minutes(10, last))).to.deep.equal({
      newest: new Date((last + 60) * 1000),
      sources: 2,
      coverage: 0,
    })
  })

  it('is unknown without bars, and perfect for a recording that stands still', async () => {
    expect(await online([])).to.deep.equal({ newest: null, sources: 2, coverage: 0 })
    const recorded = await barFreshness(sourceOf(minutes(3, LAST_MINUTE - 86_400)), null, {
      symbol: 'BTC-USD',
      asOf: AT,
    })
    expect(recorded).to.deep.equal({ newest: new Date(AT * 1000), sources: null, coverage: 1 })
  })
})
