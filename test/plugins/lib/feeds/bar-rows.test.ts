import { expect } from 'chai'
import { checkBars, type SentBar } from '../../../../plugins/lib/feeds/bar-rows.ts'

const rules = { from: 600, to: 1200, intervalSeconds: 60, servedAt: 1100 }
const sent = (change: Partial<SentBar> = {}): SentBar => {
  const bar = { time: 660, open: '10', high: '12', low: '9.5', close: 11, volume: '0', ...change }
  return { ...bar, row: Object.values(bar) }
}

describe('rows of bars that another service sent', () => {
  it('are read from numbers and from numbers as text, in order of time', () => {
    const { rows, rejected } = checkBars([sent({ time: 720 }), sent()], rules)
    expect(rows.map(({ time }) => time)).to.deep.equal([660, 720])
    expect(rows[0]).to.deep.equal({ time: 660, open: 10, high: 12, low: 9.5, close: 11, volume: 0 })
    expect(rejected).to.deep.equal([])
  })

  for (const [reason, change] of [
    ['not_a_number', { close: null }],
    ['not_a_number', { close: '' }],
    ['not_a_number', { open: 'n/a' }],
    ['not_a_number', { high: Infinity }],
    ['not_a_number', { low: [] }],
    ['not_a_number', { time: null }],
    ['not_positive', { open: 0, low: 0 }],
    ['not_positive', { low: -1 }],
    ['negative_volume', { volume: -1 }],
    ['high_below_low', { high: 9, low: 10 }],
    ['outside_high_low', { close: 13 }],
    ['outside_high_low', { open: 9 }],
    ['off_the_minute', { time: 661 }],
    ['in_the_future', { time: 1140 }],
  ] as const)
    it(`are set aside as ${reason} with ${JSON.stringify(change)}, and stop none of the others`, () => {
      const { rows, rejected } = checkBars([sent(change), sent({ time: 720 })], rules)
      expect(rows.map(({ time }) => time)).to.deep.equal([720])
      expect(rejected.map((row) => row.reason)).to.deep.equal([reason])
      expect(JSON.parse(rejected[0]!.row)).to.be.an('array')
    })

  it('are dropped without a note while their bar is still forming, and where nobody asked', () => {
    // 1080 has not closed at 1100.
    const { rows, rejected } = checkBars([sent({ time: 540 }), sent({ time: 1080 }), sent({ time: 1200 })], rules)
    expect([rows, rejected]).to.deep.equal([[], []])
  })

  it('count once when they are repeated, and not at all when they contradict each other', () => {
    const { rows, rejected } = checkBars(
      [sent(), sent(), sent({ time: 720 }), sent({ time: 720, close: 12 }), sent({ time: 780 })],
      rules,
    )
    expect(rows.map(({ time }) => time)).to.deep.equal([660, 780])
    expect(rejected.map(({ time, reason }) => [time, reason])).to.deep.equal([
      [720, 'contradicts_itself'],
      [720, 'contradicts_itself'],
    ])
  })

  it('are kept as text of bounded length', () => {
    const { rejected } = checkBars([sent({ close: 'x'.repeat(10_000) })], rules)
    expect(rejected[0]!.row.length).to.be.at.most(300)
  })
})
