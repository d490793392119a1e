/** How funding rates are read and compared, for the methodology page. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'

/** Written by scripts/bench/x.ts with --write. */
const tables = JSON.parse(readFileSync(new URL('measured.json', import.meta.url), 'utf8')) as Required<Method>['tables']

export const methodology: Method = {
  model: 'funding/1',
  paragraphs: [
    'Each of eight venues is polled once a minute through its public API. Rates are fractions per interval, positive when longs pay shorts, and keep the digits the venue wrote.',
    'The interval is data. Where the venue tells it, that is used (venue); where its answer has no such field but its rules fix it, those are used (published); of recorded settlements the newest gaps that agree tell it (inferred). Where none of these does, the contract is left out and counted, never assumed.',
    'Kraken gives an amount of money: for a linear contract it is divided by the mark price; an inverse contract is left out unless the venue gives the relative rate itself. BitMEX writes an interval as a date. Hyperliquid and dYdX pay at the next full hour after the moment they were asked.',
    'Above 5% in eight hours, with an interval that cannot be, or with a next payment further away than its interval, a value is quarantined: listed, and used nowhere. A venue that cannot be read keeps its rates for an hour and is then listed as unavailable with the age of its last answer.',
    'A spread is the difference of annual rates of one symbol at two venues at the same moment: long where it is lowest, short where it is highest. One contract stands for a venue, linear before inverse.',
  ],
  formulas: [
    { name: 'Over n hours', formula: 'rate × n / interval' },
    { name: 'APR', formula: 'rate × 8760 / interval' },
    { name: 'APY', formula: '(1 + rate)^(8760 / interval) − 1' },
    { name: 'Carry, basis points a day', formula: 'rate × 24 / interval × 10⁴' },
  ],
  tables,
  limits: [
    'A predicted rate moves until it is paid.',
    'A spread is not a profit: it excludes fees, slippage, margin and the risk of the venue.',
    'OKX reports no prices with its rates.',
  ],
  sources: [
    'Interfaces of Binance USDⓈ-M Futures, Bybit V5, OKX v5, Hyperliquid, dYdX v4 Indexer, Kraken Futures, Gate v4, BitMEX.',
  ],
}
