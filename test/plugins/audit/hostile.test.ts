import { expect } from 'chai'
import fc from 'fast-check'
import { InvalidInput, ServiceError } from '../../../gateway/errors.ts'
import { auditOf, barsText, days, ROUND_TRIPS } from './place.ts'

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
    'nothing at all': [''],
    'blank lines': ['\n\n\r\n'],
    'a header and no rows': [`${ROUND_TRIPS}\n`],
    'NaN for a price': [file(GOOD, row({ 4: 'NaN' })), 1, 'entry_price'],
    'Infinity for a price': [file(GOOD, GOOD, row({ 6: '-Infinity' })), 2, 'exit_price'],
    '1e400 for a quantity': [file(row({ 2: '1e400' })), 0, 'qty'],
    'a price beyond all measure': [file(GOOD, row({ 6: '1e19' })), 1, 'exit_price'],
    'a formula for a price': [file(GOOD, row({ 4: '=1+1' })), 1, 'entry_price'],
    'a formula for a symbol': [file(GOOD, row({ 0: "=cmd|' /C calc'!A0" })), 1, 'symbol'],
    'a formula with an at sign for a time': [file(row({ 3: '@SUM(1)' })), 0, 'entry_time'],
    'two columns of one name': [`symbol,side,Symbol,entry_time\n${GOOD}\n`, 'header'],
    'columns of no known kind': [`a,b,c\n1,2,3\n`, 'header'],
    '10,000 columns': [`${Array.from({ length: 10_000 }, (_, i) => `c${i}`).join(',')}\n1\n`, 'header'],
    '10 MB of commas': [','.repeat(10_000_000), 1],
    '10 MB of commas under a header': [`${ROUND_TRIPS}\n${','.repeat(10_000_000)}`, 2],
    'a row wider than the header': [file(GOOD, `${GOOD},7`), 1],
    'a cell of 5,000 characters': [file(GOOD, row({ 0: 'X'.repeat(5000) })), 1],
    'a quote that never closes': [file(GOOD, `"${GOOD}`, ...Array.from({ length: 20_000 }, () => GOOD)), 1],
    'text after a quote': [file(GOOD, '"X"Y,long,1,2024-01-02,100,2024-01-03,101'), 1],
    'JSON that ends early': ['{"trades": [{"open_rate": 1'],
    'JSON without trades': ['{"strategy": {"trades": []}}'],
    'JSON with a number too large': [
      JSON.stringify([{ entry_time: 1, entry_price: 7, exit_time: 1, exit_price: 1 }]).replace('7', '1e400'),
      0,
      'entry_price',
    ],
    'JSON with a cell of 5,000 characters': [
      JSON.stringify([{ entry_time: 'x'.repeat(5000), entry_price: 1, exit_time: 1, exit_price: 1 }]),
      0,
    ],
    'binary data': [Buffer.concat([Buffer.from(file(GOOD)), Buffer.from([0, 255, 0, 1])]), 1],
    'a picture': [Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), 1],
    'UTF-16': [Buffer.from(file(GOOD), 'utf16le'), 1],
    'another encoding': [Buffer.concat([Buffer.from(file(GOOD)), Buffer.from([0xe9, 0x2c])]), 1],
    'times with and without a zone': [file(GOOD, row({ 3: '2024-01-02T10:00:00Z' })), 1, 'entry_time'],
    'times of two zones': [file(row({ 3: '2024-01-02T10:00:00Z', 5: '2024-01-02T10:00:00-05:00' })), 0, 'exit_time'],
    'days before months, and months before days': [
      file(row({ 3: '13/01/2024', 5: '14/01/2024' }), row({ 3: '01/13/2024', 5: '01/14/2024' })),
      0,
      'entry_time',
    ],
    'nothing but open trades': [file(row({ 5: '', 6: '' })), 0],
    'nothing but broken rows': [file(row({ 4: '0' })), 0, 'entry_price'],
    '257 trials': [
      `${ROUND_TRIPS},trial\n${Array.from({ length: 257 }, (_, i) => `${GOOD},${i}`).join('\n')}\n`,
      256,
      'trial',
    ],
  }
  for (const [what, [text, ...place]] of Object.entries(cases))
    it(`is refused with its place: ${what}`, async () => {
      const error = await refusal(text)
      expect(error, String(error)).to.be.instanceOf(InvalidInput)
      const [item] = (error as InvalidInput).detail
      expect(item?.loc).to.deep.equal(['body', 'file', ...place])
      expect(item?.msg.length).to.be.within(10, 400)
    })

  it('is rejected with 413 beyond 200,000 rows', async () => {
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

  it('loses only the row whose price is not a number', async () => {
    const report = await auditOf(file(row({ 4: 'n/a' }), row({ 4: 'abc' }), row({ 1: 'sideways' }), GOOD))
    expect(report.fills.by_code).to.deep.equal({ missing_value: 3 })
  })

  it('is rejected for bad bars with an error that names the place', async () => {
    const good = barsText(days(30))
    const wrong: Readonly<Record<string, readonly [string, ...(string | number)[]]>> = {
      'no prices': ['symbol,date\nX,2024-01-02\n', 'header'],
      'a bad time': [good.replace('2018-01-10', 'soon'), 2, 'date'],
      infinity: [good.replace(/(2018-01-10,)[\d.]+/, '$11e999'), 2, 'open'],
      empty: [''],
    }
    for (const [what, [bars, ...place]] of Object.entries(wrong)) {
      const error = (await refusal(file(GOOD), bars)) as InvalidInput
      expect(error.detail[0]?.loc, what).to.deep.equal(['body', 'bars', ...place])
    }
    const unnamed = good.replaceAll(/^[^,]+,/gm, '')
    const error = (await refusal(file(GOOD, row({ 0: 'Y' })), unnamed)) as InvalidInput
    expect(error.detail[0]?.loc).to.deep.equal(['body', 'bars', 'header'])
  })

  it('is at worst rejected, whatever its bytes', async () => {
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
