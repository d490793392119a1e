/** How funding rates are read and compared, for the methodology page. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'

/** `npm run lab -- datasets --write` writes this file. */
const measured = JSON.parse(readFileSync(new URL('funding-measurements.json', import.meta.url), 'utf8')) as Pick<
  Required<Method>,
  'claims' | 'tables'
>

/** common.json#/$defs/Method */
export const methodology: Method = {
  model: 'funding/1',
  paragraphs: [
    'Each of eight venues is polled once a minute through its public API. Rates are fractions per interval, positive when longs pay shorts, and keep the digits the venue wrote.',
    'The interval is never assumed. If the venue states it, we use that (venue). If its answer has no such field but its rules fix the interval, we use the rules (published). For recorded settlements, we use the newest gaps that agree (inferred). A contract without any of these is left out and counted.',
    'Kraken states a rate as an amount of money per contract. For a linear contract we divide it by the mark price; an inverse contract is left out unless Kraken also states the relative rate. BitMEX writes the interval as a date. Hyperliquid and dYdX pay at the next full hour after the request.',
    'A rate is quarantined if it is beyond the bounds that its venue states with it, above 25% at one settlement where its venue has no bound that allows it, has an impossible interval, or is next paid later than one interval from now. Extreme rates within these bounds are sold: a squeezed contract may pay 2% an hour for days, and at_bound says when the market would pay more than the venue allows. The other bounds come from published rules: 4% an hour at Hyperliquid, six times the difference of the margins over eight hours at dYdX, 75% of that difference at BitMEX, the rate that Kraken states for each contract, and 2% for contracts of Binance that its list of adjusted contracts leaves out. They bound what is paid, not what a venue expects, so a rate beyond them is sold and at_bound. Quarantined rates are listed but used nowhere. If a venue cannot be read, or repeats the same figures, its last rates are used for an hour; then it is listed as unavailable with the age of its last answer. Nothing is sold if the newest rate of all venues is more than 15 minutes old.',
    'A spread is the difference between the annual rates of one symbol at two venues at the same time: long at the lowest, short at the highest. Each venue enters with one contract, linear before inverse. Contracts whose price for one coin is more than 5% away from the median are left out: two coins may have one name. Each spread says what is traded in 24 hours in its thinner contract.',
    'What can be traded at once is read from order books, every five minutes, of ten symbols: a spread states the largest size that can be bought at one venue and sold at the other, each at an average price within a bound of the middle of its book (10 basis points, or what you ask for). Books count contracts at OKX, Gate and BitMEX, which are turned into coins by the size that the venue states. A book that is crossed, or more than 2% away from the mark price, is not used; without a book of the last 15 minutes there is no size.',
    'Prices show whether contracts of one name are on one coin. Where three venues state a price, a contract more than 25% away from their median is quarantined, and price_check says whether the others are within 5%. A venue whose prices are more than 2% away from the median, at the median of at least three coins, is left out as a whole.',
    'Settled rates are read from the history that each venue publishes, for the symbols of the catalog and for those whose rates are extreme, now or within the last 90 days: at the bound of the venue, or 1% and more over eight hours. The 90 days before are read once, then each new settlement. Their interval is the time since the settlement before.',
  ],
  formulas: [
    { name: 'Over n hours', formula: 'rate × n / interval' },
    { name: 'APR', formula: 'rate × 8760 / interval' },
    { name: 'APY', formula: '(1 + rate)^(8760 / interval) − 1' },
    { name: 'Carry, basis points a day', formula: 'rate × 24 / interval × 10⁴' },
  ],
  ...measured,
  limits: [
    'A predicted rate changes until it is paid.',
    'A spread is not a profit: it excludes fees, slippage, margin and the risk of the venue. Its tradable size is that of the books read last, and says nothing about what is behind them.',
    'OKX reports no mark prices with its rates; its last prices stand in for them. Gate reports no volume with its rates.',
    'Published rules may name more than an answer shows: BitMEX also bounds the change from one settlement to the next, and a few major contracts of Binance have a tighter bound if its list leaves them out.',
  ],
  sources: [
    'Public APIs of Binance USD-M Futures, Bybit V5, OKX v5, Hyperliquid, dYdX v4 Indexer, Kraken Futures, Gate v4, BitMEX.',
  ],
}
