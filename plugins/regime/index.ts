/**
 * The regime plugin: one snapshot per minute and market, sold as current value and as history, and free with a day's delay.
 */
import type { DataMode } from 'tollgate/plugin'
import {
  type Ask,
  type CallOf,
  definePlugin,
  type Facts,
  type Freshness,
  type FreshnessInput,
  type FreshnessTools,
  InvalidInput,
  NotFound,
  type PluginContext,
  type Reply,
  type WatchedInput,
} from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { createSymbolIndex, pairName, type SymbolIndex } from '../lib/symbol-names.ts'
import type { Method, RegimeCoverage, RegimeHistory, Snapshot as RegimeSnapshot } from '../../schemas/types.d.ts'
import { CatchUpTurns } from './classifier.ts'
import { type GradedMarket, MarketRegime } from './market-regime.ts'
import { methodology } from './regime-methodology.ts'
import { migrations } from './snapshots.ts'

/** Memory for the history of a market that is not the default: about ten days of minutes. */
const OTHER_BLOCK_BYTES = 4 * 2 ** 20
/** How long the spellings of symbols are remembered. */
const SPELLINGS_MS = 60_000

export default definePlugin({
  name: 'regime',
  migrations,
  settings: {
    type: 'object',
    additionalProperties: false,
    required: ['symbol', 'since'],
    properties: {
      symbol: { type: 'string', description: 'The market of a call that names none.' },
      symbols: {
        type: 'array',
        items: { type: 'string' },
        uniqueItems: true,
        default: [],
        description: 'Further markets to classify, online only: a sample or a recording has the first one.',
      },
      since: {
        type: 'string',
        format: 'date-time',
        description: 'Time of the first snapshot to keep. Earlier bars only warm up the model.',
      },
    },
  },
  setup(context) {
    const { symbol, symbols } = context.settings
    const regimes = new Regimes(context, [...new Set([symbol, ...symbols])])
    return {
      handlers: {
        getRegimeSample: (call) => regimes.latest(call),
        getRegimeCurrent: (call) => regimes.latest(call),
        getRegimeHistory: (call) => regimes.history(call),
        getRegimeCoverage: ({ ask }) => regimes.coverage(ask),
        getRegimeMethod: () => regimes.method(),
      },
      // Every ten seconds, so that a snapshot follows soon after its minute. A run without new bars is cheap.
      jobs: regimes.all.map((regime) => ({
        name: regime === regimes.main ? 'classify' : `classify ${regime.symbol}`,
        everySeconds: 10,
        run: ({ ask, signal }) => regimes.classify(regime, ask, signal),
      })),
      freshness: (request, asOf, tools) => regimes.freshness(request, asOf, tools),
      watched: (_, { ask }) => regimes.watched(ask),
      facts: () => regimes.facts(),
      stop: () => regimes.stop(),
    }
  },
})

interface Spellings {
  readonly index: SymbolIndex
  /** Symbols with bars. */
  readonly covered: ReadonlySet<string>
  /** Spellings of symbols that trade in sessions. */
  readonly equities: ReadonlySet<string>
}

/** The regimes of all markets. */
class Regimes {
  readonly main: MarketRegime
  readonly all: readonly MarketRegime[]
  readonly #dataMode: DataMode
  /** Every market of the settings, also those that these data do not have. */
  readonly #symbols: readonly string[]
  readonly #log: PluginContext['log']
  #spellings: { readonly at: number; readonly read: Promise<Spellings> } | null = null
  /** Runs while the other markets are graded. */
  #grading: Promise<void> | null = null
  #isStopped = false

  constructor(context: PluginContext, symbols: readonly string[]) {
    const turns = new CatchUpTurns()
    this.#dataMode = dataSettings(context).dataMode
    this.#log = context.log
    this.#symbols = symbols
    this.main = new MarketRegime(context, symbols[0]!, { turns })
    const others = this.#dataMode === 'online' ? this.#symbols.slice(1) : []
    const parts = { turns, blockBytes: OTHER_BLOCK_BYTES }
    this.all = [this.main, ...others.map((other) => new MarketRegime(context, other, parts))]
  }

  latest(call: CallOf<'getRegimeCurrent'>): Reply<RegimeSnapshot> | Promise<Reply<RegimeSnapshot>> {
    const { symbol } = call.input.query
    if (symbol === undefined) return this.main.latest(call)
    return this.#of(symbol, call.ask).then((regime) => regime.latest(call))
  }

  async history(call: CallOf<'getRegimeHistory'>): Promise<Reply<RegimeHistory>> {
    const { symbol } = call.input.query
    return (symbol === undefined ? this.main : await this.#of(symbol, call.ask)).history(call)
  }

  async coverage(ask: Ask): Promise<RegimeCoverage> {
    const { covered } = await this.#spelled(ask)
    const kept = this.all.filter(({ symbol }) => covered.has(symbol))
    return { symbols: await Promise.all(kept.map((regime) => regime.coverage())) }
  }

  /** Classifies a market, if there are bars of it: its venues may not be enabled. */
  async classify(regime: MarketRegime, ask: Ask, signal: AbortSignal): Promise<void> {
    const isCovered = regime === this.main || (await this.#spelled(ask)).covered.has(regime.symbol)
    if (isCovered) await regime.classify(ask, signal)
  }

  freshness(
    { operation, query }: FreshnessInput<'regime'>,
    asOf: Date,
    tools: FreshnessTools,
  ): Freshness | null | Promise<Freshness | null> {
    if (operation !== 'getRegimeCurrent' && operation !== 'getRegimeHistory') return null
    const reported = (regime: MarketRegime): Freshness | Promise<Freshness> =>
      operation === 'getRegimeCurrent' ? regime.freshness(tools, asOf) : regime.historyFreshness(query, tools, asOf)
    return query.symbol === undefined ? reported(this.main) : this.#of(query.symbol, tools.ask).then(reported)
  }

  /** The markets beside the default one, as far as there are bars of them. */
  async watched(ask: Ask): Promise<readonly WatchedInput[]> {
    if (this.#others.length === 0) return []
    const { covered } = await this.#spelled(ask)
    return this.#others.flatMap(({ symbol }) => (covered.has(symbol) ? [{ query: { symbol } }] : []))
  }

  /** The grades of the default market, and how far the others reach, with their grades once these are known. */
  async facts(): Promise<Facts> {
    const grades = await this.main.facts()
    if (this.#others.length === 0) return grades
    this.#grading ??= this.#gradeOthers().finally(() => (this.#grading = null))
    return { ...grades, others: await this.#gradedOthers() }
  }

  /** How the regime is computed, and what the labels of each market were worth here. */
  async method(): Promise<Method> {
    if (this.#dataMode !== 'online') return methodology([])
    const main = { symbol: this.main.symbol, ...(await this.facts()) }
    const others = await this.#gradedOthers()
    return methodology([main, ...others.filter((market) => 'graded' in market)])
  }

  get #others(): readonly MarketRegime[] {
    return this.all.slice(1)
  }

  #gradedOthers(): Promise<readonly GradedMarket[]> {
    return Promise.all(this.#others.map((regime) => regime.graded()))
  }

  /** Grades the other markets, one after another. No call waits for it: the first time it reads ninety days of each. */
  async #gradeOthers(): Promise<void> {
    for (const regime of this.#others) {
      if (this.#isStopped) return
      try {
        await regime.facts()
      } catch (error) {
        this.#log.warn({ err: error, symbol: regime.symbol }, 'the labels of a market cannot be graded')
      }
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#grading
    await Promise.all(this.all.map((regime) => regime.stop()))
  }

  /** The regime of a market by any of its spellings. Throws NotFound if there is none, InvalidInput for an equity. */
  async #of(name: string, ask: Ask): Promise<MarketRegime> {
    const { index, covered, equities } = await this.#spelled(ask)
    if (equities.has(pairName(name)))
      throw new InvalidInput(
        `${name} trades in sessions. The model forecasts the next hour of markets that trade around the clock. Nothing was charged.`,
        ['query', 'symbol'],
      )
    const symbol = index.resolve(name)
    const found = this.all.find((regime) => regime.symbol === symbol)
    if (!found)
      throw new NotFound(
        `symbol: the regime of ${symbol} is collected online only; ${this.#dataMode} data have ${this.main.symbol} alone. Nothing was charged.`,
      )
    if (found !== this.main && !covered.has(symbol))
      throw new NotFound(`symbol: no bars of ${symbol} are collected here. Nothing was charged.`)
    return found
  }

  /** The spellings of the markets, and which of them have bars. */
  #spelled(ask: Ask): Promise<Spellings> {
    const now = performance.now()
    const known = this.#spellings
    if (known && now - known.at < SPELLINGS_MS) return known.read
    const read = this.#readSpellings(ask)
    this.#spellings = { at: now, read }
    read.catch(() => (this.#spellings = null))
    return read
  }

  async #readSpellings(ask: Ask): Promise<Spellings> {
    const { symbols } = await ask('getSymbols')
    const named = this.#symbols.map((symbol) => symbols.find((one) => one.symbol === symbol) ?? { symbol, aliases: [] })
    const equities = symbols.filter(({ session }) => session === 'us_equity')
    return {
      index: createSymbolIndex(named),
      covered: new Set(symbols.map(({ symbol }) => symbol)),
      equities: new Set(equities.flatMap(({ symbol, aliases }) => [symbol, ...aliases].map(pairName))),
    }
  }
}
