import { expect } from 'chai'
import { paceOf, VenuePaces } from '../../../plugins/market/venue-pace.ts'
import { VENUES, type VenueName } from '../../../plugins/market/venues/bar-venues.ts'

const signal = new AbortController().signal

/** Paces on a clock that jumps to the end of each wait. */
function openPaces() {
  let now = 0
  const waits: number[] = []
  const paces = new VenuePaces({
    now: () => now,
    async wait(ms) {
      waits.push(ms)
    },
  })
  return { paces, waits, pass: (ms: number) => (now += ms) }
}

describe('the pace of requests to a venue', () => {
  it('lets a burst through at once and then one request after the other', async () => {
    const { paces, waits } = openPaces()
    for (let i = 0; i < 6; i += 1) await paces.turn('bitfinex', { perSecond: 0.5, burst: 3 }, Infinity, signal)
    expect(waits).to.deep.equal([2000, 4000, 6000])
  })

  it('counts the requests of every symbol together, and those of other venues apart', async () => {
    const { paces, waits } = openPaces()
    const pace = { perSecond: 1, burst: 1 }
    for (const venue of ['kraken', 'coinbase', 'kraken'] as const) await paces.turn(venue, pace, Infinity, signal)
    expect(waits).to.deep.equal([1000])
  })

  it('takes no turn for a caller who will not wait that long', async () => {
    const { paces, waits, pass } = openPaces()
    const pace = { perSecond: 0.1, burst: 1 }
    expect(await paces.turn('kraken', pace, 5000, signal)).to.equal(true)
    expect(await paces.turn('kraken', pace, 5000, signal)).to.equal(false)
    pass(6000)
    expect(await paces.turn('kraken', pace, 5000, signal)).to.equal(true)
    expect(waits).to.deep.equal([4000])
  })

  it('is as fast as the settings say, and stays within the limit that each venue states', () => {
    expect(
      paceOf('kraken', { venues: { kraken: { url: 'http://k', enabled: true, per_second: 7 } } }).perSecond,
    ).to.equal(7)
    /** Requests in a minute. */
    const limits: Readonly<Record<VenueName, number>> = {
      coinbase: 600,
      binance: 3000,
      binance_us: 3000,
      kraken: 61,
      bitstamp: 1000,
      bitfinex: 30,
    }
    for (const name of Object.keys(VENUES) as VenueName[]) {
      const { perSecond, burst } = paceOf(name, {})
      expect(burst + 60 * perSecond, name).to.be.at.most(limits[name])
    }
  })
})
