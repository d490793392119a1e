/** Which digits a number of an answer may have, by what its name says, and inputs that draw awkward numbers. */
import fc from 'fast-check'

/** A number that is published with more digits than its kind has, as `path value`. */
export function overlongNumbers(answer: unknown): string[] {
  return numbersIn(answer).flatMap(({ path, value }) => (isShort(value, path) ? [] : [`${path.join('.')} ${value}`]))
}

/** What venues, files and callers write keeps their digits, but never the noise of a division. */
const AS_WRITTEN = 12
const COMPUTED = 6

/** Names of single numbers that callers, files or venues wrote, or that lie on the grid of a price. */
const WRITTEN =
  /^(?:price|low|high|open|close|volume|qty|tick|factor|observed|expected|beyond|levels|bids|asks|from|to|.*_price|capital|contract_size|value|limit|rate.*|.*_rate|.*apr|apy|.*_8h|notional_usd|amount|.*_minutes|rows|bars)$/
const PRICES = /^(?:prices?_usd|amount_usd|max_price_usd|old_price_usd|new_price_usd)$/
const PROBABILITIES = /^(?:confidence|coverage|fill_probability|accuracy|brier|ece|score)$/

function isShort(value: number, path: readonly string[]): boolean {
  if (Number.isInteger(value)) return true
  // `range_bps: { p10, p90 }` and `prices_usd: { "GET /": 0.01 }` say what they are one level above.
  const names = path.slice(-2).toReversed()
  const is = (form: RegExp) => names.some((name) => form.test(name))
  if (is(/_bps(?:_|$)/)) return decimalsOf(value) <= 2 || (Math.abs(value) < 1 && digitsOf(value) <= 3)
  if (is(PRICES)) return decimalsOf(value) <= 6
  if (is(PROBABILITIES)) return decimalsOf(value) <= 4 || (value < 0.01 && digitsOf(value) <= 3)
  if (is(WRITTEN)) return digitsOf(value) <= AS_WRITTEN
  if (is(/_usd$/)) return decimalsOf(value) <= 2
  return digitsOf(value) <= COMPUTED || (path.includes('money') && (decimalsOf(value) <= 2 || digitsOf(value) <= 8))
}

function numbersIn(value: unknown, path: readonly string[] = []): { path: readonly string[]; value: number }[] {
  if (typeof value === 'number') return [{ path, value }]
  if (typeof value !== 'object' || value === null) return []
  // A place in a list is no name.
  return Object.entries(value).flatMap(([name, child]) =>
    numbersIn(child, Array.isArray(value) ? path : [...path, name]),
  )
}

/** Significant digits of a number as JSON writes it. */
const digitsOf = (value: number): number =>
  value
    .toExponential()
    .replace(/e.*/, '')
    .replaceAll(/[-.]|0+$/g, '').length

/** Digits after the point: 0.00012 has five. */
function decimalsOf(value: number): number {
  const [digits = '', exponent] = value.toExponential().split('e')
  return Math.max(0, (digits.split('.')[1] ?? '').length - Number(exponent))
}

const side = fc.constantFrom('buy', 'sell')
const order = {
  symbol: fc.constantFrom('BTC-USD', 'ETH-USD', 'BTC-USD-PERP', 'AAPL', 'SPY'),
  side,
  notional_usd: fc.double({ min: 1, max: 1e8, noNaN: true }).map((usd) => Math.round(usd * 100) / 100),
  order_type: fc.constantFrom('market', 'limit', 'twap', 'vwap', 'pov'),
}

/** Files of trades at prices in cents, with the quantities and returns of a sevenfold split. */
const ledgers = fc
  .array(fc.tuple(fc.integer({ min: 500, max: 90_000 }), fc.integer({ min: -900, max: 1000 }), fc.nat(700)), {
    minLength: 5,
    maxLength: 60,
  })
  .map((trades) =>
    [
      'symbol,side,qty,entry_time,entry_price,exit_time,exit_price',
      ...trades.map(([cents, change, qty], index) => {
        const [entry, exit] = [2 * index, 2 * index + 1].map((day) =>
          new Date(Date.UTC(2023, 0, 2 + day)).toISOString().slice(0, 10),
        )
        const left = Math.max(1, cents + Math.round((cents * change) / 1e4))
        return `ACME,${qty % 2 ? 'long' : 'short'},${(qty + 1) / 7},${entry},${cents / 100},${exit},${left / 100}`
      }),
    ].join('\n'),
  )

const bars = fc
  .array(fc.tuple(fc.integer({ min: 900, max: 1100 }), fc.nat(30), fc.nat(30), fc.nat(1e6)), {
    minLength: 5,
    maxLength: 80,
  })
  .map((rows) =>
    rows.map(([open, up, down, volume], index) => {
      const [level, day] = [index % 11 === 9 ? open * 3 : open, new Date(Date.UTC(2024, 0, 2 + index))]
      return [day.toISOString(), ...[level, level + up, level - down, level + up - down].map((c) => c / 100), volume]
    }),
  )

/** Requests of the operations whose answers are computed from what the caller sends. */
export const DRAWN: Readonly<Record<string, fc.Arbitrary<{ readonly query?: object; readonly body?: unknown }>>> = {
  estimateExecutionCost: fc
    .record(
      {
        ...order,
        limit_price: fc.integer({ min: 5_000_000, max: 12_000_000 }).map((cents) => cents / 100),
        horizon_minutes: fc.integer({ min: 1, max: 3000 }),
        participation_rate: fc.integer({ min: 1, max: 100 }).map((share) => share / 300),
        largest_within_bps: fc.integer({ min: 1, max: 400 }).map((tenths) => tenths / 10),
        include_book: fc.boolean(),
      },
      { requiredKeys: ['symbol', 'side', 'notional_usd', 'order_type'] },
    )
    .map((body) => ({ body })),
  preflightTrade: fc
    .record(
      {
        ...order,
        limit_price: fc.integer({ min: 5_000_000, max: 12_000_000 }).map((cents) => cents / 100),
        account_equity_usd: fc.integer({ min: 1000, max: 1e9 }),
        max_cost_bps: fc.integer({ min: 1, max: 100 }),
        horizon_minutes: fc.integer({ min: 1, max: 3000 }),
      },
      { requiredKeys: ['symbol', 'side', 'notional_usd', 'order_type'] },
    )
    .map((body) => ({ body })),
  auditBacktest: fc
    .record({ file: ledgers, n_trials: fc.integer({ min: 1, max: 1000 }), extra_bps: fc.integer({ min: 0, max: 9 }) })
    .map((body) => ({ body })),
  checkBarQuality: fc.record({ bars, repair: fc.boolean() }).map((body) => ({ body })),
  getPerpFundingRates: fc
    .record({
      min_abs_apr: fc.integer({ min: 0, max: 30 }).map((percent) => percent / 100),
      limit: fc.nat(99).map((n) => n + 1),
    })
    .map((query) => ({ query })),
}
