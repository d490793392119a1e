import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import fc from 'fast-check'
import Papa from 'papaparse'
import { InvalidInput } from '../../../gateway/errors.ts'
import { createFindings } from '../../../plugins/audit/findings.ts'
import { readLedger } from '../../../plugins/audit/read/read-ledger.ts'
import { NOTHING_STATED } from '../../../plugins/audit/reading-options.ts'
import type { TradeLedger } from '../../../plugins/audit/trade-ledger.ts'
import { auditOf, findingsOf, NOW } from './audit-fixtures.ts'

const FOLDER = new URL('../../fixtures/ledgers/', import.meta.url)
const bytesOf = (name: string): Buffer => readFileSync(new URL(name, FOLDER))

/** The figures of a fixture, worked by hand. */
interface Truth {
  readonly how: string
  readonly trades: number
  readonly gross_bps: number
  readonly net_bps: number
  readonly money: number
  readonly symbols: number
  readonly skipped: Readonly<Record<string, number>>
  readonly open?: number
  readonly trials?: number
  /** Trades of all trials. */
  readonly all_trades?: number
  /** The line of the header of a table, and names that only a later header has. */
  readonly header_line?: number
  readonly more_columns?: readonly string[]
  /** The columns of a JSON file. */
  readonly columns?: readonly string[]
}

/** The names of the columns, as the file writes them. */
function namesOf(file: Buffer, { columns, header_line = 1, more_columns = [] }: Truth): readonly string[] {
  if (columns) return columns
  const [names = []] = Papa.parse<string[]>(file.toString().split('\n')[header_line - 1] ?? '').data
  return [...names, ...more_columns]
}

async function ledgerOf(file: string | Buffer | readonly string[]): Promise<TradeLedger> {
  const bytes = Buffer.isBuffer(file) ? file : Buffer.from(typeof file === 'string' ? file : `${file.join('\n')}\n`)
  const options = { symbol: undefined, stated: NOTHING_STATED, now: NOW.getTime(), findings: createFindings() }
  return readLedger(bytes, options)
}

async function refusal(file: string | Buffer): Promise<InvalidInput['detail'][number]> {
  try {
    await ledgerOf(file)
  } catch (error) {
    if (error instanceof InvalidInput && error.detail[0]) return error.detail[0]
    throw error
  }
  throw new Error('it was read')
}

const skippedIn = ({ reading }: TradeLedger): Record<string, number> =>
  Object.fromEntries(reading.skipped.map(({ kind, rows }) => [kind, rows]))

describe('the exports of brokers and platforms', () => {
  const files = readdirSync(FOLDER).filter((name) => !name.endsWith('.truth.json'))
  for (const name of files)
    it(`reads ${name}`, async () => {
      const file = bytesOf(name)
      const truth = JSON.parse(bytesOf(name.replace(/\.\w+$/, '.truth.json')).toString()) as Truth
      const [report, ledger] = [await auditOf(file, { preset: 'zero', trials: 1 }), await ledgerOf(file)]
      expect(findingsOf(report)).to.deep.equal([])
      expect(report.performance.trades).to.equal(truth.trades)
      expect(report.performance.gross_expectancy_bps).to.be.closeTo(truth.gross_bps, 1e-4)
      expect(report.performance.net_expectancy_bps).to.be.closeTo(truth.net_bps, 1e-4)
      // Amounts are in cents.
      expect(report.money.net).to.be.closeTo(truth.money, 0.0051)
      expect(ledger.trades.length).to.equal(truth.all_trades ?? truth.trades)
      expect(ledger).to.include({ open: truth.open ?? 0, excluded: 0 })
      expect(ledger.symbols.length).to.equal(truth.symbols)
      expect(ledger.trials.length).to.equal(truth.trials ?? 1)
      expect(skippedIn(ledger)).to.deep.equal(truth.skipped)
      expect(ledger.reading.columns.map((column) => column.name)).to.deep.equal(namesOf(file, truth))
      for (const { used_as, why } of ledger.reading.columns) expect(used_as ?? why).to.be.a('string')
    })
})

describe('the smallest inputs', () => {
  it('of an Activity Statement: the row of the sub-total is skipped and counted', async () => {
    const lines = [
      'Trades,Header,DataDiscriminator,Asset Category,Currency,Symbol,Date/Time,Quantity,T. Price,Comm/Fee,Code',
      'Trades,Data,Order,Stocks,USD,AAA,"2024-01-02, 10:30:00",100,50,-1,O',
      'Trades,Data,Order,Stocks,USD,AAA,"2024-01-05, 11:30:00",-100,51,-1,C',
      'Trades,SubTotal,,Stocks,USD,AAA,,0,,-2,',
    ]
    const { ledger, performance, reading } = await auditOf(lines, { preset: 'zero', trials: 1 })
    expect(ledger).to.include({ rows: 3, trades: 1, excluded: 0 })
    expect(performance.gross_expectancy_bps).to.be.closeTo(200, 1e-9)
    expect(performance.net_expectancy_bps).to.be.closeTo(196, 1e-9)
    expect(reading.skipped).to.deep.equal([{ kind: 'total', rows: 1, first: 2 }])
    expect(reading.columns.map((column) => column.name)).to.deep.equal(lines[0]?.split(','))
  })

  it('of deals in MetaTrader: the type is the side, in and out are none', async () => {
    const { performance, ledger } = await auditOf(
      [
        'Time,Deal,Symbol,Type,Direction,Volume,Price,Order,Commission,Fee,Swap,Profit,Balance,Comment',
        '2024.03.04 10:00:00,2,EURUSD,buy,in,0.10,1.08500,2,0,0,0,0,9999,',
        '2024.03.04 12:00:00,3,EURUSD,sell,out,0.10,1.08700,3,0,0,0,20,10019,',
      ],
      { preset: 'zero', trials: 1 },
    )
    expect(ledger).to.include({ trades: 1, open: 0, excluded: 0 })
    expect(performance.gross_expectancy_bps).to.be.closeTo(18.43318, 1e-5)
  })
})

const HEADER = 'Date,Action,Symbol,Description,Quantity,Price,Fees & Comm,Amount'
/** Pairs of a purchase and a sale, each pair on days of its own. */
const pairs = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => {
    const day = (k: number): string => new Date(Date.UTC(2023, 0, 2 + 2 * i + k)).toISOString().slice(0, 10)
    return [`${day(0)},Buy,AAA,A INC,10,100,1,-1001`, `${day(1)},Sell,AAA,A INC,10,10${i % 9},1,1000`]
  }).flat()

/** Rows that are no trades, each with its kind. */
const NO_TRADES: readonly (readonly [string, string])[] = [
  ['2023-01-05,Qualified Dividend,AAA,A INC,,,,12.40', 'dividend'],
  ['2023-01-05,Reinvest Shares,AAA,A INC,0.2,62,,-12.40', 'dividend'],
  ['2023-01-05,Reinvest Dividend,AAA,A INC,,,,12.40', 'dividend'],
  ['2023-01-05,Long Term Cap Gain Reinvest,AAA,A INC,,,,3', 'dividend'],
  ['2023-01-05,Bank Interest,,BANK INT,,,,0.11', 'cash'],
  ['2023-01-05,Margin Interest,,,,,,-0.11', 'cash'],
  ['2023-01-05,Deposit,,,,,,500', 'cash'],
  ['2023-01-05,Journal,AAA,JOURNALED SHARES,5,,,', 'cash'],
  ['2023-01-05,NRA Tax Adj,AAA,A INC,,,,-1', 'cash'],
  ['2023-01-05,Tax Withholding,AAA,A INC,,,,-1', 'cash'],
  ['2023-01-05,Balance,,,,,,10000', 'cash'],
  ['2023-01-05,Credit,,,,,,100', 'cash'],
  ['2023-01-05,Wire Funds Received,,,,,,100', 'cash'],
  ['2023-01-05,CDIV,AAA,A INC,,,,12.40', 'dividend'],
  ['2023-01-05,Dividend (Ordinary),AAA,A INC,10,1.2,,12', 'dividend'],
  ['2023-01-05,DIVIDEND RECEIVED A INC (AAA) (Cash),AAA,A INC,,,,12.40', 'dividend'],
  ['2023-01-05,FUNDING_FEE,AAA,,10,100,,0.1', 'cash'],
  ['2023-01-05,SETTLEMENT,AAA,,0,100,,0.1', 'cash'],
  ['2023-01-05,Transfer in,AAA,,1,100,,', 'cash'],
  ['2023-01-05,Expired,AAA 01/05/2023 90.00 P,PUT,1,,,', 'option_event'],
  ['2023-01-05,Assigned,AAA 01/05/2023 90.00 P,PUT,1,,,', 'option_event'],
  ['2023-01-05,Stock Split,AAA,A INC,10,,,', 'corporate_action'],
  ['Transactions Total,,,,,,,1234.56', 'total'],
  ['Total,,,,20,,2,7', 'total'],
  ['SubTotal,,AAA,,0,,2,7', 'total'],
  [',,,,,,,', 'empty'],
  [',,,,,,2,7', 'summary'],
  ['Closing balance:,,,,,,,1000', 'summary'],
  [HEADER, 'repeated_header'],
]

describe('rows that are no trades', () => {
  it('are left out and counted wherever they stand', async () => {
    const plain = await ledgerOf([HEADER, ...pairs(8)])
    const row = fc.record({ at: fc.nat(16), what: fc.constantFrom(...NO_TRADES) })
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 12 }), async (extra) => {
        const lines: (readonly [string, string | null])[] = pairs(8).map((line) => [line, null])
        for (const { at, what } of extra) lines.splice(Math.min(at, lines.length), 0, what)
        const ledger = await ledgerOf([HEADER, ...lines.map(([line]) => line)])
        expect(ledger.trades.map(({ entryTime, exitPrice }) => [entryTime, exitPrice])).to.deep.equal(
          plain.trades.map(({ entryTime, exitPrice }) => [entryTime, exitPrice]),
        )
        expect(ledger).to.include({ rows: lines.length, excluded: 0, open: 0 })
        for (const { row: index, exitRow } of ledger.trades) {
          expect(lines[index]?.[0]).to.contain(',Buy,')
          expect(lines[exitRow]?.[0]).to.contain(',Sell,')
        }
        const kinds = new Set(lines.flatMap(([, kind]) => kind ?? []))
        expect(Object.keys(skippedIn(ledger))).to.have.members([...kinds])
        for (const { kind, rows, first } of ledger.reading.skipped) {
          expect(rows).to.equal(lines.filter((line) => line[1] === kind).length)
          expect(first).to.equal(lines.findIndex((line) => line[1] === kind))
        }
      }),
      { numRuns: 200 },
    )
  })

  it('are never trades, whatever the other columns of a trade say', async () => {
    const word = fc.constantFrom(
      'Total',
      'Dividend',
      'Balance',
      'Deposit',
      'Credit',
      'Interest',
      'Expired',
      'Fees',
      'Summary:',
      'Trades',
    )
    await fc.assert(
      fc.asyncProperty(word, word, word, async (symbol, strategy, comment) => {
        const lines = [0, 1, 2, 3].map(
          (i) => `2024-01-0${i + 1},${i % 2 ? 'sell' : 'buy'},${symbol},10,10${i},${strategy},${comment}`,
        )
        const fills = await ledgerOf(['time,side,symbol,qty,price,strategy,comment', ...lines])
        expect(fills.trades.length).to.equal(2)
        const trips = await ledgerOf([
          'strategy,comment,type,symbol,side,qty,entry_time,entry_price,exit_time,exit_price',
          `${strategy},${comment},${comment},${symbol},long,1,2024-01-02,100,2024-01-03,101`,
          `${strategy},${comment},${comment},${symbol},short,1,2024-01-04,100,2024-01-05,99`,
        ])
        expect(trips.trades.length).to.equal(2)
        expect([...fills.reading.skipped, ...trips.reading.skipped]).to.deep.equal([])
      }),
      { numRuns: 60 },
    )
  })

  it('are counted by their kind in JSON too', async () => {
    const row = (action: string, price: number | null) => ({ date: '2024-01-02', action, symbol: 'X', qty: 1, price })
    const ledger = await ledgerOf(
      JSON.stringify([row('buy', 10), row('dividend', null), row('sell', 11), row('funding', 10)]),
    )
    expect(ledger.trades.length).to.equal(1)
    expect(ledger.reading.skipped).to.deep.equal([
      { kind: 'dividend', rows: 1, first: 1 },
      { kind: 'cash', rows: 1, first: 3 },
    ])
  })

  it('include a trade without a price only if it is called a total', async () => {
    const lines = [...pairs(2), '2023-03-01,Buy,AAA,A INC,10,,1,-1001', '2023-03-02,Sell,AAA,A INC,10,n/a,1,1001']
    const report = await auditOf([HEADER, ...lines], { preset: 'zero' })
    expect(findingsOf(report)).to.deep.equal(['4 missing_value', '5 missing_value'])
  })
})

describe('a statement', () => {
  const preamble = ['Some Broker AG', 'Account: 12345', '"Report of 01/31/2024, all accounts"', 'Name:,,,Some One', '']
  const plain = [
    'Symbol,Side,Qty,Entry Time,Entry Price,Exit Time,Exit Price',
    'X,long,1,2024-01-02,100,2024-01-03,101',
    'Total,,2,,,,0',
  ]

  it('may have any lines above the header, in any delimiter and encoding', async () => {
    const variant = fc.record({
      lines: fc.array(fc.constantFrom(...preamble), { maxLength: 60 }),
      delimiter: fc.constantFrom(',', ';', '\t'),
      encoding: fc.constantFrom('utf8', 'utf8 with mark', 'utf16le'),
      newline: fc.constantFrom('\n', '\r\n'),
      other: fc.constantFrom('Note', 'col_17', 'SMA 200', '52 week high', 'EMA(20)'),
    })
    await fc.assert(
      fc.asyncProperty(variant, async ({ lines, delimiter, encoding, newline, other }) => {
        const [names, ...rows] = plain
        const table = [`${names},${other}`, ...rows].map((line) => line.replaceAll(',', delimiter))
        const above = lines.map((line) => (line.startsWith('"') ? line : line.replaceAll(',', delimiter)))
        const text = `${encoding === 'utf8' ? '' : '\uFEFF'}${[...above, ...table].join(newline)}`
        const ledger = await ledgerOf(Buffer.from(text, encoding === 'utf16le' ? 'utf16le' : 'utf8'))
        expect(ledger.trades[0]).to.include({ row: 0, entryPrice: 100, exitPrice: 101 })
        const above0 = lines.filter((line) => line !== '').length
        expect(ledger.reading.skipped).to.deep.equal([
          ...(above0 === 0 ? [] : [{ kind: 'preamble', rows: above0, first: 0 }]),
          { kind: 'total', rows: 1, first: 1 },
        ])
      }),
      { numRuns: 100 },
    )
  })

  it('may have its trades far below other tables', async () => {
    const cash = Array.from({ length: 3000 }, (_, i) => `Cash,Data,USD,2024-01-${10 + (i % 20)},Fee ${i},-1`)
    const ledger = await ledgerOf([
      'Cash,Header,Currency,Date,Description,Amount',
      ...cash,
      'Trades,Header,DataDiscriminator,Asset Category,Currency,Symbol,Date/Time,Quantity,T. Price,Comm/Fee,Code',
      'Trades,Data,Order,Stocks,USD,AAA,"2024-01-02, 10:30:00",100,50,-1,O',
      'Trades,Header,DataDiscriminator,Currency,Asset Category,Symbol,Date/Time,T. Price,Quantity,Comm in USD',
      'Trades,Data,Order,USD,Stocks,AAA,"2024-01-05, 11:30:00",51,-100,-1',
      ...cash.slice(0, 7),
    ])
    expect(ledger.trades.length).to.equal(1)
    expect(ledger.trades[0]).to.include({ row: 0, exitRow: 2, entryPrice: 50, exitPrice: 51, qty: 100 })
    expect(skippedIn(ledger)).to.deep.equal({ other_section: 3001 + 7, repeated_header: 1 })
  })

  it('counts each trade once, whatever levels of detail it lists', async () => {
    const level = (word: string, qty: number, time: string): string =>
      `Trades,Data,${word},Stocks,USD,AAA,"2024-01-0${time}",${qty},5${time[0]},-1,`
    const header =
      'Trades,Header,DataDiscriminator,Asset Category,Currency,Symbol,Date/Time,Quantity,T. Price,Comm/Fee,Code'
    const executions = await ledgerOf([
      header,
      level('Trade', 60, '2, 10:30:00'),
      level('Trade', 40, '2, 10:31:00'),
      level('Trade', -100, '4, 10:30:00'),
    ])
    expect(executions.trades.reduce((sum, { qty }) => sum + qty, 0)).to.equal(100)
    expect(executions.reading.skipped).to.deep.equal([])
  })

  it('in HEADER and DATA rows is read like one in sections', async () => {
    const ledger = await ledgerOf([
      '"BOF","U1","trades","1","20240101"',
      '"BOS","CTRN","Cash Transactions"',
      '"HEADER","CTRN","ClientAccountID","Amount","Type"',
      '"DATA","CTRN","U1","24","Dividends"',
      '"EOS","CTRN","1","24"',
      '"BOS","TRNT","Trades; trade date basis"',
      '"HEADER","TRNT","ClientAccountID","Symbol","DateTime","Buy/Sell","Quantity","TradePrice","IBCommission"',
      '"DATA","TRNT","U1","AAA","2024-01-02;103000","BUY","100","50","-1"',
      '"DATA","TRNT","U1","AAA","2024-01-05;113000","SELL","-100","51","-1"',
      '"EOS","TRNT","2","0"',
      '"EOF","U1"',
    ])
    expect(ledger.trades.length).to.equal(1)
    expect(skippedIn(ledger)).to.deep.equal({ preamble: 4, other_section: 4 })
  })
})

describe('the statements of other brokers', () => {
  const statements: Readonly<
    Record<string, readonly [lines: readonly string[], trades: number, skipped: Readonly<Record<string, number>>]>
  > = {
    'thinkorswim: several tables, one of them of trades': [
      [
        'Account Statement for 123456 (ira) since 1/1/24 through 1/31/24',
        '',
        'Cash Balance',
        'DATE,TIME,TYPE,REF #,DESCRIPTION,Misc Fees,Commissions & Fees,AMOUNT,BALANCE',
        '1/3/24,09:35:00,TRD,="123",BOT +10 AAA @10.05,,,-100.50,"9,899.50"',
        'Account Order History',
        'Notes,,Time Placed,Spread,Side,Qty,Pos Effect,Symbol,Exp,Strike,Type,PRICE,,TIF,Status',
        ',,1/4/24 09:34:00,STOCK,SELL,-10,TO CLOSE,AAA,,,STOCK,11.05,LMT,DAY,CANCELED',
        'Account Trade History',
        ',Exec Time,Spread,Side,Qty,Pos Effect,Symbol,Exp,Strike,Type,Price,Net Price,Order Type',
        ',1/5/24 15:35:00,STOCK,SELL,-10,TO CLOSE,AAA,,,STOCK,10.25,10.25,LMT',
        ',1/3/24 09:35:00,STOCK,BUY,+10,TO OPEN,AAA,,,STOCK,10.05,10.05,LMT',
        'Profits and Losses',
        'Symbol,Description,P/L Open,P/L %,P/L Day,P/L YTD,P/L Diff,Margin Req,Mark Value',
        'AAA,A INC,$0.00,0.00%,$0.00,$2.00,$0.00,$0.00,$0.00',
        ',OVERALL TOTALS,$0.00,0.00%,$0.00,$2.00,$0.00,$0.00,$0.00',
      ],
      1,
      { preamble: 8, other_section: 4 },
    ],
    'Robinhood: codes, lines in a cell and a text below': [
      [
        '"Activity Date","Process Date","Settle Date","Instrument","Description","Trans Code","Quantity","Price","Amount"',
        '"3/2/2025","3/2/2025","3/4/2025","AAA","A Inc',
        'CUSIP: 000000001","Sell","100","$189.10","$18,910.00"',
        '"2/26/2025","2/26/2025","2/27/2025","AAA","A Inc',
        'CUSIP: 000000001","Buy","100","$187.40","($18,740.00)"',
        '"2/25/2025","2/25/2025","2/25/2025","BBB","Cash Div: R/D 2025-02-15","CDIV","","","$7.50"',
        '"2/24/2025","2/24/2025","2/24/2025","","ACH Deposit","ACH","","","$5,000.00"',
        '"2/15/2025","2/15/2025","2/16/2025","CCC","Forward Split","SPL","18S","",""',
        '"","","","","","","","",""',
        '"","","","","","","","","","The data provided is for informational purposes only."',
      ],
      1,
      { dividend: 1, cash: 1, corporate_action: 1, empty: 1, other_section: 1 },
    ],
    'Fidelity: a line above, sentences as types, texts below': [
      [
        'Brokerage',
        '',
        'Run Date,Action,Symbol,Description,Type,Quantity,Price ($),Commission ($),Fees ($),Accrued Interest ($),Amount ($),Settlement Date',
        '06/10/2025, YOU SOLD A INC (AAA) (Cash), AAA, A INC, Cash, -10, 152.25, 4.95, 0.05, , 1517.50, 06/12/2025',
        '06/09/2025, DIVIDEND RECEIVED (BBB) (Cash), BBB, B FUND, Cash, , , , , , 25.50, ',
        '06/08/2025, Electronic Funds Transfer Received (Cash), , , Cash, , , , , , 5000.00, ',
        '06/07/2025, INTEREST EARNED (Cash), , , Cash, , , , , , 0.42, ',
        '06/06/2025, REINVESTMENT (BBB) (Cash), BBB, B FUND, Cash, 1, 25.50, , , , -25.50, ',
        '06/05/2025, YOU BOUGHT A INC (AAA) (Cash), AAA, A INC, Cash, 10, 150.25, 4.95, , , -1507.45, 06/12/2025',
        '"The data and information in this spreadsheet is provided to you solely for your use."',
        'Date downloaded 06/11/2025 5:00 pm',
      ],
      1,
      { preamble: 1, dividend: 2, cash: 2, other_section: 2 },
    ],
    'Vanguard: holdings above the transactions': [
      [
        'Account Number,Investment Name,Symbol,Shares,Share Price,Total Value,',
        '12345678,A FUND,AAA,10,400,4000,',
        'Account Number,Trade Date,Settlement Date,Transaction Type,Transaction Description,Investment Name,Symbol,Shares,Share Price,Principal Amount,Commission Fees,Net Amount,Accrued Interest,Account Type,',
        '12345678,2024-01-05,2024-01-09,Sell,Sell,A FUND,AAA,-5,410,2050,0,2050,0,CASH,',
        '12345678,2024-01-04,2024-01-04,Dividend,Dividend Received,A FUND,AAA,0,0,12,0,12,0,CASH,',
        '12345678,2024-01-04,2024-01-04,Reinvestment,Dividend Reinvestment,A FUND,AAA,0.03,400,-12,0,-12,0,CASH,',
        '12345678,2024-01-03,2024-01-05,Buy,Buy,A FUND,AAA,5,400,-2000,0,-2000,0,CASH,',
        '12345678,2024-01-02,2024-01-02,Sweep in,Sweep Into Settlement Fund,MONEY FUND,MMMXX,0,1,-100,0,-100,0,CASH,',
      ],
      1,
      { preamble: 2, dividend: 2, cash: 1 },
    ],
    'Coinbase: lines above, income between purchases and sales': [
      [
        'Transactions',
        'User,Some One,1234-abcd',
        'ID,Timestamp,Transaction Type,Asset,Quantity Transacted,Price Currency,Price at Transaction,Subtotal,Total (inclusive of fees and/or spread),Fees and/or Spread,Notes',
        '1,2024-01-09 10:00:00 UTC,Sell,BTC,0.1,USD,$44000,$4400,$4380,$20,Sold 0.1 BTC',
        '2,2024-01-05 10:00:00 UTC,Rewards Income,USDC,1.2,USD,$1,$1.2,$1.2,$0,Reward',
        '3,2024-01-02 10:00:00 UTC,Buy,BTC,0.1,USD,$42000,$4200,$4220,$20,Bought 0.1 BTC',
        '4,2024-01-01 10:00:00 UTC,Deposit,USD,5000,USD,$1,$5000,$5000,$0,Deposit',
      ],
      1,
      { preamble: 2, cash: 2 },
    ],
  }
  for (const [name, [lines, trades, skipped]] of Object.entries(statements))
    it(`are read: ${name}`, async () => {
      const ledger = await ledgerOf(lines)
      expect(ledger.trades.length).to.equal(trades)
      expect(ledger).to.include({ excluded: 0, open: 0 })
      expect(skippedIn(ledger)).to.deep.equal(skipped)
    })
})

describe('the strategies of a JSON file', () => {
  const trades = (count: number, price = 100): Record<string, unknown>[] =>
    Array.from({ length: count }, (_, i) => ({
      pair: 'X/USDT',
      amount: 1,
      open_date: new Date(Date.UTC(2023, 0, 2 + i)).toISOString(),
      close_date: new Date(Date.UTC(2023, 0, 2 + i, 12)).toISOString(),
      open_rate: price,
      close_rate: price + (i % 3) - 0.5,
      is_short: false,
    }))

  it('are trials, in whatever shape they come', async () => {
    const parts = { A: { trades: trades(60) }, B: { trades: trades(61) }, C: { trades: trades(40), locks: [] } }
    const list = Object.entries(parts).map(([strategy_name, part]) => ({ strategy_name, ...part }))
    for (const file of [{ strategy: parts }, parts, list, { results: list }]) {
      const ledger = await ledgerOf(JSON.stringify(file))
      expect(ledger.trials).to.deep.equal(['A', 'B', 'C'])
      expect(ledger.trades.length).to.equal(161)
      expect(ledger.trades.filter(({ trial }) => trial === 1).length).to.equal(61)
      expect(ledger.reading.columns[0]).to.include({ name: 'trial', used_as: 'trial' })
      expect(ledger.reading.assumptions.filter(({ code }) => code === 'strategy')).to.deep.equal([])
    }
  })

  it('name in an assumption what is left out', async () => {
    const file = { strategy: { A: { trades: trades(60), open_trades: trades(3) } }, backup: { trades: trades(5) } }
    const ledger = await ledgerOf(JSON.stringify(file))
    expect(ledger.trades.length).to.equal(60)
    const [assumption] = ledger.reading.assumptions.filter(({ code }) => code === 'strategy')
    expect(assumption?.text).to.contain('strategy.A.open_trades').and.contain('backup.trades')
  })

  it('may be the orders of LEAN, listed by number', async () => {
    const order = (id: number, quantity: number, price: number, status = 3) => ({
      id,
      symbol: { value: 'SPY', id: 'SPY R735QTJ8XC9X' },
      price,
      time: `2024-01-0${id}T14:31:00Z`,
      quantity,
      status,
      direction: quantity > 0 ? 0 : 1,
      type: 0,
    })
    const orders = { 1: order(1, -10, 100), 2: order(2, -10, 90, 5), 3: order(3, 10, 98) }
    const ledger = await ledgerOf(JSON.stringify({ charts: { Equity: [{ x: 1, y: 2 }] }, orders, statistics: {} }))
    expect(ledger.trades.length).to.equal(1)
    expect(ledger.trades[0]).to.include({ sign: -1, entryPrice: 100, exitPrice: 98 })
    expect(ledger.unfilled).to.equal(1)
  })

  it('stay one list if trades have lists of their own parts', async () => {
    const parts = trades(5).map((trade) => ({ ...trade, sub_trades: [{ price: 1, qty: 2 }] }))
    const ledger = await ledgerOf(JSON.stringify({ trades: parts }))
    expect(ledger.trades.length).to.equal(5)
  })
})

describe('a file that is no ledger', () => {
  const files: Readonly<Record<string, readonly [file: string | Buffer, help: RegExp]>> = {
    'a workbook': [Buffer.from('504b0304140006000800', 'hex'), /save the table as CSV/i],
    'a PDF': ['%PDF-1.7\n%...', /save the table as CSV/i],
    'a web page': ['<html><body><table><tr><td>Closed Transactions:</td></tr></table></body></html>', /save it as CSV/],
    'a Flex Query in XML': ['<FlexQueryResponse queryName="x" type="AF">\n</FlexQueryResponse>', /CSV/],
    'a bank statement': [
      'Date,Description,Amount,Balance\n2024-01-02,Rent,-900,100\n2024-01-03,Salary,2000,2100\n',
      /Missing: .*(price|quantity)/,
    ],
    'closed profits without a time of entry (Bybit)': [
      'Contracts,Closing Direction,Qty,Entry Price,Exit Price,Closed P&L,Exit Type,Trade Time(UTC+0)\nBTCUSDT,Sell,0.02,66000,66800,16,Trade,2024-03-15 14:22:10\n',
      /Missing: entry_time/,
    ],
    bars: ['date,open,high,low,close,volume\n2024-01-02,1,2,0.5,1.5,100\n', /Missing: /],
    prose: ['It was the best of times, it was the worst of times, it was the age of wisdom.\n'.repeat(60_000), /./],
  }
  for (const [name, [file, help]] of Object.entries(files))
    it(`is refused at once with what would help: ${name}`, async () => {
      const before = process.cpuUsage()
      const { msg } = await refusal(file)
      expect(msg).to.match(help)
      // CPU time: the machine may be busy with other tests.
      expect(process.cpuUsage(before).user / 1000).to.be.below(500)
    })
})
