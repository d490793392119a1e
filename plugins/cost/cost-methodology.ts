/** Explains the estimate for the methodology page. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { MODEL } from './cost-answer.ts'
import type { MarketClasses } from './market-classes.ts'

/** Written by `npm run lab -- products --write`. */
const measured = JSON.parse(readFileSync(new URL('cost-measurements.json', import.meta.url), 'utf8')) as Pick<
  Required<Method>,
  'claims' | 'tables'
>

const paragraphs = [
  'An estimate is the sum of three components: the share of the half spread that is paid, the impact of the order, and a fee. The first two are what the market costs, market_bps. The fee is separate because it differs by account; send your own as fee_bps and maker_fee_bps. Price moves during the order are not a cost, because they can help as well as harm. The answer gives them beside the total as a standard deviation, and no range contains them.',
  'The spread comes from the live order book if it is not older than two minutes. A perpetual has the book of the most traded contract on its coin that was read in the last five minutes; if there is none, it has that of its spot market. Without a book, the spread is the mean of the last hour of quotes; otherwise EDGE from bars, hour by hour, averaged with its sign over ten days, clipped at zero and never below one tick; otherwise the spread of the class. The volatility is that of five-minute returns within the last ten trading days, and the volume is their average turnover. For symbols with daily bars only, the estimate uses the Garman-Klass range and the turnover of thirty days, and EDGE over the months of a year if its mean is more than two standard errors above zero. If the book or the quotes stand at another price than the bars, by more than 5% and eight standard deviations of the time between them, there is no estimate.',
  'One law gives the impact of every order. M(Q) is the impact of Q at once: that of walking the book level by level, continued beyond its depth by the square-root law, which prices the whole order without a book. A market order pays M(Q). A limit order is posted at the touch, fills with probability 0.65 for the maker fee, earns the half spread and loses 0.8 of it to better-informed flow; if it does not fill, a market order follows. A limit order whose limit crosses the book is a market order. A schedule pays half of the half spread, the taker fee, and M(Q) for the share of the impact that lasts, half of the permanent impact of Almgren et al.; for the rest it meets the book with Q/(1 + T/R), because in R the liquidity that it takes comes back once. R makes the temporary impact that of Almgren et al. at a tenth of the volume. So a schedule never costs more than the market order that it splits, and no cost falls with size or jumps. On the volume clock a schedule saves 5% of the part that recovers.',
  'Unless you set it, a twap or vwap schedule takes a tenth of the volume, for at least five minutes and at most a trading day. The law is capped at one day: longer schedules pay what one day costs (horizon_capped). An order above a day’s turnover is refused. Beyond the depth of the book, and above 10% of a day’s turnover, confidence is low.',
  'The range says what filling the order costs half a minute later. It adds to the estimate the tenth and the ninetieth percentile of the errors of earlier orders of its size and side, in pairs of order books of the same asset and venue: the cost in the later book less that in the first. Sizes between those that are measured have percentiles between theirs. The percentiles are conformal: for exchangeable errors the next one lies between them with probability 0.80, give or take two in the number of cases, whatever their distribution. Each tail adapts after every case, so that the share holds while the market drifts. A side with fewer than 100 cases of its own has those of both sides, and with fewer than 14 there is no range.',
  'range_basis gives the cases, their period, and the share of orders that were within the range that was published before their later book was known. A limit order or a schedule has the errors of the market orders that it is made of, with their weights, and no share, because its own were not measured: its range never ends above that of the market order. Where nothing was measured, there is no range, and range_basis says why: no book (US equities have none), the book of the spot market for a perpetual, an order beyond the depth of the book, or too few cases, which includes the own books of perpetuals. The table below has the share by size on books that were left out.',
  'Figures are rounded to hundredths of a basis point, or to three significant digits if the total is below one, and to cents. The components are rounded so that they sum to the total.',
]

const formulas = [
  {
    name: 'Half spread',
    formula: 'share × spread/2; share 1 market, 0.5 twap vwap pov, 0.65(0.8 - 1) + 0.35 limit',
  },
  {
    name: 'Square-root law',
    formula: 'L(Q) = 0.4 σ √(Q/ADV)',
    source: 'Donier and Bonart (2015); Sato and Kanazawa (2024)',
  },
  {
    name: 'Impact at once',
    formula: 'M(Q) = W(Q) - half within the book’s depth D; W(D) - half + L(Q) - L(D) beyond it; L(Q) without',
  },
  {
    name: 'Impact by order',
    formula:
      'M(Q) market; 0.35 M(Q) limit; s M(Q) + (1 - s) M(Q/(1 + min(T, 1)/R)) twap, the last term × 0.95 vwap and pov',
  },
  {
    name: 'Schedule over T days',
    formula: 's = min(1, 0.314/2 × 4/0.4 × √(Q/ADV)), R = 0.08 days; pov: T = Q/(rate ADV)',
    source: 'Almgren, Thum, Hauptmann and Li (2005)',
  },
  { name: 'Fee', formula: '0.65 maker + 0.35 taker limit; taker otherwise' },
  { name: 'Largest size within a limit', formula: 'max Q ≤ ADV with total_bps(Q) ≤ limit, and with p90(Q) ≤ limit' },
  {
    name: 'Range of the cost',
    formula:
      'total_bps + q(α₁) to total_bps + q(1 - α₂), q(p) the error of rank (n + 1)p among the last 2016; α ← α + 0.02 (0.1 - missed)',
    source: 'Romano, Patterson and Candès (2019); Gibbs and Candès (2021)',
  },
  { name: 'Timing risk', formula: 'σ√(T/3) schedule; σ√(3 s) market; σ√(0.35 T) limit' },
]

/** common.json#/$defs/Method */
export function methodology(classes: MarketClasses): Method {
  const rows = Object.entries(classes).map(([name, row]) => [
    name,
    row.fee_bps,
    row.maker_fee_bps ?? row.fee_bps,
    row.spread_bps,
    row.sigma_daily,
    row.adv_usd,
  ])
  const columns = [
    'class',
    'taker fee, bps',
    'maker fee, bps',
    'spread, bps',
    'daily volatility',
    'daily turnover, USD',
  ]
  return {
    model: MODEL,
    paragraphs,
    formulas,
    claims: measured.claims,
    tables: [...measured.tables, { caption: 'Classes: the fees, and the defaults for missing data', columns, rows }],
    limits: [
      'The estimate is an expectation for one order in an ordinary market. It is not a quote: the book may move before your order arrives.',
      'Turnover and book come from one venue. An order routed to several venues pays less.',
      'How a market recovers from a schedule was not measured on books here: it rests on US equities of 2001 to 2003. Where Almgren et al. put a schedule above the market order, the law does not.',
      'The chance that a posted order fills does not depend on its size, its price or how long it waits.',
      'The coefficients were not fitted to your orders. Orders on signals that others trade too cost more.',
      'Volatility and turnover of a perpetual are those of its spot market. spot_proxy marks an estimate whose impact rests on that market: on its order book, or on its turnover. The price of a contract in Tether or USD Coin counts as dollars.',
      'The recorded books that ranges were measured on are of one asset, one venue and less than six minutes: eleven pairs. They say that the method is not far off, not that it holds 0.80 of the orders on your market. Each answer has its own count. On simulated books, which show the method at work and nothing of a market, the share was 0.80.',
      'Errors in whole ticks, as of small orders in a liquid market, cannot be cut at exactly 0.80, so such ranges may hold more.',
      'Bars cannot show the spreads of liquid crypto markets, which are a hundredth of a basis point. Without a book they are overstated.',
    ],
    sources: [
      'Ardia, Guidotti and Kroencke, Efficient estimation of bid-ask spreads from open, high, low, and close prices, J. Financial Economics 161 (2024) 103916',
      'Almgren, Thum, Hauptmann and Li, Direct estimation of equity market impact, Risk (July 2005)',
      'Donier and Bonart, A million metaorder analysis of market impact on the Bitcoin, Market Microstructure and Liquidity 1 (2015)',
      'Sato and Kanazawa, a complete survey of the Tokyo Stock Exchange, arXiv 2411.13965 (2024)',
      'Romano, Patterson and Candès, Conformalized quantile regression, NeurIPS 32 (2019)',
      'Gibbs and Candès, Adaptive conformal inference under distribution shift, NeurIPS 34 (2021)',
      'Garman and Klass, On the estimation of security price volatilities from historical data, J. Business 53 (1980)',
    ],
  }
}
