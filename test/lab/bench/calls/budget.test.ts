import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { type BudgetLine, judge, record } from './budget.ts'

const root = join(import.meta.dirname, '../../../..')

const line = (changes: Partial<BudgetLine> = {}): BudgetLine => ({
  name: 'paid call',
  of: 'paid',
  to: 'reference',
  bar: { times: 0.2 },
  recorded: 0.4,
  ...changes,
})
const micros = (paid: number, reference: number) =>
  new Map([
    ['paid', [paid]],
    ['reference', [reference]],
  ])
const judgeOne = (budget: BudgetLine, measured: ReadonlyMap<string, readonly number[]>) => {
  const [verdict] = judge([budget], measured)
  if (!verdict) throw new Error('The line was left out.')
  return verdict
}

describe('the budget of the benchmark', () => {
  it('compares the ratio with the bar', () => {
    expect(judgeOne(line(), micros(20, 100))).to.include({ times: 0.2, meetsBar: true })
    expect(judgeOne(line(), micros(21, 100))).to.include({ times: 0.21, meetsBar: false })
  })

  it('takes the median of the rounds, each compared with its own', () => {
    const rounds = new Map([
      ['paid', [20, 200, 30]],
      ['reference', [100, 1000, 100]],
    ])
    expect(judgeOne(line(), rounds)).to.include({ times: 0.2, microsAbove: -80 })
    const even = new Map([
      ['paid', [20, 40]],
      ['reference', [100, 100]],
    ])
    expect(judgeOne(line(), even).times).to.be.closeTo(0.3, 1e-12)
  })

  it('compares the difference with a bar in microseconds', () => {
    const bar = { microsAbove: 150 }
    expect(judgeOne(line({ bar }), micros(1150, 1000))).to.include({ microsAbove: 150, meetsBar: true })
    expect(judgeOne(line({ bar }), micros(1151, 1000))).to.include({ microsAbove: 151, meetsBar: false })
    expect(judgeOne(line({ bar }), micros(900, 1000))).to.include({ microsAbove: -100, meetsBar: true })
  })

  it('fails a ratio above one and a half times the recorded one, whether or not it meets the bar', () => {
    expect(judgeOne(line({ recorded: 0.4 }), micros(59, 100))).to.include({ meetsBar: false, isWithinLimit: true })
    expect(judgeOne(line({ recorded: 0.4 }), micros(61, 100))).to.include({ isWithinLimit: false })
    expect(judgeOne(line({ recorded: 0.1 }), micros(16, 100))).to.include({ meetsBar: true, isWithinLimit: false })
  })

  it('fails a ratio only if the cheapest rounds are above the limit too, because noise adds to single rounds', () => {
    const noisy = new Map([
      ['paid', [100, 90, 55]],
      ['reference', [100, 100, 100]],
    ])
    expect(judgeOne(line({ recorded: 0.4 }), noisy)).to.include({ times: 0.9, isWithinLimit: true })
    const dear = new Map([
      ['paid', [100, 90, 65]],
      ['reference', [100, 100, 100]],
    ])
    expect(judgeOne(line({ recorded: 0.4 }), dear)).to.include({ times: 0.9, isWithinLimit: false })
  })

  it('leaves out rounds that only one of two cases has', () => {
    const rounds = new Map([
      ['paid', [20, 20, 900]],
      ['reference', [100, 100]],
    ])
    expect(judgeOne(line(), rounds)).to.include({ times: 0.2, microsAbove: -80 })
  })

  it('limits nothing that was never recorded', () => {
    expect(judgeOne(line({ recorded: null }), micros(900, 100))).to.include({ limit: null, isWithinLimit: true })
  })

  it('leaves out lines whose cases were not measured', () => {
    expect(judge([line(), line({ to: 'other' })], new Map([['paid', [1]]]))).to.deep.equal([])
  })

  it('records measured ratios and changes neither bars nor lines that were not measured', () => {
    const lines = [line(), line({ name: 'other', of: 'other', recorded: 3 })]
    expect(record(lines, judge(lines, micros(123_456, 1_000_000)))).to.deep.equal([
      line({ recorded: 0.123 }),
      line({ name: 'other', of: 'other', recorded: 3 }),
    ])
  })

  it('has a recorded ratio and a name of its own for every line of budget.json', () => {
    const lines = JSON.parse(readFileSync(join(root, 'test/lab/bench/budget.json'), 'utf8')) as readonly BudgetLine[]
    expect(new Set(lines.map(({ name }) => name)).size).to.equal(lines.length)
    expect(lines.filter(({ recorded }) => recorded === null).map(({ name }) => name)).to.deep.equal([])
  })
})
