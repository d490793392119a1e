import { expect } from 'chai'
import { agreeOnMinutes, type VenueAnswer } from '../../../plugins/market/agreed-minutes.ts'
import { CLOSED, createColumns, FILLED } from '../../../plugins/market/bars.ts'
import type { VenueName } from '../../../plugins/market/venues/bar-venues.ts'

const START = Date.UTC(2026, 2, 4, 12) / 1000
const MINUTE = 60
const VENUES = ['coinbase', 'bitstamp', 'bitfinex'] as const
/** Every venue lists this many minutes, and is silent about the half hour after them. */
const LISTED = 10
const END = START + 40 * MINUTE

/** What a venue answers that lists the first ten minutes. */
function answerOf(venue: VenueName): VenueAnswer {
  const bars = createColumns(LISTED)
  for (let nth = 0; nth < LISTED; nth += 1) {
    const price = 100 + nth
    bars.add(START + nth * MINUTE, price, price, price, price, 1 + nth, CLOSED)
  }
  return { venue, from: START, to: END, bars: bars.end(), rejected: new Set() }
}

/** The minutes that are decided `secondsLater` after the end, and how many of them count as quiet. */
function decided(venues: readonly VenueName[], secondsLater: number, awaited?: readonly VenueName[]): number[] {
  const { bars, decidedTo } = agreeOnMinutes(venues.map(answerOf), {
    from: START,
    to: END,
    tolerance: 0.01,
    before: null,
    now: END + secondsLater,
    bitOf: (venue) => VENUES.indexOf(venue as (typeof VENUES)[number]),
    ...(awaited ? { awaited } : {}),
  })
  const quiet = bars.state.subarray(0, bars.count).filter((state) => state === FILLED).length
  return [(decidedTo - START) / MINUTE, quiet]
}

describe('minutes after the last one that any venue lists', () => {
  it('are not decided as they close, however many venues are silent and for how long', () => {
    for (const later of [100, 3_600, 86_400]) expect(decided(VENUES, later, VENUES)).to.deep.equal([LISTED, 0])
  })

  it('count as quiet an hour later if three venues answer, five at most', () => {
    expect(decided(VENUES, 3_600)).to.deep.equal([LISTED + 5, 5])
    expect(decided(VENUES, 1_200)).to.deep.equal([LISTED, 0])
    expect(decided(VENUES.slice(1), 86_400)).to.deep.equal([LISTED, 0])
  })
})
