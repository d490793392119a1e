import { expect } from 'chai'
import { readNumber, cellFormatOf } from '../../../plugins/lib/tables/cell-values.ts'
import { auditOf, findingsOf, ROUND_TRIPS } from './audit-fixtures.ts'

const cell = { file: 'file', row: 0, column: 'price' } as const

describe('reading numbers', () => {
  it('accepts currencies, units, signs and digit groups of many countries', () => {
    const written: Readonly<Record<string, number>> = {
      '$95.10': 95.1,
      '-$10.00': -10,
      '($1,234.50)': -1234.5,
      '+US$12.5': 12.5,
      '12.50-': -12.5,
      '- 12.5': -12.5,
      'CHF 1\u2019095.10': 1095.1,
      "1'095.10": 1095.1,
      '95.10 USD': 95.1,
      '(43.51) USD': -43.51,
      '0.5BTC': 0.5,
      '(1,234.50) USD': -1234.5,
      '(1.20)%': -1.2,
      '1,234': 1234,
      '1,234,567.25': 1_234_567.25,
      '1\u202f234.5': 1234.5,
      '\u22124.5': -4.5,
      '1e-5': 1e-5,
    }
    for (const [text, value] of Object.entries(written)) expect(readNumber(text, cell), text).to.equal(value)
    for (const text of ['', 'n/a', 'abc', 'A1', '0,123', '12,34', '1.2.3'])
      expect(readNumber(text, cell), text).to.be.NaN
  })

  it('reads decimal commas if the file uses them', () => {
    const written: Readonly<Record<string, number>> = {
      '95,10': 95.1,
      '1.234,56': 1234.56,
      '1.234': 1234,
      '-1.100,00 €': -1100,
      '0,123': 0.123,
      '10': 10,
      '1.5': 1.5,
    }
    for (const [text, value] of Object.entries(written)) expect(readNumber(text, cell, 'comma'), text).to.equal(value)
  })

  it('rejects formulas but accepts a sign before a currency', () => {
    expect(() => readNumber('-A1', cell)).to.throw()
    expect(() => readNumber('+cmd', cell)).to.throw()
    expect(readNumber('-€5', cell)).to.equal(-5)
  })
})

describe('detecting the format of a file', () => {
  it('takes the decimal separator from numbers that can be read in only one way', () => {
    expect(cellFormatOf([['1.000', '95,10']], ';').decimal).to.equal('comma')
    expect(cellFormatOf([['1,000', '95.10']], ';').decimal).to.equal('point')
    expect(cellFormatOf([['1,000', '1.000']], ';').decimal).to.equal('either')
    expect(cellFormatOf([['95,10', '95.10']], ';').decimal).to.equal('either')
    expect(cellFormatOf([['95,10']], ',').decimal).to.equal('comma')
    expect(cellFormatOf([['1,000', '7']], ',').decimal).to.equal('point')
  })

  it('settles it for each column, because fees with their unit may be written otherwise', async () => {
    const format = cellFormatOf([['41.224', '0,07685', '3.168,06', '0.00105602 BNB']], ';')
    expect(format.decimal).to.equal('comma')
    expect(format.decimals).to.deep.equal([undefined, 'comma', 'comma', 'point'])
    const { money } = await auditOf(
      [
        'Time;Pair;Side;Price;Executed;Amount;Fee',
        '2024-01-02 10:00:00;DOGEUSDT;BUY;0,0500;41.224;2.061,20;2.061 USDT',
        '2024-01-03 10:00:00;DOGEUSDT;SELL;0,0510;41.224;2.102,424;2.1024 USDT',
      ],
      { preset: 'zero' },
    )
    expect([money.gross, money.fees]).to.deep.equal([41.224, 4.1634])
  })

  it('takes the order of day and month from dates that can be read in only one way, or from decimal commas', () => {
    expect(cellFormatOf([['1/2/2024'], ['31/1/2024']], ',').dayFirst).to.equal(true)
    expect(cellFormatOf([['1/2/2024'], ['1/31/2024']], ',').dayFirst).to.equal(false)
    expect(cellFormatOf([['1/2/2024']], ',').dayFirst).to.equal(null)
    expect(cellFormatOf([['31/1/2024'], ['1/31/2024']], ',').dayFirst).to.equal(null)
    expect(cellFormatOf([['1/2/2024', '9,5']], ';').dayFirst).to.equal(true)
  })
})

describe('a ledger from brokers and spreadsheets', () => {
  const trip = async (...rows: readonly string[]) => auditOf([ROUND_TRIPS, ...rows], { preset: 'zero' })

  it('may have decimal commas and points between thousands', async () => {
    const rows = [
      'SAP;long;1.000;02.01.2024;95,10;03.01.2024;96,20',
      'SAP;short;2.500;04.01.2024;1.234;05.01.2024;1.233,5',
    ]
    const report = await auditOf([ROUND_TRIPS.replaceAll(',', ';'), ...rows], { preset: 'zero' })
    const gross = (96.2 / 95.1 - 1 + 1 - 1233.5 / 1234) / 2
    expect(report.performance.gross_expectancy_bps).to.be.closeTo(gross * 1e4, 1e-9)
    expect(report.ledger).to.include({ trades: 2, excluded: 0 })
  })

  it('may have quoted decimal commas between commas', async () => {
    const report = await trip('SAP,long,"10","02.01.2024","95,10","03.01.2024","96,20"')
    expect(report.performance.gross_expectancy_bps).to.be.closeTo((96.2 / 95.1 - 1) * 1e4, 1e-9)
  })

  it('may be UTF-16 with a byte order mark', async () => {
    const text = `\uFEFF${ROUND_TRIPS.replaceAll(',', '\t')}\r\nZÜRICH\tlong\t10\t2024-01-02\t95.10\t2024-01-03\t96.20\r\n`
    const littleEndian = Buffer.from(text, 'utf16le')
    for (const file of [littleEndian, Buffer.from(littleEndian).swap16()]) {
      const report = await auditOf(file)
      expect(report.ledger).to.include({ trades: 1, excluded: 0 })
    }
  })

  it('may put the day first, which applies from the first row on', async () => {
    const report = await trip('X,long,1,05/01/2024,100,12/01/2024,101', 'X,long,1,29/01/2024,100,30/01/2024,101')
    expect(report.ledger).to.include({ first: '2024-01-05T00:00:00.000Z', last: '2024-01-30T00:00:00.000Z' })
    expect(report.warnings).to.deep.equal([])
  })

  it('is read with the month first if its dates are ambiguous, with a warning', async () => {
    const report = await trip('X,long,1,1/5/24 9:30,100,1/12/24 16:00,101')
    expect(report.ledger).to.include({ first: '2024-01-05T09:30:00.000Z', last: '2024-01-12T16:00:00.000Z' })
    expect(report.warnings).to.include('dates_read_month_first')
  })

  it('may have the date formats of brokers', async () => {
    for (const moment of [
      '20240305;143000',
      '20240305143000',
      '05-Mar-2024 14:30',
      '5-Mar-24 2:30:00 PM',
      '05.03.24 14:30',
      '05-03-2024 14:30:00.250',
    ]) {
      const report = await trip(`X,long,1,${moment},10,${moment},11`)
      expect(report.ledger.first, moment).to.equal('2024-03-05T14:30:00.000Z')
    }
  })

  it('may have the day and the time of day in two columns', async () => {
    const rows = [
      'Symbol,Action,Quantity,Price,Time,Date',
      'SPY,BOT,10,470,09:30:00,20240102',
      'SPY,SLD,10,471,15:00:00,20240103',
    ]
    const report = await auditOf(rows)
    expect(report.ledger).to.include({ first: '2024-01-02T09:30:00.000Z', last: '2024-01-03T15:00:00.000Z', trades: 1 })
  })

  it('may use the side names of brokers', async () => {
    const rows = [
      'time,symbol,side,qty,price',
      '2024-01-02,X,Sell Short,10,100',
      '2024-01-03,X,BUY_TO_COVER,10,99',
      '2024-01-04,X,buy to open,10,100',
      '2024-01-05,X,Sell to Close,10,101',
    ]
    const report = await auditOf(rows, { preset: 'zero' })
    expect(report.ledger).to.include({ trades: 2, open: 0 })
    expect(report.performance.win_rate).to.equal(1)
  })

  it('is judged by the executed quantity and the fill price, not by the order', async () => {
    const rows = [
      'Date(UTC),Pair,Side,Price,Executed,Amount,Fee',
      '2024-01-02 10:00:00,BTCUSDT,BUY,"42,000.5",0.5BTC,21000.25USDT,10USDT',
      '2024-01-03 10:00:00,BTCUSDT,SELL,"43,000.5",0.5BTC,21500.25USDT,10USDT',
    ]
    const report = await auditOf(rows, { preset: 'zero' })
    const net = 43_000.5 / 42_000.5 - 1 - 20 / (0.5 * 42_000.5)
    expect(report.performance.net_expectancy_bps).to.be.closeTo(net * 1e4, 1e-9)
    const orders = [
      'symbol,side,qty,price,filled_avg_price,filled_at,status',
      'X,buy,10,,100,2024-01-02T15:00:00Z,filled',
      'X,sell,10,105,101,2024-01-03T15:00:00Z,filled',
      'X,sell,10,,,,canceled',
    ]
    const filled = await auditOf(orders, { preset: 'zero' })
    expect(filled.performance.gross_expectancy_bps).to.be.closeTo(100, 1e-9)
    expect(filled.ledger).to.include({ trades: 1, unfilled: 1 })
  })
})

describe('backtest results in JSON', () => {
  const closed = (symbol: string, profit: number) => ({
    symbol: { value: symbol, id: `${symbol} R735QTJ8XC9X` },
    entryTime: '2024-01-02T15:00:00Z',
    entryPrice: 100,
    direction: profit > 0 ? 0 : 1,
    quantity: 10,
    exitTime: '2024-01-03T15:00:00Z',
    exitPrice: 101,
    profitLoss: profit,
    totalFees: 2,
    mae: 0,
    mfe: 0,
  })

  it('are read from LEAN with each closed trade once, although rolling windows repeat trades', async () => {
    const file = {
      rollingWindow: { M1_20240131: { closedTrades: [closed('SPY', 10)] } },
      totalPerformance: { closedTrades: [closed('SPY', 10), closed('QQQ', -10)] },
    }
    const report = await auditOf(JSON.stringify(file))
    expect(report.ledger).to.include({ layout: 'lean_trades', trades: 2, symbols: 2 })
    expect(findingsOf(report)).to.deep.equal([])
  })

  it("are read from LEAN's order events, including partial fills and fees", async () => {
    const event = (status: string, direction: string, fillQuantity: number, fillPrice: number, time: number) => ({
      symbol: 'SPY R735QTJ8XC9X',
      status,
      direction,
      quantity: 10,
      fillQuantity,
      fillPrice,
      orderFeeAmount: fillQuantity === 0 ? undefined : 0.1,
      time,
    })
    const events = [
      event('submitted', 'buy', 0, 0, 1_704_207_500),
      event('partiallyFilled', 'buy', 4, 100, 1_704_207_600.5),
      event('filled', 'buy', 6, 100, 1_704_207_601),
      event('filled', 'sell', -10, 101, 1_704_294_000),
    ]
    const report = await auditOf(JSON.stringify(events), { preset: 'zero' })
    expect(report.ledger).to.include({ layout: 'fills', trades: 1, open: 0, unfilled: 1, excluded: 0 })
    expect(report.performance.gross_expectancy_bps).to.be.closeTo(100, 1e-9)
    expect(report.assumptions.trades_with_reported_fees).to.equal(1)
  })

  it("include freqtrade's funding in the fees", async () => {
    const trade = {
      pair: 'BTC/USDT:USDT',
      amount: 1,
      open_date: '2024-01-02 00:00:00+00:00',
      close_date: '2024-01-03 00:00:00+00:00',
      open_rate: 100,
      close_rate: 101,
      fee_open: 0.001,
      fee_close: 0.001,
      funding_fees: -0.25,
      profit_abs: 1 - 0.201 - 0.25,
      is_short: false,
    }
    const report = await auditOf(JSON.stringify([trade]), { preset: 'zero' })
    expect(findingsOf(report)).to.deep.equal([])
    expect(report.performance.net_expectancy_bps).to.be.closeTo(54.9, 1e-9)
  })
})
