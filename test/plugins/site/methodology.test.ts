import { expect } from 'chai'
import { formatTable } from '../../../plugins/site/methodology.ts'

describe('a table on the methodology page', () => {
  it('shows all numbers of a column with the same number of decimals', () => {
    const { columns, rows } = formatTable({
      caption: 'Measured',
      columns: ['recording', 'ratio', 'turnover', 'bar'],
      rows: [
        ['one', 2.26, 20_000_000, '≤ 2'],
        ['other', 1.8, 1065, null],
        ['none', null, 5, '2.5'],
      ],
    })
    expect(rows).to.deep.equal([
      ['one', '2.26', '20,000,000', '≤ 2'],
      ['other', '1.80', '1,065', '–'],
      ['none', '–', '5', '2.5'],
    ])
    expect(columns.map(({ isNumber }) => isNumber)).to.deep.equal([false, true, true, false])
  })

  it('shows counts as whole numbers beside a figure that is written as text', () => {
    const { rows } = formatTable({
      caption: '',
      columns: ['figure', 'measured'],
      rows: [
        ['read', 1520],
        ['ms', '9.8'],
      ],
    })
    expect(rows).to.deep.equal([
      ['read', '1,520'],
      ['ms', '9.8'],
    ])
  })

  it('rounds decimals that are only noise', () => {
    const { rows } = formatTable({ caption: '', columns: ['sum'], rows: [[0.1 + 0.2], [1]] })
    expect(rows).to.deep.equal([['0.3'], ['1.0']])
  })
})
