import { expect } from 'chai'
import fc from 'fast-check'
import { InvalidInput, ServiceError } from '../../../gateway/errors.ts'
import { auditOf, barsText, makeDays, ROUND_TRIPS } from './audit-fixtures.ts'

const GOOD = 'X,long,1,2024-01-02,100,2024-01-03,101'
const row = (changes: Readonly<Record<number, string>>): string =>
  GOOD.split(',')
    .map((cell, i) => changes[i] ?? cell)
    .join(',')

async function refusal(file: string | Buffer, bars?: string): Promise<ServiceError> {
  try {
    await auditOf(file, bars === undefined ? {} : { bars })
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  throw new Error('it was audited')
}

describe('a hostile ledger', () => {
  const file = (...rows: readonly string[]): string => `${[ROUND_TRIPS, ...rows].join('\n')}\n`
  const cases: Readonly<Record<string, readonly [text: string | Buffer, ...loc: (string | number)[]]>> = {
    'is empty': [''],
    'has only blank lines': ['\n\n\r\n'],
    'has a header and no rows': [`${ROUND_TRIPS}\n`],
    'has NaN as a price': [file(GOOD, row({ 4: 'NaN' })), 1, 'entry_price'],
    'has -Infinity as a price': [file(GOOD, GOOD, row({ 6: '-Infinity' })), 2, 'exit_price'],
    'has 1e400 as a quantity': [file(row({ 2: '1e400' })), 0, 'qty'],
    'has a price that is too large': [file(GOOD, row({ 6: '1e19' })), 1, 'exit_price'],
    'has a formula as a price': [file(GOOD, row({ 4: '=1+1' })), 1, 'entry_price'],
    'has a formula as a symbol': [file(GOOD, row({ 0: "=cmd|' /C calc'!A0" })), 1, 'symbol'],
    'has a formula with an at sign as a time': [file(row({ 3: '@SUM(1)' })), 0, 'entry_time'],
    'has two columns of the same name': [`symbol,side,Symbol,entry_time\n${GOOD}\n`, 'header'],
    'has no known column': [`a,b,c\n1,2,3\n`, 'header'],
    'has 10,000 columns': [`${Array.from({ length: 10_000 }, (_, i) => `c${i}`).join(',')}\n1\n`, 'header'],
    'is 10 MB of commas': [','.repeat(10_000_000), 1],
    'is 10 MB of commas under a header': [`${ROUND_TRIPS}\n${','.repeat(10_000_000)}`, 2],
    'has a row wider than the header': [file(GOOD, `${GOOD},7`), 1],
    'has a cell of 5,000 characters': [file(GOOD, row({ 0: 'X'.repeat(5000) })), 1],
    'has a quote that never closes': [file(GOOD, `"${GOOD}`, ...Array.from({ length: 20_000 }, () => GOOD)), 1],
    'has text after a closing quote': [file(GOOD, '"X"Y,long,1,2024-01-02,100,2024-01-03,101'), 1],
    'is JSON that ends early': ['{"trades": [{"open_rate": 1'],
    'is JSON without trades': ['{"strategy": {"trades": []}}'],
    'is JSON with a number that is too large': [
      JSON.stringify([{ entry_time: 1, entry_price: 7, exit_time: 1, exit_price: 1 }]).replace('7', '1e400'),
      0,
      'entry_price',
    ],
    'is JSON with a cell of 5,000 characters': [
      JSON.stringify([{ entry_time: 'x'.repeat(5000), entry_price: 1, exit_time: 1, exit_price: 1 }]),
      0,
    ],
    'contains binary data': [Buffer.concat([Buffer.from(file(GOOD)), Buffer.from([0, 255, 0, 1])]), 1],
    'is a picture': [Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), 1],
    'is UTF-16 without a byte order mark': [Buffer.from(file(GOOD), 'utf16le'), 1],
    'is neither UTF-8 nor UTF-16': [Buffer.concat([Buffer.from(file(GOOD)), Buffer.from([0xe9, 0x2c])]), 1],
    'mixes times with and without a zone': [file(GOOD, row({ 3: '2024-01-02T10:00:00Z' })), 1, 'entry_time'],
    'mixes times of two zones': [
      file(row({ 3: '2024-01-02T10:00:00Z', 5: '2024-01-02T10:00:00-05:00' })),
      0,
      'exit_time',
    ],
    'mixes dates with the day first and with the month first': [
      file(row({ 3: '13/01/2024', 5: '14/01/2024' }), row({ 3: '01/13/2024', 5: '01/14/2024' })),
      0,
      'entry_time',
    ],
    'has only open trades': [file(row({ 5: '', 6: '' })), 0],
    'has only broken rows': [file(row({ 4: '0' })), 0, 'entry_price'],
    'has 257 trials': [
      `${ROUND_TRIPS},trial\n${Array.from({ length: 257 }, (_, i) => `${GOOD},${i}`).join('\n')}\n`,
      256,
      'trial',
    ],
  }
  for (const [defect, [text, ...location]] of Object.entries(cases))
    it(`is refused, and the error says where, if it ${defect}`, async () => {
      const error = await refusal(text)
      expect(error, String(error)).to.be.instanceOf(InvalidInput)
      const [item] = (error as InvalidInput).detail
      expect(item?.loc).to.deep.equal(['body', 'file', ...location])
      expect(item?.msg.length).to.be.within(10, 400)
    })

  it('is refused as too large beyond 200,000 rows', async () => {
    const error = await refusal(`${ROUND_TRIPS}\n${`${GOOD}\n`.repeat(200_001)}`)
    expect(error).to.include({ code: 'body_too_large' })
    expect(error.fields).to.deep.equal({ max_rows: 200_000 })
  })

  it('never produces a figure that is not finite', async () => {
    const trips = [row({ 2: '1e18', 4: '1e-18', 6: '1e18' }), row({ 2: '1e-18', 4: '1e18', 6: '1e-18' }), GOOD]
    const report = await auditOf([`${ROUND_TRIPS},fees,pnl`, ...trips.map((one, i) => `${one},1e18,${i}e17`)])
    expect(report.ledger).to.include({ trades: 3, excluded: 0 })
    const figures = JSON.stringify(report, (_, value: unknown) =>
      typeof value === 'number' && !Number.isFinite(value) ? 'not finite' : value,
    )
    expect(figures).not.to.contain('not finite')
    expect(
      await auditOf(file(row({ 4: '1e-19' }), row({ 2: '1e-19' }), GOOD)).then(({ fills }) => fills.by_code),
    ).to.deep.equal({
      nonpositive_price: 1,
      nonpositive_qty: 1,
    })
  })

  it('loses the row of a year of the first century, which stands for a missing time', async () => {
    const report = await auditOf(file(GOOD, row({ 3: '0001-01-01' })))
    expect(report.fills.by_code).to.deep.equal({ unparseable_time: 1 })
  })

  it('loses only the rows whose price or side cannot be read', async () => {
    const report = await auditOf(file(row({ 4: 'n/a' }), row({ 4: 'abc' }), row({ 1: 'sideways' }), GOOD))
    expect(report.fills.by_code).to.deep.equal({ missing_value: 1, unknown_side: 1, unreadable_number: 1 })
  })

  it('is refused for bad bars, and the error says where they are bad', async () => {
    const good = barsText(makeDays(30))
    const badBars: Readonly<Record<string, readonly [string, ...(string | number)[]]>> = {
      'no prices': ['symbol,date\nX,2024-01-02\n', 'header'],
      'a bad time': [good.replace('2018-01-10', 'soon'), 2, 'date'],
      infinity: [good.replace(/(2018-01-10,)[\d.]+/, '$11e999'), 2, 'open'],
      empty: [''],
    }
    for (const [defect, [bars, ...location]] of Object.entries(badBars)) {
      const error = (await refusal(file(GOOD), bars)) as InvalidInput
      expect(error.detail[0]?.loc, defect).to.deep.equal(['body', 'bars', ...location])
    }
    const unnamed = good.replaceAll(/^[^,]+,/gm, '')
    const error = (await refusal(file(GOOD, row({ 0: 'Y' })), unnamed)) as InvalidInput
    expect(error.detail[0]?.loc).to.deep.equal(['body', 'bars', 'header'])
  })

  it('is at worst refused, whatever bytes it contains', async () => {
    const cell = fc.oneof(
      fc.constantFrom('', '0', '-1', '1e308', 'NaN', '2024-02-30', '"', '\\', '=', '\u202e', 'long', '2024-01-02', '5'),
      fc.string({ maxLength: 12 }),
    )
    const text = fc
      .array(
        fc.array(cell, { maxLength: 9 }).map((cells) => cells.join(',')),
        { maxLength: 8 },
      )
      .map((rows) => file(...rows))
    const bytes = fc.oneof(
      text.map((one) => Buffer.from(one)),
      fc.uint8Array({ maxLength: 300 }).map(Buffer.from),
    )
    await fc.assert(
      fc.asyncProperty(bytes, async (input) => {
        const report = await auditOf(input).catch((error: unknown) => error)
        if (report instanceof Error) expect(report).to.be.instanceOf(ServiceError)
        else expect(JSON.stringify(report)).to.contain('"verdict"')
      }),
      { numRuns: 300 },
    )
  })
})
