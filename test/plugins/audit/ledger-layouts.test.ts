import { expect } from 'chai'
import { figuresOf } from './audit-figures.ts'
import { LAYOUT_NAMES, writeLedger } from './ledger-layouts.ts'
import { auditOf, barsText, makeDays, findingsOf, ROUND_TRIPS, makeTrades } from './audit-fixtures.ts'

const dailyBars = makeDays(400)
const ledger = makeTrades(dailyBars)

describe('reading a trade ledger', () => {
  for (const layout of LAYOUT_NAMES)
    it(`gives the same figures for the same trades in the layout ${layout}`, async () => {
      const [plain, other] = [
        await auditOf(writeLedger('round_trips', ledger), { bars: barsText(dailyBars) }),
        await auditOf(writeLedger(layout, ledger), { bars: barsText(dailyBars) }),
      ]
      expect(other.ledger).to.include({ layout, trades: ledger.length, excluded: 0, open: 0, symbols: 1 })
      expect(figuresOf(other).length).to.be.greaterThan(30)
      for (const [index, value] of figuresOf(other).entries())
        expect(value).to.be.closeTo(figuresOf(plain)[index]!, 1e-6)
      expect(findingsOf(other)).to.deep.equal([])
      expect(other.fills).to.include({ checked: 2 * ledger.length, not_checked: 0 })
    })

  for (const [format, style] of Object.entries({
    'cells separated by semicolons': { delimiter: ';' },
    'cells separated by tabs': { delimiter: '\t' },
    'CRLF line ends and a byte order mark': { newline: '\r\n', bom: true },
  }))
    it(`accepts ${format}`, async () => {
      const report = await auditOf(writeLedger('vectorbt', ledger, style))
      expect(report.ledger).to.include({ layout: 'vectorbt', trades: ledger.length, excluded: 0 })
    })

  it('accepts decimal commas if semicolons separate the cells', async () => {
    const text = writeLedger('round_trips', ledger, { delimiter: ';' }).toString().replaceAll('.', ',')
    const report = await auditOf(text)
    expect(figuresOf(report)).to.deep.equal(figuresOf(await auditOf(writeLedger('round_trips', ledger))))
  })

  it('accepts the format of European spreadsheets', async () => {
    const rows = ['Trade #;Type;Date/Time;Price EUR;Position size (qty);Net P&L EUR;Net P&L %']
    rows.push('1;Exit long;03.01.2024 10:00;1.010,50 EUR;2;21,00;1,05%', '1;Entry long;02.01.2024 10:00;1.000,00;2;;')
    rows.push(
      '2;Exit short;05.01.2024 10:00;990,00;2;\u221220,00;\u22122,02%',
      '2;Entry short;04.01.2024 10:00;980,00;2;;',
    )
    const report = await auditOf(rows, { preset: 'zero' })
    expect(report.ledger).to.include({ layout: 'tradingview', trades: 2, first: '2024-01-02T10:00:00.000Z' })
    expect(report.performance.gross_expectancy_bps).to.be.closeTo((105 - 1e4 * (10 / 980)) / 2, 1e-9)
    expect(findingsOf(report)).to.deep.equal([])
  })

  it("accepts freqtrade's JSON, as a list or as a backtest result", async () => {
    const trades = ledger.map((trip) => ({
      pair: trip.symbol,
      amount: trip.qty,
      open_date: `${trip.entryTime} 00:00:00+00:00`,
      close_date: `${trip.exitTime} 00:00:00+00:00`,
      open_rate: trip.entryPrice,
      close_rate: trip.exitPrice,
      is_short: trip.sign === -1,
      enter_tag: null,
      orders: [{ amount: trip.qty }],
    }))
    const plain = figuresOf(await auditOf(writeLedger('freqtrade', ledger)))
    for (const file of [trades, { strategy: { Mine: { trades, locks: [] } }, metadata: {} }]) {
      const report = await auditOf(JSON.stringify(file))
      expect(report.ledger).to.include({ layout: 'freqtrade', trades: ledger.length, excluded: 0 })
      expect(figuresOf(report)).to.deep.equal(plain)
    }
  })

  it("understands LEAN's numbers for directions and order states", async () => {
    const trades = ['Symbol,EntryTime,EntryPrice,Direction,Quantity,ExitTime,ExitPrice,MAE,MFE']
    trades.push('X,2024-01-02,100,0,1,2024-01-03,101,0,0', 'X,2024-01-04,100,1,1,2024-01-05,99,0,0')
    const orders = ['Time,Symbol,Price,Quantity,Type,Status,Value,Tag']
    orders.push('2024-01-02T15:00:00Z,X,100,1,0,3,100,', '2024-01-03T15:00:00Z,X,101,-1,0,3,-101,')
    orders.push('2024-01-03T16:00:00Z,X,0,-1,0,5,0,')
    const [tradesReport, one] = [await auditOf(trades, { preset: 'zero' }), await auditOf(orders, { preset: 'zero' })]
    for (const { performance } of [tradesReport, one]) expect(performance.win_rate).to.equal(1)
    expect(tradesReport.ledger).to.include({ layout: 'lean_trades', trades: 2 })
    expect(one.ledger).to.include({ layout: 'lean_orders', trades: 1, unfilled: 1 })
  })

  it('joins fills into round trips of a position, with partial fills and fees', async () => {
    const report = await auditOf(
      [
        'time,symbol,side,qty,price,fee',
        '2024-01-02 10:00,X,buy,100,10,1',
        '2024-01-02 11:00,X,buy,50,11,1',
        '2024-01-03 10:00,X,sell,120,12,1.2',
        '2024-01-04 10:00,X,sell,80,9,0.8',
        '2024-01-05 10:00,X,buy,25,8,0.25',
      ],
      { preset: 'zero' },
    )
    // 150 bought for 1550 and sold for 1710. The sale of 80 goes through zero: of the 50 sold short @ 9, 25 are still open.
    expect(report.ledger).to.include({ trades: 2, open: 1, excluded: 0 })
    const gross = [1710 / 1550 - 1, 1 / 9]
    const fees = [(1 + 1 + 1.2 + 0.3) / 1550, (0.25 + 0.25) / 225]
    const mean = (values: number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length
    expect(report.performance.gross_expectancy_bps).to.be.closeTo(mean(gross) * 1e4, 1e-9)
    expect(report.performance.net_expectancy_bps).to.be.closeTo(mean(gross.map((r, i) => r - fees[i]!)) * 1e4, 1e-9)
    expect(report.assumptions.trades_with_reported_fees).to.equal(2)
    expect(report.warnings).to.include('closed_parts_of_1_open_positions_counted_as_trades')
    const [open] = report.money.open_positions
    expect(open).to.include({ symbol: 'X', side: 'short', qty: 25, entry_price: 9, last_price: 8, unrealised: 24.75 })
    expect(report.money).to.include({
      gross: 185,
      fees: 4,
      net: 181,
      unrealised: 24.75,
      open_positions: report.money.open_positions,
    })
  })

  it('accepts rows from newest to oldest', async () => {
    const [header = '', ...lines] = writeLedger('fills', ledger).toString().trim().split('\n')
    const report = await auditOf([header, ...lines.toReversed()])
    expect(figuresOf(report)).to.deep.equal(figuresOf(await auditOf(writeLedger('fills', ledger))))
  })

  it('excludes open trades and counts them', async () => {
    const lines = ledger.slice(0, 9).map((trip) => `${trip.symbol},long,1,${trip.entryTime},10,${trip.exitTime},11`)
    const open = ['ACME,long,1,2024-01-02,10,,', 'ACME,long,1,2024-01-02,10,NaT,nan']
    const report = await auditOf([ROUND_TRIPS, ...lines, ...open])
    expect(report.ledger).to.include({ rows: 11, trades: 9, open: 2, excluded: 0 })
  })

  it('assumes long trades without a side and skips checks that need a quantity', async () => {
    const lines = ledger.map(({ entryTime, entryPrice, exitTime, exitPrice }) =>
      [entryTime, entryPrice, exitTime, exitPrice].join('\t'),
    )
    const report = await auditOf(['EntryTime\tEntryPrice\tExitTime\tExitPrice', ...lines], {
      bars: barsText(dailyBars),
      symbol: 'ACME',
    })
    expect(report.fills.checked).to.equal(2 * ledger.length)
    const volume = report.fills.checks.find(({ check }) => check === 'volume')
    expect(volume).to.include({ status: 'not_checked' })
    expect(volume?.reasons).to.deep.equal(['the file has no quantity'])
  })

  it('uses the sign of the quantity as the side', async () => {
    const lines = ['10,2024-01-02,100,2024-01-03,101', '-10,2024-01-04,100,2024-01-05,99']
    const report = await auditOf(['Size,EntryTime,EntryPrice,ExitTime,ExitPrice', ...lines], { preset: 'zero' })
    expect(report.performance.win_rate).to.equal(1)
    expect(report.performance.gross_expectancy_bps).to.be.closeTo(100, 1e-9)
  })

  it('accepts negative quantities for sales beside a side column', async () => {
    const trip = 'X,long,5,2024-01-02,100,2024-01-03,101'
    const short = 'X,short,-5,2024-01-04,100,2024-01-05,99'
    const tradesReport = await auditOf([ROUND_TRIPS, trip, short], { preset: 'zero' })
    expect(tradesReport.ledger).to.include({ trades: 2, excluded: 0 })
    expect(tradesReport.performance.win_rate).to.equal(1)
    const fills = ['time,symbol,action,qty,price', '2024-01-02,X,BUY,5,100', '2024-01-03,X,SELL,-5,101']
    expect((await auditOf(fills)).ledger).to.include({ trades: 1, open: 0, excluded: 0 })
    const mixed = [...fills, '2024-01-04,X,BUY,-5,100']
    expect(await auditOf([...mixed, ...fills.slice(1, 2), '2024-01-09,X,SELL,5,101']).then(findingsOf)).to.deep.equal([
      '1 nonpositive_qty',
      '2 nonpositive_qty',
    ])
  })

  it('accepts fees written as negative amounts', async () => {
    const rows = (fee: number): string[] => [
      `${ROUND_TRIPS},commission`,
      `X,long,10,2024-01-02,100,2024-01-03,101,${fee}`,
    ]
    const { net_expectancy_bps: net } = (await auditOf(rows(2), { preset: 'zero' })).performance
    expect(net).to.be.closeTo(80, 1e-9)
    expect((await auditOf(rows(-2), { preset: 'zero' })).performance.net_expectancy_bps).to.equal(net)
  })

  it('reads the same time in many formats', async () => {
    const moments = [
      '2024-03-04T14:30:00Z',
      '2024-03-04 14:30:00+00:00',
      '1709562600',
      '1709562600000',
      '1709562600000000000',
      '2024-03-04T14:30:00.000000Z',
      '2024-03-04T15:30+0100',
    ]
    for (const moment of moments) {
      const report = await auditOf([ROUND_TRIPS, `X,long,1,${moment},10,${moment},11`])
      expect(report.ledger.first, moment).to.equal('2024-03-04T14:30:00.000Z')
    }
    for (const moment of [
      '2024-03-04 14:30',
      '3/4/2024 2:30 PM',
      '20240304 14:30:00',
      '2024/3/4 14:30',
      '04.03.2024 14:30',
      '4 Mar 2024 14:30',
      '"March 4, 2024, 2:30 PM"',
    ]) {
      const report = await auditOf([ROUND_TRIPS, `X,long,1,${moment},10,${moment},11`])
      expect(report.ledger, moment).to.include({ first: '2024-03-04T14:30:00.000Z', zoned: false })
    }
  })
})
