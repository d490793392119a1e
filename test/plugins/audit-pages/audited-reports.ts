/** Reports as audits of six files give them: five with reading, grounds, money and days, and one of an earlier version. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { AuditReport } from '../../../schemas/types.d.ts'
import { summaryOf } from '../../../plugins/audit/audit.ts'
import { auditOf } from '../audit/audit-fixtures.ts'

type Reading = NonNullable<AuditReport['reading']>
type Money = NonNullable<AuditReport['money']>
type Days = NonNullable<AuditReport['days']>

const ledgers = resolve(import.meta.dirname, '../../../views/assets/ledgers')
const sample = (name: string): string => readFileSync(join(ledgers, name), 'utf8')

/** The audit of the sample ledger as a release before these members stored it. */
async function earlierReport(): Promise<AuditReport> {
  const audited = await auditOf(sample('round-trips.csv'), { bars: sample('bars.csv') })
  const { reading, grounds, money, days, ...report } = {
    rid: 'earlier',
    report_url: '/report/earlier',
    summary: summaryOf(audited),
    ...audited,
  } as unknown as AuditReport
  return report
}

/** Columns as "Name=use", "Name" for one that is not used, and "Name=use: why" or "Name: why". */
const columns = (...texts: string[]): Reading['columns'] =>
  texts.map((text) => {
    const [pair = '', why = null] = text.split(': ')
    const [name = '', use = null] = pair.split('=')
    return { name, used_as: use, why }
  })

const NO_MONEY: Money = {
  currency: 'USD',
  total_missing: null,
  gross: null,
  fees: null,
  net: null,
  net_by_notional_bps: null,
  stated_profit: null,
  stated_basis: null,
  stated_difference: null,
  unknown_fees: [],
  open_positions: [],
  unrealised: null,
  remainders: [],
  remainders_value: null,
  capital: null,
  max_drawdown: null,
  max_drawdown_share: null,
}

const DAYS: Days = {
  method: 'marked',
  why: null,
  days: 512,
  marked_share: 1,
  block_days: null,
  effective_bets: 143.4,
  mean_bps: 4.21,
  mean_ci95_bps: [1.02, 7.64],
  t_stat: 2.61,
  p_value: 0.0094,
  sharpe: 1.83,
  autocorrelation: 0.04,
  dsr: 0.971,
  min_trl_days: 402.2,
  money_t_stat: 2.12,
  benchmark: 'traded_symbols',
  alpha_bps: 3.35,
  alpha_t_stat: 2.24,
  beta: 0.31,
}

/** Figures of `performance` and `overfitting` that a ledger of its own would have. */
function figured(report: AuditReport, trades: number, netBps: number, dsr: number | null): AuditReport {
  const performance = {
    ...report.performance,
    trades,
    net_expectancy_bps: netBps,
    gross_expectancy_bps: netBps + 6,
    expectancy_ci95_bps: [netBps - 41.2, netBps + 43.1],
  }
  return { ...report, performance, overfitting: { ...report.overfitting, dsr } }
}

const ground = (code: string, verdict: 'reject' | 'not_profitable' | 'unproven', explanation: string) => ({
  code,
  verdict,
  value: null,
  limit: null,
  explanation,
})

/** Stocks by IBKR: the average trade gains, one large loss takes more. */
function stocks(report: AuditReport): AuditReport {
  return {
    ...figured(report, 398, 101.4, 0.998),
    rid: 'stocks',
    verdict: 'not_profitable',
    summary: 'The 398 trades lose 997,704 USD after costs. The average trade gains 101.4 bps.',
    reasons: [
      'money_not_positive',
      'trade_and_money_signs_differ',
      'fills_not_checked',
      'open_positions_could_turn_it',
    ],
    grounds: [
      ground('money_not_positive', 'not_profitable', 'After costs the trades lose 997,704 USD.'),
      ground(
        'trade_and_money_signs_differ',
        'unproven',
        'The average trade gains 101.4 bps, but by money they lose 905.3 bps: the sizes decide.',
      ),
      ground('fills_not_checked', 'unproven', 'None of 796 fills could be checked against bars.'),
      ground(
        'open_positions_could_turn_it',
        'unproven',
        'The 20 open positions have lost 41,250 USD at their last prices.',
      ),
    ],
    ledger: {
      ...report.ledger,
      layout: 'fills',
      rows: 873,
      trades: 398,
      symbols: 61,
      excluded: 0,
      open: 20,
      first: '2022-01-03T14:31:00.000Z',
      last: '2024-06-28T19:59:00.000Z',
    },
    fills: { ...report.fills, fills: 796, checked: 0, impossible: 0, findings: [] },
    reading: {
      columns: columns(
        'Trades',
        'Header',
        'DataDiscriminator',
        'Asset Category',
        'Currency=quote_currency',
        'Symbol=symbol',
        'Date/Time=time',
        'Quantity=qty: its sign is the side',
        'T. Price=price',
        'C. Price: the closing price of the day',
        'Proceeds: follows from price and quantity',
        'Comm/Fee=fee',
        'Basis',
        'Realized P/L=pnl',
        'MarkToMarketProfitOrLossSinceTheBeginningOfTheYear: a second column of profit',
        'Code',
      ),
      assumptions: [
        { code: 'time_zone', text: 'The times name no zone and were read as UTC.', parameter: 'timezone' },
        {
          code: 'capital',
          text: 'The capital at the start is unknown, so the drawdown is in money only.',
          parameter: 'capital',
        },
      ],
      skipped: [
        { kind: 'total', rows: 58, first: 12 },
        { kind: 'repeated_header', rows: 4, first: 201 },
        { kind: 'dividend', rows: 11, first: 640 },
      ],
      instruments: [
        { symbol: 'AAPL', trades: 42, contract_size: 1, contract_size_source: 'file', currency: 'USD' },
        { symbol: 'MSFT', trades: 31, contract_size: 1, contract_size_source: 'file', currency: 'USD' },
      ],
    },
    money: {
      ...NO_MONEY,
      gross: -996_512.11,
      fees: 796,
      net: -997_704.32,
      net_by_notional_bps: -905.31,
      stated_profit: -997_308.11,
      stated_basis: 'net',
      stated_difference: 0,
      open_positions: Array.from({ length: 20 }, (_, index) => ({
        symbol: `STK${index}`,
        side: 'long',
        qty: 100 + index,
        entry_price: 51.25,
        last_price: 30.5 + index / 10,
        last_at: '2024-06-28T19:59:00.000Z',
        unrealised: -2075 + index,
      })),
      unrealised: -41_250.4,
      max_drawdown: -1_000_412.9,
    },
    days: {
      ...DAYS,
      method: 'blocks',
      why: 'the file has no prices between the trades',
      marked_share: 0,
      block_days: 14,
      effective_bets: 61.2,
      money_t_stat: -0.98,
      benchmark: null,
      alpha_bps: null,
      alpha_t_stat: null,
      beta: null,
    },
  }
}

/** Fills of crypto: dust that is no trade, and fees in a coin without a price. */
function crypto(report: AuditReport): AuditReport {
  return {
    ...figured(report, 64, -18.7, 0.31),
    rid: 'crypto',
    verdict: 'not_profitable',
    summary: 'The 64 trades lose 1,342 USDT after costs.',
    reasons: ['money_not_positive', 'dsr_below_0.95'],
    grounds: [
      ground(
        'money_not_positive',
        'not_profitable',
        'After costs the trades lose 1,342 USDT, and fees of 3.2 BNB are not counted.',
      ),
      ground('net_expectancy_not_positive', 'not_profitable', 'After costs the average trade loses 18.7 bps.'),
      ground('dsr_below_0.95', 'unproven', 'The deflated Sharpe ratio is 31.0%, below 95%.'),
    ],
    ledger: {
      ...report.ledger,
      layout: 'fills',
      rows: 1204,
      trades: 64,
      symbols: 9,
      excluded: 0,
      open: 2,
      first: '2023-11-02T03:12:44.000Z',
      last: '2024-03-19T22:40:01.000Z',
    },
    reading: {
      columns: columns(
        'Date(UTC)=time',
        'Pair=symbol',
        'Side=side',
        'Price=price',
        'Executed=qty: an amount with its coin',
        'Amount: follows from price and quantity',
        'Fee=fee: an amount with its coin',
      ),
      assumptions: [
        {
          code: 'fee_currency',
          text: 'The file has no price of BNB, so 3.2 BNB of fees are counted as unknown.',
          parameter: null,
        },
        {
          code: 'quote_currency',
          text: 'The pairs end in USDT and USDC, which were taken as one currency at 1 to 1.',
          parameter: 'quote_currency',
        },
      ],
      skipped: [],
      instruments: [
        { symbol: 'BTCUSDT', trades: 31, contract_size: 1, contract_size_source: 'file', currency: 'USDT' },
        { symbol: 'PEPEUSDT', trades: 12, contract_size: 1, contract_size_source: 'file', currency: 'USDT' },
      ],
    },
    money: {
      ...NO_MONEY,
      currency: 'USDT',
      gross: -402.5,
      fees: 939.84,
      net: -1342.34,
      net_by_notional_bps: -22.48,
      unknown_fees: [{ currency: 'BNB', amount: 3.2004 }],
      open_positions: [
        {
          symbol: 'ETHUSDT',
          side: 'long',
          qty: 0.51234,
          entry_price: 2451.2,
          last_price: 2390.07,
          last_at: '2024-03-19T00:00:00.000Z',
          unrealised: -31.32,
        },
        {
          symbol: 'PEPEUSDT',
          side: 'long',
          qty: 12_345_678,
          entry_price: 0.0000081,
          last_price: 0.0000079,
          last_at: '2024-03-18T00:00:00.000Z',
          unrealised: -2.47,
        },
      ],
      unrealised: -33.79,
      remainders: [
        { symbol: 'BTCUSDT', side: 'long', qty: 0.000123, value: 8.12 },
        { symbol: 'SOLUSDT', side: 'long', qty: 0.0099, value: 1.77 },
      ],
      remainders_value: 9.89,
      capital: 10_000,
      max_drawdown: -2104.22,
      max_drawdown_share: 0.196,
    },
    days: {
      ...DAYS,
      method: 'marked',
      marked_share: 0.83,
      why: 'some positions have no price on some days',
      t_stat: -0.61,
      p_value: 0.544,
      sharpe: -0.72,
      mean_bps: -2.2,
      mean_ci95_bps: [-9.1, 4.6],
      dsr: 0.31,
      min_trl_days: null,
      alpha_bps: -9.8,
      alpha_t_stat: -1.61,
      beta: 0.44,
      money_t_stat: -0.8,
    },
  }
}

/** Lots of currencies: the contract size follows from the stated profits. */
function lots(report: AuditReport): AuditReport {
  return {
    ...figured(report, 214, 3.67, 0.62),
    rid: 'lots',
    verdict: 'unproven',
    summary: 'The 214 trades make 3.7 bps a trade after costs, but luck may explain it.',
    reasons: ['dsr_below_0.95', 'interval_holds_zero', 'fills_not_checked'],
    grounds: [
      ground('dsr_below_0.95', 'unproven', 'The deflated Sharpe ratio is 62.0% with 10 trials, below 95%.'),
      ground('interval_holds_zero', 'unproven', 'The mean return of a day may be zero: 95% from -0.9 to 3.4 bps.'),
      ground('fills_not_checked', 'unproven', 'None of 428 fills could be checked against bars.'),
    ],
    ledger: {
      ...report.ledger,
      layout: 'round_trips',
      rows: 231,
      trades: 214,
      symbols: 4,
      excluded: 1,
      open: 0,
      first: '2024-01-02T09:00:00.000Z',
      last: '2024-09-30T17:45:00.000Z',
    },
    fills: { ...report.fills, fills: 428, checked: 0, impossible: 0, findings: [] },
    reading: {
      columns: columns(
        'Time=entry_time',
        'Position: an identifier',
        'Symbol=symbol',
        'Type=side',
        'Volume=qty',
        'Price=entry_price',
        'S / L',
        'T / P',
        'Time=exit_time: the second column of this name',
        'Price=exit_price: the second column of this name',
        'Commission=fee',
        'Swap=fee',
        'Profit=pnl',
      ),
      assumptions: [
        {
          code: 'contract_size',
          text: 'A lot of EURUSD, GBPUSD and AUDUSD is 100,000 units, as their profits say; a lot of XAUUSD is 100.',
          parameter: 'contract_size',
        },
        {
          code: 'quote_currency',
          text: 'Profits are in the currency of the account, which the file does not name.',
          parameter: 'quote_currency',
        },
        {
          code: 'time_zone',
          text: 'The times name no zone and were read as UTC. Servers of brokers are often two or three hours ahead.',
          parameter: 'timezone',
        },
      ],
      skipped: [
        { kind: 'cash', rows: 3, first: 0 },
        { kind: 'summary', rows: 12, first: 219 },
      ],
      instruments: [
        { symbol: 'EURUSD', trades: 120, contract_size: 100_000, contract_size_source: 'inferred', currency: 'USD' },
        { symbol: 'GBPUSD', trades: 61, contract_size: 100_000, contract_size_source: 'inferred', currency: 'USD' },
        { symbol: 'AUDUSD', trades: 21, contract_size: 100_000, contract_size_source: 'inferred', currency: 'USD' },
        { symbol: 'XAUUSD', trades: 12, contract_size: 100, contract_size_source: 'inferred', currency: 'USD' },
      ],
    },
    money: {
      ...NO_MONEY,
      currency: null,
      gross: 1412.2,
      fees: 299.6,
      net: 866.14,
      net_by_notional_bps: 3.41,
      stated_profit: 1412.2,
      stated_basis: 'gross',
      stated_difference: 0.004,
      max_drawdown: -402.8,
      max_drawdown_share: 0.081,
      capital: 5000,
    },
    days: {
      ...DAYS,
      days: 194,
      t_stat: 1.31,
      p_value: 0.192,
      sharpe: 1.1,
      mean_bps: 1.2,
      mean_ci95_bps: [-0.9, 3.4],
      dsr: 0.62,
      min_trl_days: 611,
      alpha_bps: 1.1,
      alpha_t_stat: 1.2,
      beta: 0.02,
    },
  }
}

/** Two trades, which the file states in two currencies. */
function few(report: AuditReport): AuditReport {
  return {
    ...figured(report, 2, 105, null),
    rid: 'few',
    verdict: 'unproven',
    summary: 'The 2 trades make 105.0 bps a trade after costs, but they are too few to distinguish from luck.',
    reasons: ['too_few_trades_for_statistics', 'no_losing_trade'],
    grounds: [
      ground(
        'too_few_trades_for_statistics',
        'unproven',
        'Two trades are too few: at least 10 independent bets are needed.',
      ),
      ground('no_losing_trade', 'unproven', 'No trade loses.'),
    ],
    ledger: {
      ...report.ledger,
      layout: 'round_trips',
      rows: 2,
      trades: 2,
      symbols: 2,
      excluded: 0,
      open: 0,
      first: '2024-01-02T00:00:00.000Z',
      last: '2024-01-05T00:00:00.000Z',
    },
    reading: {
      columns: columns(
        'symbol=symbol',
        'side=side',
        'qty=qty',
        'entry_time=entry_time',
        'entry_price=entry_price',
        'exit_time=exit_time',
        'exit_price=exit_price',
        'currency=quote_currency',
      ),
      assumptions: [],
      skipped: [],
      instruments: [
        { symbol: 'SAP', trades: 1, contract_size: 1, contract_size_source: 'assumed', currency: 'EUR' },
        { symbol: 'IBM', trades: 1, contract_size: 1, contract_size_source: 'assumed', currency: 'USD' },
      ],
    },
    money: {
      ...NO_MONEY,
      currency: null,
      total_missing: 'The profits are in EUR and USD, and the file has no rate between them.',
      net_by_notional_bps: 104.8,
    },
    days: {
      ...DAYS,
      method: 'none',
      why: 'two trades are not enough for blocks',
      days: 3,
      marked_share: 0,
      effective_bets: 2,
      mean_bps: null,
      mean_ci95_bps: null,
      t_stat: null,
      p_value: null,
      sharpe: null,
      autocorrelation: null,
      dsr: null,
      min_trl_days: null,
      money_t_stat: null,
      benchmark: null,
      alpha_bps: null,
      alpha_t_stat: null,
      beta: null,
    },
  }
}

/** Futures with bars: nothing is found against them. */
function futures(report: AuditReport): AuditReport {
  return {
    ...figured(report, 421, 2.94, 0.984),
    rid: 'futures',
    overfitting: { ...report.overfitting, dsr: 0.984, n_trials: 3, spa_p_value: 0.018, reality_check_p_value: 0.0004 },
    verdict: 'plausible',
    summary:
      'The 421 trades make 43,118 USD after costs, 2.9 bps a trade, with a deflated Sharpe ratio of 98.4% at 3 trials. All 842 fills lie within their bars; the audit found nothing against it, but that is not a guarantee.',
    reasons: [],
    grounds: [],
    ledger: {
      ...report.ledger,
      layout: 'tradingview',
      rows: 842,
      trades: 421,
      symbols: 2,
      excluded: 0,
      open: 0,
      trials: 3,
      judged_trial: 'fast 10, slow 40',
      first: '2021-02-01T14:30:00.000Z',
      last: '2024-10-31T20:00:00.000Z',
    },
    fills: { ...report.fills, fills: 842, checked: 842, impossible: 0, share: 0, findings: [], flags: [] },
    reading: {
      columns: columns(
        'Trade #=trade',
        'Type=side',
        'Signal',
        'Date/Time=time',
        'Price USD=price',
        'Contracts=qty',
        'Profit USD=pnl',
        'Profit %: follows from the profit',
        'Run-up USD',
        'Run-up %',
        'Drawdown USD',
        'Drawdown %',
        'Cumulative profit USD',
        'Cumulative profit %',
      ),
      assumptions: [],
      skipped: [],
      instruments: [
        { symbol: 'MNQ', trades: 301, contract_size: 2, contract_size_source: 'stated', currency: 'USD' },
        { symbol: 'MES', trades: 120, contract_size: 5, contract_size_source: 'stated', currency: 'USD' },
      ],
    },
    money: {
      ...NO_MONEY,
      gross: 52_311.5,
      fees: 2441.8,
      net: 43_118.02,
      net_by_notional_bps: 2.61,
      stated_profit: 52_311.5,
      stated_basis: 'gross',
      stated_difference: 0,
      capital: 50_000,
      max_drawdown: -6204.5,
      max_drawdown_share: 0.079,
    },
    days: {
      ...DAYS,
      comparisons: [
        { benchmark: 'traded_symbols', days: 512, alpha_bps: 3.35, alpha_t_stat: 2.24, beta: 0.31 },
        { benchmark: 'SPY', days: 498, alpha_bps: 3.12, alpha_t_stat: 2.01, beta: 0.42 },
      ],
    },
  }
}

/** The reports by their id. */
export async function auditedReports(): Promise<Readonly<Record<string, AuditReport>>> {
  const earlier = await earlierReport()
  const later = [stocks, crypto, lots, few, futures].map((make) => make(earlier))
  return Object.fromEntries([earlier, ...later].map((report) => [report.rid, report]))
}
