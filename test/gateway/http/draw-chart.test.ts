import { expect } from 'chai'
import type { Chart } from 'tollgate/plugin'
import { draw, waterfall } from '../../../gateway/http/draw-chart.ts'

const CHART: Chart = {
  id: 'rain',
  title: 'Rain',
  description: 'It rained on Tuesday.',
  x: { label: 'Hour' },
  y: { label: 'Litres', domain: [0, 10] },
  series: [
    {
      name: 'Here',
      tone: 'main',
      points: [
        [0, 0],
        [10, 10],
      ],
    },
  ],
}

describe('a chart', () => {
  it('positions data as percentages of the plot, with larger values higher', () => {
    expect(draw(CHART).paths).to.deep.equal([{ kind: 'line', tone: 'main', d: 'M0,100L100,0' }])
    const [series] = CHART.series
    const drawn = draw({ ...CHART, series: [{ ...series!, kind: 'points' }], marks: [{ at: [5, 5], label: 'here' }] })
    expect(drawn.dots).to.deep.equal([
      { tone: 'main', x: 0, y: 100 },
      { tone: 'main', x: 100, y: 0 },
    ])
    expect(drawn.marks).to.deep.equal([{ label: 'here', x: 50, y: 50, anchor: 'start' }])
  })

  it('has round ticks in the unit of the axis', () => {
    const { yTicks } = draw({
      ...CHART,
      y: { label: 'Share', unit: 'percent', domain: [0, 1] },
      series: [
        {
          name: 'a',
          tone: 'main',
          points: [
            [0, 0.2],
            [1, 0.7],
          ],
        },
      ],
    })
    expect(yTicks.map(({ label }) => label)).to.deep.equal(['0%', '20%', '40%', '60%', '80%', '100%'])
    expect(yTicks.map(({ at }) => at)).to.deep.equal([100, 80, 60, 40, 20, 0])
  })

  it('has powers of ten as ticks of a logarithmic axis', () => {
    const { xTicks, paths } = draw({
      ...CHART,
      x: { label: 'Trials', scale: 'log' },
      series: [
        {
          name: 'a',
          tone: 'main',
          points: [
            [1, 0],
            [100, 5],
            [10_000, 10],
          ],
        },
      ],
    })
    expect(xTicks.map(({ at, label }) => [at, label])).to.deep.equal([
      [0, '1'],
      [25, '10'],
      [50, '100'],
      [75, '1,000'],
      [100, '10,000'],
    ])
    expect(paths[0]?.d).to.equal('M0,100L50,50L100,0')
  })

  it('shows times in UTC with the precision that the time range needs', () => {
    const days = (first: string, last: string): string[] =>
      draw({
        ...CHART,
        x: { label: 'Day', scale: 'time' },
        series: [
          {
            name: 'a',
            tone: 'main',
            points: [
              [Date.parse(first), 0],
              [Date.parse(last), 1],
            ],
          },
        ],
      }).xTicks.map(({ label }) => label)
    expect(days('2026-10-01T00:00:00Z', '2026-10-31T00:00:00Z')).to.include('Oct 4')
    expect(days('2026-10-01T00:00:00Z', '2026-10-01T12:00:00Z')).to.include('03:00')
    expect(days('2019-01-01T00:00:00Z', '2026-01-01T00:00:00Z')).to.include('2020')
  })

  it('has a table of every point, or the table that the chart provides', () => {
    const two = {
      ...CHART,
      series: [...CHART.series, { name: 'There', tone: 'second', points: [[5, 2.12345]] } as const],
    }
    expect(draw(two).table).to.deep.equal({
      columns: ['Hour', 'Here', 'There'],
      rows: [
        [0, 0, null],
        [5, null, 2.123],
        [10, 10, null],
      ],
    })
    const table = { columns: ['Day'], rows: [['Tuesday']] }
    expect(draw({ ...CHART, table }).table).to.equal(table)
  })

  it('shows data of one value as a line in the middle with one tick', () => {
    const flat = (value: number) =>
      draw({
        ...CHART,
        y: { label: 'Drawdown', unit: 'percent', domain: [value, value] },
        series: [
          {
            name: 'a',
            tone: 'main',
            points: [
              [0, value],
              [1, value],
            ],
          },
        ],
      })
    expect(flat(0).yTicks).to.deep.equal([{ at: 50, label: '0%' }])
    expect(flat(0).paths[0]?.d).to.equal('M0,50L100,50')
    expect(flat(0.125).yTicks).to.deep.equal([{ at: 50, label: '12.5%' }])
  })

  it('draws a single value and throws without any', () => {
    expect(
      draw({ ...CHART, series: [{ name: 'a', tone: 'main', kind: 'points', points: [[3, 4]] }] }).dots,
    ).to.deep.equal([{ tone: 'main', x: 50, y: 60 }])
    expect(() => draw({ ...CHART, series: [] })).to.throw('nothing to show')
  })
})

describe('a waterfall', () => {
  it('starts each step where the previous one ended', () => {
    const steps = [
      { label: 'Gross', amount: 10 },
      { label: 'Cost', amount: -4 },
      { label: 'Net', amount: 6, total: true },
    ]
    expect(waterfall(steps).spans.map(({ x, width }) => [x, width])).to.deep.equal([
      [0, 100],
      [60, 40],
      [0, 60],
    ])
  })

  it('can go below zero', () => {
    const { zero, spans } = waterfall([
      { label: 'Gross', amount: 1 },
      { label: 'Cost', amount: -4 },
    ])
    expect(zero).to.equal(75)
    expect(spans[1]).to.include({ x: 0, width: 100 })
  })
})
