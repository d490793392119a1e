/** Execution cost: estimates the spread, impact and fees of an order, with all numbers behind the estimate. */
import { type Call, definePlugin, type Freshness, type FreshnessTools, Unavailable } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import type { CostEstimate, CostRequest, CostSymbols } from '../../schemas/types.d.ts'
import { costAnswer } from './cost-answer.ts'
import { marketBehind, type MarketClasses, perpetualOf, settingsSchema } from './market-classes.ts'
import { BOOK_SECONDS, gatherInputs } from './market-inputs.ts'
import { createBarHistory } from './bar-history.ts'
import { methodology } from './cost-methodology.ts'

export default definePlugin({
  name: 'cost',
  settings: settingsSchema,
  setup(context) {
    const { settings } = context
    const { dataMode } = dataSettings(context)
    const classes = settings['classes'] as MarketClasses
    const history = createBarHistory()

    async function estimateExecutionCost(call: Call<{ body: CostRequest }>): Promise<CostEstimate> {
      const { ask, asOf, catalog } = call
      const { body } = call.input
      const known = await gatherInputs(ask, body.symbol, asOf.getTime() / 1000, { classes, history, catalog })
      if (known.price === null)
        throw new Unavailable(`No price of ${known.symbol} is known yet. Nothing was charged.`, 30)
      return costAnswer(body, known, classes[known.className].fee_bps, dataMode)
    }

    async function getCostSymbols({ ask, asOf }: Call): Promise<CostSymbols> {
      const { symbols } = await ask('getSymbols', { params: {}, query: {}, body: undefined })
      const listed = symbols.map(async ({ symbol, name, aliases, session, intervals }) => {
        const { book } = await ask('getBook', { params: {}, query: { symbol }, body: undefined })
        const className = session === 'us_equity' ? ('equity' as const) : ('spot' as const)
        return {
          symbol,
          name,
          aliases,
          class: className,
          session,
          fee_bps: classes[className].fee_bps,
          perpetual: className === 'spot' ? perpetualOf(symbol) : null,
          bar_seconds: intervals,
          book: book !== null && asOf.getTime() / 1000 - book.time <= BOOK_SECONDS,
        }
      })
      return { count: symbols.length, symbols: await Promise.all(listed) }
    }

    /** An estimate is as fresh as the bars of the market behind it. */
    async function freshness(symbol: string, { freshnessOf }: FreshnessTools): Promise<Freshness | null> {
      const { market } = marketBehind(symbol)
      return freshnessOf('getMarketStatus', { params: {}, query: { symbol: market }, body: undefined })
    }

    return {
      handlers: { estimateExecutionCost, getCostSymbols, getCostMethod: () => methodology(classes) },
      freshness: ({ operation, body }, _, tools) =>
        operation === 'estimateExecutionCost' ? freshness((body as CostRequest).symbol, tools) : null,
      async watched(_, { ask }) {
        const { symbols } = await ask('getSymbols', { params: {}, query: {}, body: undefined })
        return symbols.map(({ symbol }) => ({ body: { symbol } }))
      },
    }
  },
})
