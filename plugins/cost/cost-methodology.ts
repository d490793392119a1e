/** Explains the estimate for the methodology page. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'
import { MODEL } from './cost-answer.ts'
import type { MarketClasses } from './market-classes.ts'

/** Written by `npm run bench:products -- --write`. */
const measured = JSON.parse(readFileSync(new URL('cost-measurements.json', import.meta.url), 'utf8')) as NonNullable<
  Method['tables']
>

const paragraphs = [
  'An estimate is the sum of three components: the share of the half spread that is paid, the impact of the order, and a fee. The first two are what the market costs, market_bps. The fee is separate because it differs by account; send your own as fee_bps. Price moves during the order are not a cost, because they can help as well as harm. The answer gives them beside the total as a standard deviation.',
  'The spread comes from the live order book if it is not older than two minutes. A perpetual has the book of the most traded contract on its coin that was read in the last five minutes; if there is none, it has that of its spot market. Without a book, the spread is the mean of the last hour of quotes; otherwise EDGE from bars, hour by hour, averaged with its sign over ten days, clipped at zero and never below one tick; otherwise the spread of the class. The volatility is that of five-minute returns within the last ten trading days, and the volume is their average turnover. For symbols with daily bars only, the estimate uses the Garman-Klass range and the turnover of thirty days, and EDGE over the months of a year if its mean is more than two standard errors above zero.',
  'A market order walks the book level by level, and the answer lists the levels. Beyond the depth of the book, the square-root law adds the cost of the rest; without a book, the law prices the whole order. A limit order is posted at the touch, fills with probability 0.65, earns the half spread and loses 0.8 of it to better-informed flow. If it does not fill, a market order follows. Schedules pay half of the half spread and the impact of Almgren et al.; a schedule on the volume clock saves 5% of the temporary part.',
  'The range shows how far the expected cost may be off. For walked books it comes from repeating the walk half a minute later: the factors of the impact are the tenth and ninetieth percentile of the change. For the law and for schedules, the factors follow from the mean error of the law against recorded books, 0.16 in log10. Nothing was measured above 10% of the turnover of a day, nor with books older than two minutes: the range is then 0.5 to 2.5 times the impact.',
]

const formulas = [
  { name: 'Half spread', formula: 'share × spread/2; share 1 market, 0.5 twap vwap pov, 0.65(0.8 - 1) + 0.35 limit' },
  {
    name: 'Square-root law',
    formula: 'L(Q) = 0.4 σ √(Q/ADV)',
    source: 'Donier and Bonart (2015); Sato and Kanazawa (2024)',
  },
  {
    name: 'Market order',
    formula: 'W(Q) within the book’s depth D; W(D) + L(Q) - L(D) beyond it; half + L(Q) without',
  },
  {
    name: 'Schedule over T days',
    formula: 'J = 0.314/2 σ (X/V)(Θ/V)^¼ + 0.142 σ (X/(V T))^⅗, (Θ/V)^¼ = 4; pov: T = Q/(rate ADV)',
    source: 'Almgren, Thum, Hauptmann and Li (2005)',
  },
  { name: 'Timing risk', formula: 'σ√(T/3) schedule; σ√(3 s) market; σ√(0.35 T) limit' },
]

/** common.json#/$defs/Method */
export function methodology(classes: MarketClasses): Method {
  const rows = Object.entries(classes).map(([name, row]) => [name, row.fee_bps, row.spread_bps, row.sigma_daily, row.adv_usd]) // prettier-ignore
  const columns = ['class', 'taker fee, bps', 'spread, bps', 'daily volatility', 'daily turnover, USD']
  return {
    model: MODEL,
    paragraphs,
    formulas,
    tables: [...measured, { caption: 'Classes: the fee, and the defaults for missing data', columns, rows }],
    limits: [
      'The estimate is an expectation for one order in an ordinary market. It is not a quote: the book may move before your order arrives.',
      'Turnover and book come from one venue. An order routed to several venues pays less.',
      'The coefficients were not fitted to your orders. Orders on signals that others trade too cost more.',
      'Volatility and turnover of a perpetual are those of its spot market. spot_proxy marks an estimate whose impact rests on that market: on its order book, or on its turnover. The price of a contract in Tether or USD Coin counts as dollars.',
      'Bars cannot show the spreads of liquid crypto markets, which are a hundredth of a basis point. Without a book they are overstated.',
    ],
    sources: [
      'Ardia, Guidotti and Kroencke, Efficient estimation of bid-ask spreads from open, high, low, and close prices, J. Financial Economics 161 (2024) 103916',
      'Almgren, Thum, Hauptmann and Li, Direct estimation of equity market impact, Risk (July 2005)',
      'Donier and Bonart, A million metaorder analysis of market impact on the Bitcoin, Market Microstructure and Liquidity 1 (2015)',
      'Sato and Kanazawa, a complete survey of the Tokyo Stock Exchange, arXiv 2411.13965 (2024)',
      'Garman and Klass, On the estimation of security price volatilities from historical data, J. Business 53 (1980)',
    ],
  }
}
