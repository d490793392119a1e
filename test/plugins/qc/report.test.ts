import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { randomWalk } from './random-walk.ts'

const catalog = JSON.parse(readFileSync('catalog/qc.json', 'utf8')) as {
  operations: { checkBarQuality: { example: { request: { body: unknown }; response: unknown } } }
}

describe('the bar-quality report', () => {
  it('matches the example in the catalog', () => {
    const { request, response } = catalog.operations.checkBarQuality.example
    expect(JSON.parse(JSON.stringify(checkBarQuality(request.body)))).to.deep.equal(response)
  })

  it('can be recalculated from its own numbers', () => {
    const bars = randomWalk({ count: 500 }).map((bar, i) => (i === 200 ? { ...bar, h: bar.h * 1.05 } : bar))
    const half = bars.map((bar, i) =>
      i < 300 ? bar : { ...bar, o: bar.o / 2, h: bar.h / 2, l: bar.l / 2, c: bar.c / 2 },
    )
    const { findings, splits, score, counts } = checkBarQuality({ bars: half })
    const { inputs, observed, ...print } = findings.find(({ code }) => code === 'bad_print_high')!
    const { beyond, scale, volume_excuse } = inputs!
    expect(beyond).to.be.closeTo(Number(print.expected), 1e-3)
    expect(print.score).to.be.closeTo(Math.log(Number(observed) / beyond) / (scale * volume_excuse), 1e-3)
    const { evidence, log_odds } = splits[0]!
    const { gap_log_odds, range_log_odds, turnover_log_odds, share_volume_log_odds } = evidence!
    expect(evidence!.gap).to.be.closeTo(Math.log(half[300]!.o / half[299]!.c), 1e-6)
    expect(log_odds).to.be.closeTo(gap_log_odds + range_log_odds + turnover_log_odds + share_volume_log_odds, 1e-3)
    expect(score).to.be.closeTo(1 - (100 * (counts.error + 0.3 * counts.warning)) / 500, 1e-4)
  })

  it('gives a clean file a score of 1 and calls it usable', () => {
    const report = checkBarQuality({ symbol: 'WALK', bars: randomWalk({ count: 500 }) })
    expect(report).to.deep.include({
      symbol: 'WALK',
      bars: 500,
      score: 1,
      grade: 'A',
      usable: true,
      interval_seconds: 60,
    })
    expect(report.counts).to.deep.equal({ error: 0, warning: 0, info: 0 })
    expect([report.first, report.last]).to.deep.equal(['2024-01-03T00:00:00Z', '2024-01-03T08:19:00Z'])
  })

  it('scores errors with weight 1, warnings with 0.3 and infos with 0', () => {
    const bars = randomWalk({ count: 1000 })
    const broken = bars.map((bar, i) => (i === 100 || i === 300 ? { ...bar, c: -1 } : bar)).toSpliced(700, 3)
    const report = checkBarQuality({ bars: broken })
    expect(report.counts).to.deep.equal({ error: 2, warning: 1, info: 0 })
    expect(report.score).to.be.closeTo(1 - (100 * 2.3) / 997, 1e-4)
    expect(report).to.include({ grade: 'C', usable: false })
  })

  it('calls bars usable with errors on up to a thousandth of them', () => {
    const bars = randomWalk({ count: 1000 })
    expect(checkBarQuality({ bars: bars.with(500, { ...bars[500]!, v: -1 }) }).usable).to.equal(true)
  })

  it('lists the worst 1,000 findings in order of rows and counts all', () => {
    const bars = randomWalk({ count: 4000 }).map((bar, i) =>
      i % 3 === 0 ? { ...bar, c: -bar.c } : i % 3 === 1 ? { ...bar, v: 0 } : bar,
    )
    const report = checkBarQuality({ bars })
    expect(report.findings).to.have.length(1000)
    expect(report.findings_truncated).to.equal(true)
    expect(report.counts.error).to.equal(1334)
    expect(report.findings.every(({ severity }) => severity === 'error')).to.equal(true)
    const rows = report.findings.map(({ index }) => index)
    expect(rows).to.deep.equal(rows.toSorted((a, b) => a - b))
  })

  it('uses the interval of the request', () => {
    expect(checkBarQuality({ bars: randomWalk({ count: 50 }), interval: '15m' }).interval_seconds).to.equal(900)
    expect(checkBarQuality({ bars: randomWalk({ count: 50 }), interval: 60 }).interval_seconds).to.equal(60)
    expect(checkBarQuality({ bars: randomWalk({ count: 50 }), interval: '1M' }).interval_seconds).to.equal(30 * 86_400)
  })
})
