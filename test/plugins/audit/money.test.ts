import { expect } from 'chai'
import { NOTHING_STATED } from '../../../plugins/audit/reading-options.ts'
import { auditOf, findingsOf, ROUND_TRIPS, seededUniform } from './audit-fixtures.ts'

const zero = { preset: 'zero' } as const

describe('the money of an audit', () => {
  it('takes fees in the traded coin from the position, without making trades of what is left', async () => {
    const rows = [
      'Date(UTC),Pair,Side,Price,Executed,Amount,Fee',
      '2024-01-02 10:00:00,ABCUSDT,BUY,100,10ABC,1000USDT,0.01ABC',
      '2024-01-03 10:00:00,ABCUSDT,SELL,101,9.99ABC,1008.99USDT,1.00899USDT',
      '2024-01-04 10:00:00,ABCUSDT,BUY,200,10ABC,2000USDT,0.01ABC',
      '2024-01-05 10:00:00,ABCUSDT,SELL,198,9.99ABC,1978.02USDT,1.97802USDT',
      '2024-01-06 10:00:00,ABCUSDT,BUY,400,10ABC,4000USDT,0.01ABC',
      '2024-01-07 10:00:00,ABCUSDT,SELL,396,9.99ABC,3956.04USDT,3.95604USDT',
    ]
    const { ledger, performance, money } = await auditOf(rows, zero)
    expect(ledger).to.include({ trades: 3, open: 0, excluded: 0 })
    expect(performance.gross_expectancy_bps).to.be.closeTo(-100 / 3, 1e-9)
    expect(performance.net_expectancy_bps).to.be.closeTo(-53.2567, 1e-3)
    expect(money).to.include({ net: -63.89305, currency: 'USDT', gross: -50, remainders_value: 0 })
  })

  it('reads the currency of a fee from its column', async () => {
    const rows = [
      'Date(UTC),Market,Type,Price,Amount,Total,Fee,Fee Coin',
      '2024-01-02 10:00:00,PEPEUSDT,BUY,0.00001,100000000,1000,100000,PEPE',
      '2024-01-03 10:00:00,PEPEUSDT,SELL,0.000011,99900000,1098.9,1.0989,USDT',
    ]
    const { ledger, performance, money } = await auditOf(rows, zero)
    expect(ledger.trades).to.equal(1)
    expect(performance.net_expectancy_bps).to.be.closeTo(978.011, 1e-3)
    expect(money.net).to.equal(97.8011)
    for (const coin of ['1INCH', '1000SHIB']) {
      const renamed = await auditOf(
        rows.map((row) => row.replace('PEPE', coin).replace(/PEPE$/, coin)),
        zero,
      )
      expect(renamed.money.net, coin).to.equal(97.8011)
    }
  })

  it('counts fees against the value of the contracts that stated profits show', async () => {
    const rows = [
      'symbol,side,volume,entry_time,entry_price,exit_time,exit_price,commission,profit',
      'EURUSD,buy,0.1,2024-03-04 10:00,1.0800,2024-03-04 12:00,1.0810,-0.70,10',
      'EURUSD,sell,0.1,2024-03-05 10:00,1.0800,2024-03-05 12:00,1.0806,-0.70,-6',
      'EURUSD,buy,0.1,2024-03-06 10:00,1.0800,2024-03-06 12:00,1.0812,-0.70,12',
      'EURUSD,buy,0.1,2024-03-07 10:00,1.0800,2024-03-07 12:00,1.0794,-0.70,-6',
      'EURUSD,sell,0.1,2024-03-08 10:00,1.0800,2024-03-08 12:00,1.0790,-0.70,10',
      'EURUSD,buy,0.1,2024-03-11 10:00,1.0800,2024-03-11 12:00,1.0808,-0.70,8',
    ]
    const report = await auditOf(rows, zero)
    expect(report.performance.net_expectancy_bps).to.be.closeTo(3.673, 5e-4)
    expect(report.reading.instruments[0]).to.include({ contract_size: 100_000, contract_size_source: 'inferred' })
    expect(report.money).to.include({ gross: 28, fees: 4.2, net: 23.8, stated_basis: 'gross', stated_difference: 0 })
    expect(findingsOf(report)).to.deep.equal([])
  })

  it('infers a contract size and a fixed commission together', async () => {
    const rows = Array.from({ length: 10 }, (_, i) => {
      const [day, move] = [String(i + 2).padStart(2, '0'), i % 2 === 0 ? -5 : 10]
      return `MNQ,long,1,2024-01-${day} 10:00,18000,2024-01-${day} 11:00,${18_000 + move},${2 * move - 1.5}`
    })
    const report = await auditOf([`${ROUND_TRIPS},pnl`, ...rows], zero)
    expect(findingsOf(report)).to.deep.equal([])
    expect(report.performance.net_expectancy_bps).to.be.closeTo(0.972, 5e-4)
    expect(report.reading.instruments[0]).to.include({ contract_size: 2, contract_size_source: 'inferred' })
    expect(report.warnings).to.include.members(['unreported_commission_1.5_a_trade_inferred_for_MNQ'])
    const check = report.fills.checks.find(({ check: name }) => name === 'pnl')
    expect(check).to.include({ status: 'not_checked', not_checked: 10 })
    expect(report.money).to.include({ gross: 50, fees: 15, net: 35, stated_basis: 'net' })
  })

  it('leaves less than a lot as a remainder, whatever the coin, and sells it later', async () => {
    const rows = ['time;market;side;price;size;fee', '2024-03-01 08:00;QRS/EUR;buy;20;0.51;0.0005 QRS']
    rows.push('2024-03-02 08:00;QRS/EUR;sell;21;0.5;0 EUR', '2024-03-03 08:00;QRS/EUR;buy;30;0.4;0 EUR')
    rows.push('2024-03-04 08:00;QRS/EUR;sell;33;0.1;0 EUR', '2024-03-05 08:00;QRS/EUR;sell;33;0.3;0 EUR')
    const { ledger, money, performance, warnings } = await auditOf(rows, zero)
    expect(ledger).to.include({ trades: 2, open: 0 })
    expect(performance.gross_expectancy_bps).to.be.closeTo((500 + 1000) / 2, 1e-9)
    expect(money.remainders).to.have.length(1)
    expect(money.remainders[0]).to.include({ symbol: 'QRS/EUR', side: 'long', value: 0.1995 })
    expect(warnings).to.include('remainders_of_1_positions_not_counted_as_trades')
    // What is left counts at the price of the last exit; the rest is cash.
    const cash = -0.51 * 20 + 0.5 * 21 - 0.4 * 30 + 0.4 * 33
    expect(money.net! - money.remainders_value!).to.be.closeTo(cash, 1e-6)
    const less = [
      ...rows.with(2, '2024-03-02 08:00;QRS/EUR;sell;21;0.5055;0 EUR'),
      '2024-03-06 08:00;QRS/EUR;sell;10;0.004;0 EUR',
    ]
    const sold = await auditOf(less, zero)
    expect(sold.ledger).to.include({ trades: 2, open: 0 })
    expect(sold.money).to.include({ remainders_value: 0 })
    expect(sold.money.net).to.be.closeTo(cash + 0.0055 * 21 + 0.04, 1e-6)
  })

  it('converts fees in a third coin at a price of the file, or says that they are unknown', async () => {
    const trade = [
      '2024-01-02 10:00,BTCUSDT,BUY,40000,0.1,0.01,BNB',
      '2024-01-03 10:00,BTCUSDT,SELL,41000,0.1,0.0102,BNB',
    ]
    const header = 'time,symbol,side,price,qty,commission,commissionAsset'
    const without = await auditOf([header, ...trade], zero)
    expect(without.money).to.deep.include({ net: 100, unknown_fees: [{ currency: 'BNB', amount: 0.0202 }] })
    expect(without.warnings).to.include('fees_in_BNB_not_counted_without_a_price')
    const coin = ['2024-01-01 10:00,BNBUSDT,BUY,300,5,0,USDT', '2024-01-03 11:00,BNBUSDT,SELL,310,5,0,USDT']
    const { money } = await auditOf([header, coin[0]!, ...trade, coin[1]!], zero)
    expect(money).to.deep.include({ net: 50 + 100 - 3 - 3.162, unknown_fees: [] })
  })

  it('takes a fee currency that the request states', async () => {
    const rows = [
      'time,symbol,side,price,qty,fee',
      '2024-01-02,XYZ-USDC,buy,0.5,1000,1',
      '2024-01-03,XYZ-USDC,sell,0.55,999,0',
    ]
    const unnamed = await auditOf(rows, zero)
    expect(unnamed.reading.assumptions.map(({ parameter }) => parameter)).to.include('fee_currency')
    const doubtful = await auditOf(
      [rows[0]!, '2024-01-02,XYZ-USDC,buy,0.0005,1000000,1000', '2024-01-03,XYZ-USDC,sell,0.00055,999000,0'],
      zero,
    )
    expect(doubtful.warnings).to.include('fees_without_currency_above_5_percent_of_the_value')
    const stated = { ...NOTHING_STATED, feeCurrency: 'XYZ' }
    expect((await auditOf(rows, { ...zero, stated })).money).to.include({ net: 49.45, currency: 'USDC' })
  })

  it('says what it assumes of futures, options and lots without profits, and takes what is stated', async () => {
    const header = 'time,symbol,side,qty,price,commission'
    const fills = (symbol: string): string[] => [
      header,
      `2024-01-02 10:00,${symbol},buy,2,50,4.5`,
      `2024-01-02 11:00,${symbol},sell,2,50.5,4.5`,
    ]
    for (const [symbol, size] of [
      ['ESZ4', 50],
      ['NQ 03-25', 20],
      ['/MCL', 100],
      ['AAPL  240119C00190000', 100],
      ['GBPUSD', 100_000],
    ] as const) {
      const { reading, performance } = await auditOf(fills(symbol), zero)
      expect(reading.instruments[0], symbol).to.include({ contract_size: size, contract_size_source: 'assumed' })
      expect(reading.assumptions.map(({ parameter }) => parameter)).to.include('contract_size')
      expect(performance.net_expectancy_bps).to.be.closeTo(100 - 1e4 * (9 / (100 * size)), 1e-9)
    }
    const stated = { ...NOTHING_STATED, contractSize: new Map([['ESZ4', 10]]) }
    const told = await auditOf(fills('ESZ4'), { ...zero, stated })
    expect(told.reading.instruments[0]).to.include({ contract_size: 10, contract_size_source: 'stated' })
    expect(told.reading.assumptions.map(({ code }) => code)).not.to.include('contract_size')
    expect(told.performance.net_expectancy_bps).to.be.closeTo(100 - 1e4 * (9 / 1000), 1e-9)
    const share = await auditOf(fills('ACME'), zero)
    expect(share.reading.assumptions.map(({ code }) => code)).not.to.include('contract_size')
  })

  it('infers a profit that is divided by the exit price', async () => {
    const next = seededUniform(4)
    const rows = Array.from({ length: 30 }, (_, i) => {
      const [entry, move] = [Number((130 + 25 * next()).toFixed(3)), Number((next() - 0.4).toFixed(3))]
      const exit = Number((entry + move).toFixed(3))
      const day = `2024-01-${String(i + 1).padStart(2, '0')}`
      return `USDJPY,long,0.2,${day} 10:00,${entry},${day} 12:00,${exit},${((20_000 * (exit - entry)) / exit).toFixed(2)}`
    })
    const report = await auditOf([`${ROUND_TRIPS},pnl`, ...rows], zero)
    expect(report.warnings).to.include('contract_size_100000_divided_by_the_exit_price_inferred_for_USDJPY')
    expect(findingsOf(report)).to.deep.equal([])
    expect(report.money.currency).to.equal('USD')
    expect(Math.abs(report.money.stated_difference!)).to.be.below(0.15)
  })

  it('has a total in one currency only, unless the file gives the rates', async () => {
    const header = 'symbol,currency,side,qty,entry_time,entry_price,exit_time,exit_price'
    const shares = ['AAA,USD,long,1,2024-01-01,10,2024-01-02,11', 'BBB,EUR,long,1,2024-01-01,10,2024-01-02,11']
    const { money } = await auditOf([header, ...shares], zero)
    expect(money).to.include({ net: null, currency: null })
    expect(money.total_missing).to.include('EUR, USD')
    const pair = 'EURUSD,USD,long,1,2024-01-01,1.1,2024-01-02,1.2'
    const known = await auditOf([header, ...shares, pair], { ...zero, stated: { ...NOTHING_STATED, contractSize: 1 } })
    expect(known.money).to.include({ total_missing: null, currency: 'USD', gross: 2.3 })
  })

  it('reads the capital from a balance, and measures the drawdown by it', async () => {
    const rows = [`${ROUND_TRIPS},pnl,balance`, 'X,long,10,2024-01-02,100,2024-01-03,110,100,1100']
    rows.push('X,long,10,2024-01-04,100,2024-01-05,89,-110,990')
    const { money, reading } = await auditOf(rows, zero)
    expect(money).to.include({ capital: 1000, max_drawdown: -110, max_drawdown_share: -0.1 })
    expect(reading.assumptions.map(({ code }) => code)).to.include('capital')
    const stated = { ...NOTHING_STATED, capital: 900 }
    expect((await auditOf(rows, { ...zero, stated })).money).to.include({ capital: 900, max_drawdown_share: -0.11 })
  })

  it('keeps positions that are never flat: a grid, and a savings plan', async () => {
    const header = 'time,symbol,side,qty,price'
    const grid = Array.from({ length: 20 }, (_, i) => {
      const isSale = i % 2 === 1
      return `2024-02-${String(i + 1).padStart(2, '0')},X,${isSale ? 'sell' : 'buy'},1,${isSale ? 102 : 100}`
    })
    const open = await auditOf([header, '2024-01-01,X,buy,10,100', ...grid], zero)
    expect(open.ledger).to.include({ trades: 1, open: 1 })
    expect(open.money).to.include({ net: 20, unrealised: 20 })
    expect(open.warnings).to.include('closed_parts_of_1_open_positions_counted_as_trades')
    const plan = Array.from({ length: 6 }, (_, i) => `2024-0${i + 1}-01,SPY,buy,1,${400 + 10 * i}`)
    const saved = await auditOf([header, ...plan], zero)
    expect(saved.ledger).to.include({ trades: 1, open: 1 })
    expect(saved.money).to.include({ gross: 6 * 450 - 6 * 425, unrealised: 0 })
    expect(saved.warnings).to.include('open_positions_valued_at_the_last_prices_of_the_file')
  })

  it('keeps a long and a short position apart if the file says so', async () => {
    const rows = [
      ['2024-01-01 10:00', 'BUY', 'LONG', 'Open Long', 1, 100],
      ['2024-01-01 11:00', 'SELL', 'SHORT', 'Open Short', 2, 105],
      ['2024-01-01 12:00', 'SELL', 'LONG', 'Close Long', 1, 110],
      ['2024-01-01 13:00', 'BUY', 'SHORT', 'Close Short', 2, 108],
    ]
    const sides = rows.map(([time, side, book, , qty, price]) => [time, 'BTCUSDT', side, book, qty, price].join(','))
    const words = rows.map(([time, , , word, qty, price]) => [time, 'BTCUSDT', word, qty, price].join(','))
    const marks = rows.map(([time, side, , word, qty, price]) =>
      [time, 'BTCUSDT', side, String(word).startsWith('Open') ? 'in' : 'out', qty, price].join(','),
    )
    const reports = [
      await auditOf(['time,symbol,type,direction,qty,price', ...marks], zero),
      await auditOf(['time,symbol,side,positionSide,qty,price', ...sides], zero),
      await auditOf(['time,symbol,side,qty,price', ...words], zero),
    ]
    for (const { ledger, performance, money } of reports) {
      expect(ledger).to.include({ trades: 2, open: 0 })
      expect(performance.gross_expectancy_bps).to.be.closeTo((1000 - 1e4 * (3 / 105)) / 2, 1e-9)
      expect(money.gross).to.equal(4)
    }
  })

  it('joins fills of one position although the file says what opens and closes', async () => {
    const rows = ['2024-01-01,X,buy,O,10,100', '2024-01-02,X,sell,C,4,101', '2024-01-03,X,buy,O,4,99']
    rows.push('2024-01-04,X,sell,C,10,102')
    const { ledger, money } = await auditOf(['time,symbol,side,indicator,qty,price', ...rows], zero)
    expect(ledger).to.include({ trades: 1, open: 0 })
    expect(money.gross).to.equal(404 + 1020 - 1000 - 396)
  })
})

describe('stated profits', () => {
  const next = seededUniform(8)
  interface Made {
    readonly qty: number
    readonly entry: number
    readonly exit: number
  }
  const made = (count: number, price: number, tick: number): Made[] =>
    Array.from({ length: count }, () => {
      const entry = price + tick * Math.round(200 * next())
      return { qty: 1 + Math.floor(4 * next()), entry, exit: entry + tick * (Math.round(40 * next()) - 15 || 1) }
    })
  const ledgerOf = (symbol: string, list: readonly Made[], profit: (one: Made, row: number) => number): string[] => [
    `${ROUND_TRIPS},pnl`,
    ...list.map((one, row) => {
      const day = new Date(Date.UTC(2023, 0, 1 + row)).toISOString().slice(0, 10)
      const { qty, entry, exit } = one
      return `${symbol},long,${qty},${day} 10:00,${entry},${day} 15:00,${exit},${profit(one, row).toFixed(2)}`
    }),
  ]
  const grossOf = ({ qty, entry, exit }: Made): number => qty * (exit - entry)

  it('are explained by any contract size and commission, and one in ten that is off by 1% is found', async () => {
    for (const [symbol, size, price, tick] of [
      ['ZQX', 250, 95, 0.25],
      ['MNQH5', 2, 18_000, 0.25],
      ['ACME', 1, 40, 0.5],
    ] as const)
      for (const [per, amount] of [
        ['none', 0],
        ['trade', 1.5],
        ['unit', 0.62],
      ] as const) {
        const list = made(20, price, tick)
        const profit = (one: Made): number =>
          size * grossOf(one) - (per === 'none' ? 0 : per === 'trade' ? amount : 2 * amount * one.qty)
        const honest = await auditOf(ledgerOf(symbol, list, profit), zero)
        const what = `${symbol} ${per}`
        expect(findingsOf(honest), what).to.deep.equal([])
        expect(honest.reading.instruments[0], what).to.include({
          contract_size: size,
          contract_size_source: 'inferred',
        })
        const cost = list.reduce((sum, one) => sum + size * grossOf(one) - profit(one), 0)
        expect(honest.money.fees, what).to.be.closeTo(cost, 0.05)
        expect(honest.fills.checks.find(({ check }) => check === 'pnl')?.status).to.equal('checked')
        const off = await auditOf(
          ledgerOf(
            symbol,
            list,
            (one, row) => profit(one) + (row % 10 === 4 ? 0.01 * Math.abs(profit(one)) + 0.05 : 0),
          ),
          zero,
        )
        expect(findingsOf(off), what).to.deep.equal(['4 pnl_mismatch', '14 pnl_mismatch'])
      }
  })

  it('of rounded prices are not accused', async () => {
    for (let run = 0; run < 20; run += 1) {
      const list = made(60, 100, 0.01)
      const noisy = ledgerOf('ACME', list, (one) => grossOf(one) + one.qty * 0.01 * (next() - 0.5))
      expect(findingsOf(await auditOf(noisy, zero))).to.deep.equal([])
    }
  })

  it('of fewer than four different moves are neither right nor wrong', async () => {
    const list = [1, 2, 3, 1, 2, 3].map((move) => ({ qty: 1, entry: 100, exit: 100 + move }))
    const report = await auditOf(
      ledgerOf('ACME', list, (one) => 7.7 * grossOf(one) + 13),
      zero,
    )
    expect(findingsOf(report)).to.deep.equal([])
    const check = report.fills.checks.find(({ check: name }) => name === 'pnl')
    expect(check).to.include({ status: 'not_checked', not_checked: 6 })
    expect(check?.reasons).to.deep.equal(['ACME: fewer than 4 different moves'])
  })
})

describe('the figures of fills', () => {
  const header = 'time,symbol,side,qty,price,fee'
  const fills = (names: readonly string[]): string[] => {
    const next = seededUniform(12)
    return Array.from({ length: 120 }, (_, i) => {
      const time = new Date(Date.UTC(2024, 0, 1, i)).toISOString()
      const name = names[Math.floor(names.length * next())]!
      return `${time},${name},${next() < 0.5 ? 'buy' : 'sell'},${1 + Math.floor(9 * next())},${(90 + 20 * next()).toFixed(2)},0.05`
    })
  }

  it('do not change with the order of the rows or the names of the symbols', async () => {
    const plain = await auditOf([header, ...fills(['AAA', 'BBB', 'CCC'])], zero)
    const reversed = await auditOf([header, ...fills(['AAA', 'BBB', 'CCC']).toReversed()], zero)
    const renamed = await auditOf([header, ...fills(['ZZ9', 'Q', 'MMMM'])], zero)
    for (const other of [reversed, renamed]) {
      expect(other.performance).to.deep.equal(plain.performance)
      expect({ ...other.money, open_positions: [] }).to.deep.equal({ ...plain.money, open_positions: [] })
    }
  })
})
