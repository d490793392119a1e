import { expect } from 'chai'
import fc from 'fast-check'
import type { Audit } from '../../../plugins/audit/audit.ts'
import { InvalidInput } from '../../../gateway/errors.ts'
import { auditOf, ROUND_TRIPS } from './audit-fixtures.ts'

type Options = Parameters<typeof auditOf>[1]
const zero = (rows: readonly string[], options: Options = {}): Promise<Audit> =>
  auditOf(rows, { preset: 'zero', ...options })

async function refusal(rows: readonly string[], options: Options = {}): Promise<InvalidInput> {
  const answer: unknown = await zero(rows, options).catch((error: unknown) => error)
  if (answer instanceof InvalidInput) return answer
  throw answer instanceof Error ? answer : new Error('it was audited')
}

const usesOf = ({ reading }: Audit): Record<string, string | null> =>
  Object.fromEntries(reading.columns.map(({ name, used_as: use }) => [name, use]))
const assumed = ({ reading }: Audit): string[] => reading.assumptions.map(({ code }) => code)

const TRIP = 'X,long,10,2024-01-02,100,2024-01-03,101'

describe('the column of sides', () => {
  const trips = (name: string, short: string, long: string): string[] => [
    `${name},Symbol,Quantity,Entry Date,Entry Price,Exit Date,Exit Price`,
    `${short},X,10,2024-01-02,100,2024-01-03,98`,
    `${long},X,10,2024-01-04,100,2024-01-05,102`,
  ]

  it('is found by its words, whatever its name', async () => {
    for (const name of ['Position', 'B/S', 'Pos', 'L/S', 'Trade', 'Trans', 'Richtung', 'Zxq', 'Col 1']) {
      const report = await zero(trips(name, 'Short', 'Long'))
      expect(report.performance.gross_expectancy_bps, name).to.be.closeTo(200, 1e-9)
      expect(usesOf(report)[name], name).to.equal('side')
    }
  })

  it('is read in the words of many exports and languages', async () => {
    const words = [
      ['SELL (Ca.)', 'BUY (Eq.)'],
      ['Verkauf', 'Kauf'],
      ['Vente', 'Achat'],
      ['Venta', 'Compra'],
      ['SLD', 'BOT'],
      ['SS', 'B'],
      ['Sell to Open', 'Buy to Open'],
      ['Open Short', 'Open Long'],
      ['Close Short', 'Close Long'],
      ['売り', '買い'],
      ['-1', '+1'],
    ] as const
    for (const [short, long] of words) {
      const { performance } = await zero(trips('Side', short, long))
      expect(performance.gross_expectancy_bps, short).to.be.closeTo(200, 1e-9)
    }
    for (const [sell, buy] of [
      ['S', 'B'],
      ['S', 'L'],
    ] as const)
      expect((await zero(trips('B/S', sell, buy))).performance.gross_expectancy_bps, buy).to.be.closeTo(200, 1e-9)
  })

  it('may hold one letter alone, if its name says so', async () => {
    for (const name of ['Position', 'Pos', 'Action', 'L/S', 'B/S', 'Trade']) {
      const report = await zero(trips(name, 'S', 'S'))
      expect(report.performance.gross_expectancy_bps, name).to.be.closeTo(0, 1e-9)
      expect(usesOf(report)[name], name).to.equal('side')
      expect(assumed(report), name).not.to.include('all_long')
    }
    expect(usesOf(await zero(trips('Grade', 'S', 'S')))['Grade']).to.equal(null)
  })

  it('gives the side of the order for fills, and of the position for round trips', async () => {
    const fills = (open: string, close: string): string[] => [
      'time,symbol,action,qty,price',
      `2024-01-02,X,${open},10,100`,
      `2024-01-03,X,${close},10,99`,
    ]
    for (const [open, close] of [
      ['Sell Short', 'Cover'],
      ['SS', 'BC'],
      ['Open Short', 'Close Short'],
      ['Sell to Open', 'Buy to Close'],
      ['STO', 'BTC'],
      ['Short', 'Buy'],
    ] as const) {
      const report = await zero(fills(open, close))
      expect(report.ledger, open).to.include({ trades: 1, open: 0 })
      expect(report.performance.gross_expectancy_bps, open).to.be.closeTo(100, 1e-9)
    }
  })

  it('is not the type of the order, nor what says in and out', async () => {
    const deals = [
      'Time,Symbol,Type,Direction,Volume,Price,Order Type',
      '2024.03.04 10:00:00,EURUSD,buy,in,0.1,1.085,market',
      '2024.03.04 12:00:00,EURUSD,sell,out,0.1,1.087,limit',
    ]
    const report = await zero(deals)
    expect(report.performance.gross_expectancy_bps).to.be.closeTo((1.087 / 1.085 - 1) * 1e4, 1e-9)
    expect(usesOf(report)).to.include({ Type: 'side', Direction: 'open_close', 'Order Type': 'type' })
  })

  it('may be the side of the exit', async () => {
    const rows = [
      'Contracts,Closing Direction,Qty,Entry Price,Exit Price,Entry Time,Exit Time',
      'BTCUSDT,Sell,1,100,102,2024-01-02 10:00,2024-01-02 11:00',
      'BTCUSDT,Buy,1,100,98,2024-01-03 10:00,2024-01-03 11:00',
    ]
    const report = await zero(rows)
    expect(report.performance.gross_expectancy_bps).to.be.closeTo(200, 1e-9)
    expect(usesOf(report)).to.include({ Contracts: 'symbol', 'Closing Direction': 'exit_side' })
  })

  it('may be missing: then all trades are long, and the report says so', async () => {
    const report = await zero([ROUND_TRIPS.replace('side,', ''), TRIP.replace('long,', '')])
    expect(report.reading.assumptions[0]).to.deep.equal({
      code: 'all_long',
      text: 'No column says long or short, so every trade is read as long.',
      parameter: 'columns',
    })
    expect(assumed(await zero([ROUND_TRIPS, TRIP]))).to.deep.equal([])
  })

  it('may say that a trade is still open', async () => {
    const rows = [
      'Symbol,Trade,Date,Price,Ex. date,Ex. Price,Shares',
      'X,Long,2024-01-02,100,2024-01-03,101,10',
      'X,Short,2024-01-04,100,2024-01-05,99,10',
      'X,Open Long,2024-01-06,100,2024-01-07,50,10',
    ]
    const report = await zero(rows)
    expect(report.ledger).to.include({ trades: 2, open: 1 })
    expect(report.performance.gross_expectancy_bps).to.be.closeTo(100, 1e-9)
  })

  it('is refused if its words are not known, naming them, the column and known words', async () => {
    const error = await refusal(trips('Side', 'Abwarts', 'Aufwarts'))
    expect(error.detail[0]).to.include({ type: 'unknown_side' })
    for (const part of ['"Side"', 'Abwarts', 'Aufwarts', 'Buy to Cover', 'columns'])
      expect(error.detail[0]?.msg).to.contain(part)
  })

  it('loses a single row with an unknown word, and the finding holds the word', async () => {
    const report = await zero([
      ROUND_TRIPS,
      ...Array.from({ length: 9 }, (_, i) => TRIP.replace('100', `10${i}`)),
      TRIP.replace('long', 'sideways'),
    ])
    expect(report.fills.findings[0]).to.include({ code: 'unknown_side', field: 'side', text: 'sideways', row: 9 })
  })

  it('is refused if two columns of unknown name contradict each other, or if it holds 0 and 1', async () => {
    const rows = (header: string, ...cells: string[]): string[] => [
      `${header},qty,entry_time,entry_price,exit_time,exit_price`,
      ...cells.map((one, day) => `${one},1,2024-01-0${day + 1},100,2024-01-0${day + 2},101`),
    ]
    const both = await refusal(rows('Foo,Bar', 'long,short', 'short,long'))
    expect(both.detail[0]?.msg).to.contain('"Foo"').and.to.contain('"Bar"').and.to.contain('Foo=side')
    const flags = await refusal(rows('Direction', '0', '1'))
    expect(flags.detail[0]?.msg).to.contain('Direction=short')
    const stated = await zero(rows('Direction', '0', '1'), { stated: statedColumns({ Direction: 'short' }) })
    expect(stated.performance.gross_expectancy_bps).to.be.closeTo(0, 1e-9)
  })
})

const statedColumns = (columns: Record<string, string>) => ({
  columns: new Map(Object.entries(columns)),
  contractSize: null,
  feeCurrency: null,
  quoteCurrency: null,
  capital: null,
  timezone: null,
  benchmark: null,
})

describe('the column of instruments', () => {
  const fills = (name: string, one = 'US0000000018', other = 'CH0000000026'): string[] => [
    `Buy/Sell,TradeDate,${name},Quantity,TradePrice,IBCommission`,
    `BUY,20240102,${one},10,20.00,-0.1`,
    `BUY,20240103,${other},10,300.00,-0.1`,
    `SELL,20240104,${other},-10,303.00,-0.1`,
    `SELL,20240105,${one},-10,19.80,-0.1`,
  ]

  it('is known by many names, so that no two instruments are matched with each other', async () => {
    const names =
      'ISIN,wkn,cusip,conid,coin,identifier,description,underlying,code,Security ID,Scrip,Wertpapier,Contract,Stock,Currency Pair,Name,FIGI,Item'
    for (const name of names.split(',')) {
      const report = await zero(fills(name))
      expect(report.ledger, name).to.include({ trades: 2, symbols: 2 })
      expect(report.performance.net_expectancy_bps, name).to.be.closeTo(-5.333, 1e-3)
      expect(usesOf(report)[name], name).to.equal('symbol')
    }
    expect((await zero(fills('conid', '265598', '8314'))).ledger.symbols).to.equal(2)
  })

  it('is not a column of names of orders', async () => {
    const orders = ['time,side,Name,qty,price', '2024-01-02,buy,Entry,1,100', '2024-01-03,sell,Stop1,1,101']
    const { ledger, reading } = await zero(orders)
    expect(ledger).to.include({ trades: 1, open: 0, symbols: 1 })
    expect(reading.assumptions.map(({ code }) => code)).to.include('one_instrument')
  })

  it('may hold coins whose names begin with a digit', async () => {
    for (const name of ['Market', 'Asset', 'Symbol']) {
      const report = await zero(fills(name, '1INCHUSDT', '1000PEPEUSDT'))
      expect(report.ledger, name).to.include({ trades: 2, symbols: 2 })
      expect(usesOf(report)[name], name).to.equal('symbol')
    }
  })

  it('is a column of unknown name that holds tickers, and the report says how it was found', async () => {
    const { ledger, reading } = await zero(fills('Gizmo'))
    expect(ledger.symbols).to.equal(2)
    expect(reading.columns[2]).to.deep.include({ name: 'Gizmo', used_as: 'symbol' })
    expect(reading.columns[2]?.why).to.contain('US0000000018')
  })

  it('is refused if it may be a column of unknown name, and the error names it', async () => {
    const rows = fills('Paper', 'Alpha fund', 'beta fund')
    const error = await refusal(rows)
    expect(error.detail[0]?.loc).to.deep.equal(['body', 'file', 'header', 'Paper'])
    expect(error.detail[0]?.msg).to.contain('Paper=symbol')
    expect((await zero(rows, { stated: statedColumns({ paper: 'symbol' }) })).ledger.symbols).to.equal(2)
    const one = await zero(rows, { symbol: 'ONE', stated: statedColumns({ Paper: 'ignore' }) })
    expect(one.ledger.symbols).to.equal(1)
  })

  it('is missed if the price jumps 15-fold, so the file is refused', async () => {
    const rows = fills('x').map((row) => row.split(',').toSpliced(2, 1).join())
    const error = await refusal(rows)
    expect(error.detail[0]?.msg).to.contain('from 20 to 300').and.to.contain('symbol')
    const stated = await zero(rows, { symbol: 'ONE' })
    expect(assumed(stated)).to.include('one_instrument')
    const near = rows.map((row) => row.replace(/30([03])/, '20.$1'))
    expect(assumed(await zero(near))).to.include('one_instrument')
  })

  it('names a price that jumps 15-fold in one symbol, which may be a split or two instruments', async () => {
    const report = await zero(fills('Symbol').map((row) => row.replace(/US0+18|CH0+26/, 'ONE')))
    expect(report.reading.assumptions).to.have.length(1)
    expect(report.reading.assumptions[0]?.text).to.contain('ONE').and.to.contain('from 20 to 300')
  })

  it('is told apart by expiry, strike and right, or by a code that is finer than the symbol', async () => {
    const options = [
      'Date,Action,Symbol,Expiration Date,Strike,Call or Put,Qty,Price',
      '2024-01-02,BTO,SPY,2024-02-16,470,C,1,5',
      '2024-01-03,BTO,SPY,2024-02-16,480,C,1,2',
      '2024-01-04,STC,SPY,2024-02-16,480,C,1,3',
      '2024-01-05,STC,SPY,2024-02-16,470,C,1,4',
    ]
    const report = await zero(options)
    expect(report.performance.gross_expectancy_bps).to.be.closeTo((0.5 - 0.2) * 5000, 1e-9)
    expect(report.reading.instruments.map(({ symbol }) => symbol)).to.deep.equal([
      'SPY 2024-02-16 470 C',
      'SPY 2024-02-16 480 C',
    ])
    const finer = [
      'Time,Side,Underlying,Local Symbol,Qty,Price',
      '2024-01-02,buy,ES,ESH4,1,100',
      '2024-01-03,buy,ES,ESM4,1,200',
      '2024-01-04,sell,ES,ESM4,1,202',
      '2024-01-05,sell,ES,ESH4,1,99',
    ]
    expect((await zero(finer)).performance.gross_expectancy_bps).to.be.closeTo(0, 1e-9)
  })
})

describe('the columns of fees', () => {
  const netOf = async (header: string, cells: string): Promise<number> =>
    (await zero([`${ROUND_TRIPS},${header}`, `${TRIP},${cells}`])).performance.net_expectancy_bps

  it('are known by many names', async () => {
    const names =
      'Fee (USDT),Fee USD,Commission USD,Fees & Comm,Trading Fee,Total Fee,Comm,Comm.,Commission Fee,fee_cost,Brokerage,Gebühren,Provision,Courtage,Comisión,Transaction Costs,Fee($),totalCommission,Exchange Fee,Stamp duty,TAF'
    for (const name of names.split(',')) expect(await netOf(name, '5'), name).to.be.closeTo(50, 1e-9)
  })

  it('are added if there are several, and a total beside them is not', async () => {
    expect(await netOf('Commission,Clearing Fee,Exchange Fee,IP Fee,NFA Fee', '2,1,1,0.5,0.5')).to.be.closeTo(50, 1e-9)
    // A fee that is as high as another one is not its copy.
    expect(await netOf('Commission,Clearing Fee,Exchange Fee', '2,0,3')).to.be.closeTo(50, 1e-9)
    expect(await netOf('Commission,Clearing Fee,Total Fees', '2,3,5')).to.be.closeTo(50, 1e-9)
    expect(await netOf('Commission,SEC,TAF,Charges', '2,2,1,5')).to.be.closeTo(50, 1e-9)
    expect(await netOf('Entry Fee,Exit Fee', '2,3')).to.be.closeTo(50, 1e-9)
    expect(await netOf('Entry commission,Exit commission,Total commission', '2,3,5')).to.be.closeTo(50, 1e-9)
    expect(await netOf('Fee,Fee USD', '5,5.01')).to.be.closeTo(50, 1e-9)
  })

  it('are not copies of each other if they are as high', async () => {
    const rows = (names: string): string[] => [
      `${ROUND_TRIPS},${names}`,
      `${TRIP},2,0,2`,
      `${TRIP.replace('02', '01')},3,0,3`,
    ]
    for (const names of ['Commission,Clearing Fee,Exchange Fee', 'Entry Fee,Levy,Exit Fee'])
      expect((await zero(rows(names))).performance.net_expectancy_bps, names).to.be.closeTo(50, 1e-9)
    for (const names of ['Commission,Levy,Comm', 'Trading Fee,Levy,execFeeV2', 'Fee,Levy,Fee USD'])
      expect((await zero(rows(names))).performance.net_expectancy_bps, names).to.be.closeTo(75, 1e-9)
  })

  it('are not rates, percentages, currencies or kinds', async () => {
    for (const [name, cell] of [
      ['Commission %', '0.1'],
      ['Fee rate', '0.001'],
      ['fee_pct', '0.1'],
      ['Commission', '0.1%'],
      ['Fee Tier', '5'],
      ['Fee coin', 'USDT'],
    ] as const) {
      const report = await zero([`${ROUND_TRIPS},${name}`, `${TRIP},${cell}`])
      expect(report.performance.net_expectancy_bps, name).to.be.closeTo(100, 1e-9)
      expect(usesOf(report)[name], name).not.to.equal('fees')
    }
    const both = await zero([`${ROUND_TRIPS},Commission %,Commission`, `${TRIP},0.5,5`])
    expect(both.performance.net_expectancy_bps).to.be.closeTo(50, 1e-9)
  })

  const fills = (name: string, ...fees: readonly (number | string)[]): string[] => [
    `Symbol,DateTime,Buy/Sell,Quantity,TradePrice,${name}`,
    ...fees.map((fee, i) =>
      i % 2 === 0 ? `X,202401${10 + i};100000,BUY,100,100,${fee}` : `X,202401${10 + i};110000,SELL,-100,100.2,${fee}`,
    ),
  ]

  it('have the signs that a known export means', async () => {
    const one = await zero(fills('IBCommission', -5, -5, -5, -5, 0.2, 0.1))
    expect(one.performance.net_expectancy_bps).to.be.closeTo(20 - 19.7 / 3, 1e-9)
    // Two rebates are more than the commissions, in number and in sum.
    const maker = await zero(fills('IBCommission', -1, 0, 2, 2))
    expect(maker.performance.net_expectancy_bps).to.be.closeTo(20 + 3 / 2, 1e-9)
  })

  it('otherwise have the signs that both their number and their sum say, and the report says so', async () => {
    const report = await zero(fills('Commission', -5, -5, -5, -5, 0.2, 0.1))
    expect(report.performance.net_expectancy_bps).to.be.closeTo(20 - 19.7 / 3, 1e-9)
    expect(assumed(report)).to.include('fee_signs')
    const positive = await zero(fills('Commission', 5, 5, 5, 5, -0.2, -0.1))
    expect(positive.performance.net_expectancy_bps).to.be.closeTo(20 - 19.7 / 3, 1e-9)
  })

  it('are refused if number and sum disagree, as for a market maker, unless the request says the sign', async () => {
    const rows = fills('Fee', -1, -1, -1, -1, 6, -1)
    const error = await refusal(rows)
    expect(error.detail[0]).to.include({ type: 'ambiguous_fee_signs' })
    expect(error.detail[0]?.msg).to.contain('"Fee"').and.to.contain('Fee=fees_paid_positive')
    const net = async (use: string): Promise<number> =>
      (await zero(rows, { stated: statedColumns({ Fee: use }) })).performance.net_expectancy_bps
    expect(await net('fees_paid_positive')).to.be.closeTo(20 - 1 / 3, 1e-9)
    expect(await net('fees_paid_negative')).to.be.closeTo(20 + 1 / 3, 1e-9)
  })
})

describe('the columns of a ledger', () => {
  it('are exits in the words of any export', async () => {
    const pairs = [
      ['Date,Price,Ex. date,Ex. Price'],
      ['Open Time,Open Price,Close Time,Close Price'],
      ['Entered at,Entry px,Exited at,Exit px'],
      ['Einstieg Datum,Einstieg Kurs,Ausstieg Datum,Ausstieg Kurs'],
      ['Opening date,Opening price,Closing date,Closing price'],
      ['Buy Date,Buy Price,Sell Date,Sell Price'],
    ]
    for (const [names] of pairs) {
      const report = await zero([`Symbol,Side,Qty,${names}`, 'X,long,10,2024-01-02,100,2024-01-03,101'])
      expect(report.ledger, names).to.include({ trades: 1, open: 0 })
      expect(report.performance.gross_expectancy_bps, names).to.be.closeTo(100, 1e-9)
    }
  })

  it('are a purchase and a sale, of which the earlier is the entry', async () => {
    const rows = ['symbol,qty,buyPrice,sellPrice,boughtTimestamp,soldTimestamp']
    rows.push('MNQ,1,100,101,2024-01-02 10:00,2024-01-02 10:05', 'MNQ,1,100,102,2024-01-03 10:05,2024-01-03 10:00')
    const report = await zero(rows)
    expect(report.performance.gross_expectancy_bps).to.be.closeTo((100 + (2 / 102) * 1e4) / 2, 1e-9)
  })

  it('are never money if they hold percentages', async () => {
    for (const name of ['Profit %', '% Profit', 'Profit', 'Profit_pct']) {
      const rows = [
        `${ROUND_TRIPS},${name},Net Profit`,
        `${TRIP},1.00%,10`,
        `${TRIP.replace('02', '01')},1.00%,($12.00)`,
      ]
      const report = await zero(rows)
      expect(usesOf(report), name).to.include({ [name]: null, 'Net Profit': 'pnl' })
      expect(report.money.stated_profit, name).to.equal(-2)
    }
  })

  it('are named in the error if they may hold what is missing', async () => {
    const noTime = await refusal(['Symbol,Side,Qty,Price,When it was', 'X,buy,1,100,2024-01-02 10:00'])
    expect(noTime.detail[0]?.msg).to.contain('Missing: time').and.to.contain('When it was=time')
    const trips = ['Symbol,Side,Shares,Date,Price,Zeitpunkt,Erlös', 'X,Long,10,2024-01-02,100,2024-01-03,101']
    const open = await refusal(trips)
    expect(open.detail[0]?.msg).to.contain('still open').and.to.contain('"Zeitpunkt"').and.to.contain('exit_time')
    const stated = statedColumns({ Zeitpunkt: 'exit_time', Erlös: 'exit_price' })
    expect((await zero(trips, { stated })).performance.gross_expectancy_bps).to.be.closeTo(100, 1e-9)
    const noSide = await refusal(['Symbol,Date,Price,Qty', 'X,2024-01-02,100,1', 'X,2024-01-03,101,1'])
    expect(noSide.detail[0]?.msg).to.contain('No column says which fills are sales')
  })

  it('hold numbers in lakhs, apostrophes, brackets and decimal commas', async () => {
    const trip = (entry: string, exit: string, sign = ';'): string[] => [
      ROUND_TRIPS.replaceAll(',', sign),
      ['X', 'long', '10', '2024-01-02', entry, '2024-01-03', exit].join(sign),
    ]
    for (const rows of [
      trip('"1,21,650.50"', '"1,22,867.005"', ','),
      trip("121'650.50", "122'867.005"),
      trip('121.650,50', '122.867,005'),
      trip('₹1,21,650.50', '₹1,22,867.005'),
    ])
      expect((await zero(rows)).performance.gross_expectancy_bps, rows[1]).to.be.closeTo(100, 1e-6)
    const error = await refusal(trip('12x.5', '13'))
    expect(error.detail[0]?.msg).to.contain('unreadable_number').and.to.contain('"12x.5"').and.to.contain('entry_price')
  })

  it('are a day and a time of day in any form, or a time beside a day', async () => {
    const times = [
      ['Date,Time', '20240102,93000', '20240103,100500'],
      ['Date,Time', '2024-01-02,09:30', '2024-01-03,10:05'],
      ['Date,Time', '2024-01-02,2024-01-02 09:30:00', '2024-01-03,2024-01-03 10:05:00'],
      ['Trade Date,execTime', '2024-01-02,2024-01-02 09:30:00', '2024-01-03,2024-01-03 10:05:00'],
    ] as const
    for (const [names, first, last] of times) {
      const { ledger } = await zero([`${names},Symbol,Side,Qty,Price`, `${first},X,buy,1,100`, `${last},X,sell,1,101`])
      expect(ledger, first).to.include({ first: '2024-01-02T09:30:00.000Z', last: '2024-01-03T10:05:00.000Z' })
    }
  })

  it('say the zone of the times in their names', async () => {
    const fills = (name: string): string[] => [
      `${name},Symbol,Side,Qty,Price`,
      '2024-01-02 10:00:00,X,buy,1,100',
      '2024-01-03 10:00:00,X,sell,1,101',
    ]
    expect((await zero(fills('Date(UTC)'))).ledger).to.include({ first: '2024-01-02T10:00:00.000Z', zoned: true })
    expect((await zero(fills('Time (UTC+8)'))).ledger.first).to.equal('2024-01-02T02:00:00.000Z')
    const unknown = await zero(fills('Time'))
    expect(assumed(unknown)).to.deep.equal(['time_zone'])
    expect(unknown.warnings).to.include('times_without_zone_read_as_utc')
  })
})

describe('a report on a ledger', () => {
  const TRIPS = [
    ['symbol', 'side', 'qty', 'entry_time', 'entry_price', 'exit_time', 'exit_price', 'fees', 'pnl', 'comment'],
    ['AAA', 'long', '10', '2024-01-02 10:00', '100', '2024-01-03 10:00', '101', '1', '9', 'first'],
    ['BBB', 'short', '5', '2024-01-04 10:00', '200', '2024-01-05 10:00', '198', '2', '8', ''],
    ['AAA', 'short', '7', '2024-01-06 10:00', '102', '2024-01-07 10:00', '103', '1', '-8', 'x'],
    ['BBB', 'long', '4', '2024-01-08 10:00', '199', '2024-01-09 10:00', '205', '2', '22', ''],
  ]
  const FILLS = [
    ['Date(UTC)', 'Pair', 'Side', 'Price', 'Executed', 'Fee', 'Order ID'],
    ['2024-01-02 10:00:00', 'AAAUSDT', 'BUY', '100', '10', '1', '71'],
    ['2024-01-03 10:00:00', 'BBBUSDT', 'BUY', '7', '10', '1', '72'],
    ['2024-01-04 10:00:00', 'BBBUSDT', 'SELL', '8', '10', '1', '73'],
    ['2024-01-05 10:00:00', 'AAAUSDT', 'SELL', '101', '10', '1', '74'],
    ['2024-01-06 10:00:00', 'AAAUSDT', 'SELL', '101', '10', '1', '75'],
    ['2024-01-07 10:00:00', 'AAAUSDT', 'BUY', '99', '10', '1', '76'],
  ]
  const IBKR = [
    ['Symbol', 'DateTime', 'Buy/Sell', 'Quantity', 'TradePrice', 'IBCommission', 'CurrencyPrimary', 'ISIN'],
    ['AAA', '20240102;100000', 'BUY', '100', '50', '-1', 'USD', 'US0000000018'],
    ['AAA', '20240103;100000', 'SELL', '-100', '51', '-1', 'USD', 'US0000000018'],
    ['BBB', '20240104;100000', 'SELL', '-10', '500', '-1', 'USD', 'CH0000000026'],
    ['BBB', '20240105;100000', 'BUY', '10', '490', '0.2', 'USD', 'CH0000000026'],
  ]
  const text = (table: readonly (readonly string[])[]): string[] => table.map((cells) => cells.join(','))
  const figures = ({ performance, ledger }: Audit) => ({
    ...performance,
    trades: ledger.trades,
    symbols: ledger.symbols,
    open: ledger.open,
  })

  /** What the reading says besides the columns that are not used. */
  const said = ({ reading }: Audit): string =>
    JSON.stringify([
      reading.assumptions,
      reading.columns.filter(({ used_as: use }) => use !== null).map(({ used_as: use }) => use),
    ])

  it('names every column, and says what changed if a column is added, renamed or removed', async () => {
    const names = fc.oneof(
      fc.constantFrom(
        'Memo',
        'Leverage',
        'Konto',
        'Zz',
        'Profit %',
        'Stop',
        'Exit reason',
        'Fee rate',
        'P',
        'Ref',
        '%',
        'Wert',
      ),
      fc.string({ minLength: 1, maxLength: 8 }).filter((name) => !/[",;\t\r\n=+@-]/.test(name) && name.trim() === name),
    )
    const cells = fc.constantFrom(
      '7',
      'long',
      'short',
      'abc',
      'US0000000018',
      '2024-01-02',
      '1.5%',
      'USD',
      '',
      '-3.5',
      'true',
    )
    const change = fc.record({
      kind: fc.constantFrom('add', 'rename', 'remove' as const),
      at: fc.nat(9),
      name: names,
      fill: fc.array(cells, { minLength: 6, maxLength: 6 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(TRIPS, FILLS, IBKR), change, async (table, { kind, at, name, fill }) => {
        const column = at % table[0]!.length
        if (kind !== 'remove' && table[0]!.some((one) => one.toLowerCase() === name.toLowerCase())) return
        const changed = table.map((row, i) => {
          const cell = i === 0 ? name : fill[i - 1]!
          if (kind === 'add') return row.toSpliced(column, 0, cell)
          return kind === 'remove' ? row.toSpliced(column, 1) : i === 0 ? row.with(column, name) : row
        })
        const before = await zero(text(table))
        const after: unknown = await zero(text(changed)).catch((error: unknown) => error)
        if (after instanceof Error) {
          expect(after).to.be.instanceOf(InvalidInput)
          expect((after as InvalidInput).detail[0]?.msg.length).to.be.above(20)
          return
        }
        const report = after as Audit
        expect(report.reading.columns.map((one) => one.name)).to.deep.equal(changed[0])
        for (const { used_as: use, why } of report.reading.columns) expect(use ?? why).to.be.a('string')
        if (JSON.stringify(figures(report)) !== JSON.stringify(figures(before)))
          expect(said(report), `${kind} ${name}`).not.to.equal(said(before))
      }),
      { numRuns: 200 },
    )
  })
})
