/**
 * Sample bars that behave like a market. They are a pure function of symbol and minute: every process and every restart
 * sees the same bars, and a longer history never changes a shorter one. Returns have heavy tails. Log volatility is the
 * sum of a fast, a daily and a monthly component, with shocks, a daily cycle and quiet weekends.
 *
 * The path is computed day by day. The state at each midnight is kept, so reading one day costs one day of work.
 */
import { seedOf } from '../lib/feeds/sample-numbers.ts'
import { roundTo } from '../lib/quant/rounding.ts'
import { CLOSED, createColumns, type Columns } from './bars.ts'
import { sessionOf } from './trading-session.ts'

export interface SampleSymbol {
  readonly symbol: string
  /** Price at the start of the sample. */
  readonly price: number
  /** Volatility a year, as a fraction. */
  readonly volatility: number
  /** Turnover of a day, in the quote currency. */
  readonly turnover: number
  readonly tick: number
  /** `us_equity`: the regular session in New York; `24x7`: every minute. */
  readonly session: '24x7' | 'us_equity'
}

/** First minute of the sample: half a year before the first snapshot sold, so that models start warm. */
export const SAMPLE_START = Date.UTC(2025, 7, 5) / 1000

const DAY = 86_400
const MINUTES_A_DAY = 1440
/** Mean reversion of the log price per minute: a half-life of 150 days. */
const REVERSION = 1 - 2 ** (-1 / (150 * MINUTES_A_DAY))

/** A component of log volatility: mean-reverting, with this half-life and this standard deviation. */
const part = (halfLifeMinutes: number, deviation: number): { keep: number; noise: number } => {
  const keep = 2 ** (-1 / halfLifeMinutes)
  return { keep, noise: deviation * Math.sqrt(1 - keep * keep) }
}
const FAST = part(20, 0.42)
const DAILY = part(20, 0.33)
const MONTHLY = part(24 * 12, 0.32)
/** Minute-to-minute noise of the log volatility: fat tails without memory. */
const ROUGH = 0.5
/** Chance per minute of a news shock, which raises log volatility. */
const NEWS = 1 / (2.2 * MINUTES_A_DAY)
/** Correction for the mean of exp(2x) over all components, so that the bars have the configured volatility. */
const LEVEL = 0.42 ** 2 + 0.33 ** 2 + 0.32 ** 2 + ROUGH ** 2 + 0.26

/** Enough decimals for a price or a volume of any symbol. */
export const DECIMALS = 8
/** Size of the overnight gap, in standard deviations of a minute. */
const OVERNIGHT = 9

/** The state of the path: log price, and the components of log volatility. */
interface Walk {
  price: number
  fast: number
  daily: number
  monthly: number
}

/** The numbers of each draw of a minute, for the hash. A normal number takes a draw and the one after it. */
const DRAWS = Int32Array.from({ length: 32 }, (_, draw) => Math.imul(draw, 0x85ebca77))

/** What all draws of a minute share. */
function minuteHash(seed: number, minute: number): number {
  return seed ^ Math.imul(minute, 0x9e3779b1)
}

/**
 * A uniform number in (0, 1): a 32-bit hash of symbol, minute and draw, given `minuteHash` of the first two. Finaliser of
 * MurmurHash3 (Appleby, public domain).
 */
function uniformAt(seed: number, shared: number, draw: number): number {
  let h = shared ^ DRAWS[draw]!
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  h = Math.imul(h ^ (h >>> 16) ^ seed, 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return ((h ^ (h >>> 16)) >>> 0) / 4294967296 + 1 / 8589934592
}

/** A standard normal number by the method of Box and Muller, from the draws `draw` and `draw + 1`. */
function normalAt(seed: number, shared: number, draw: number): number {
  return (
    Math.sqrt(-2 * Math.log(uniformAt(seed, shared, draw))) * Math.cos(2 * Math.PI * uniformAt(seed, shared, draw + 1))
  )
}

/** How far the high or the low of a Brownian bridge of `move` is beyond its ends, from its exact distribution at `u`. */
function reach(move: number, deviation: number, u: number): number {
  return Math.sqrt(move ** 2 - 2 * deviation * deviation * Math.log(u))
}

/** The price of a log price, on the grid of ticks. */
function priceOf(log: number, tick: number): number {
  return roundTo(Math.round(Math.exp(log) / tick) * tick, DECIMALS)
}

export interface SampleBars {
  /** The bars that open in [from, to), epoch seconds. */
  read(from: number, to: number): Columns
  /** The last midnight walked so far, epoch seconds. */
  walkedTo(): number
  /** The states at the midnights walked so far, for `createSampleBars` of a later process. */
  midnights(): Buffer
}

/** Numbers of a walk: price, fast, daily, monthly. */
const STATE = 4

/**
 * Creates the sample of one symbol. With `walked`, the midnights of an earlier process, it continues from there. They
 * are ignored if they belong to other parameters: then the last of them does not follow from the one before.
 */
export function createSampleBars(symbol: SampleSymbol, walked?: Buffer): SampleBars {
  const seed = seedOf(symbol.symbol)
  const always = symbol.session === '24x7'
  const sessionMinutes = always ? 365 * MINUTES_A_DAY : 252 * 390
  const perMinute = symbol.volatility / Math.sqrt(sessionMinutes)
  const anchor = Math.log(symbol.price)
  const midnights: Walk[] = [{ price: anchor, fast: 0, daily: 0, monthly: 0 }]

  const walkDay = (
    day: number,
    add: ReturnType<typeof createColumns>['add'] | null,
    from: number,
    to: number,
  ): Walk => {
    let { price, fast, daily, monthly } = midnights[day]!
    const start = SAMPLE_START + day * DAY
    const hours = always ? { from: start, to: start + DAY } : sessionOf(start)
    const quiet = always ? quietness(start) : 0
    // A bar opens where the one before it closed, but after a night.
    let [pricedLog, priced] = [NaN, NaN]
    for (let i = 0; i < MINUTES_A_DAY; i += 1) {
      const time = start + i * 60
      const minute = minuteHash(seed, time / 60)
      if (i % 60 === 0) {
        daily = DAILY.keep * daily + DAILY.noise * normalAt(seed, minute, 20)
        monthly = MONTHLY.keep * monthly + MONTHLY.noise * normalAt(seed, minute, 22)
      }
      const news = uniformAt(seed, minute, 12) < NEWS ? 0.5 : 0
      fast = FAST.keep * fast + FAST.noise * normalAt(seed, minute, 10)
      daily += news
      if (!hours || time < hours.from || time >= hours.to) continue
      const rough = ROUGH * normalAt(seed, minute, 2)
      const heat = fast + daily + monthly + (always ? TIME_OF_DAY[i]! - quiet : 0)
      const deviation = perMinute * Math.exp(heat + rough - LEVEL)
      if (!always && time === hours.from) price += deviation * OVERNIGHT * normalAt(seed, minute, 24)
      const open = price
      const move = deviation * normalAt(seed, minute, 0) * (news > 0 ? 6 : 1)
      price += move - REVERSION * (price - anchor)
      if (add === null || time < from || time >= to) continue
      const close = price
      const high = (open + close + reach(close - open, deviation, uniformAt(seed, minute, 4))) / 2
      const low = (open + close - reach(close - open, deviation, uniformAt(seed, minute, 5))) / 2
      const busy = Math.exp(0.9 * (heat + rough) + 0.5 * normalAt(seed, minute, 6) - 0.9)
      const volume = ((symbol.turnover / (sessionMinutes / 365)) * busy) / Math.exp(close)
      const opening = open === pricedLog ? priced : priceOf(open, symbol.tick)
      ;[pricedLog, priced] = [close, priceOf(close, symbol.tick)]
      add(
        time,
        opening,
        priceOf(high, symbol.tick),
        priceOf(low, symbol.tick),
        priced,
        roundTo(volume, DECIMALS),
        CLOSED,
      )
    }
    return { price, fast, daily, monthly }
  }

  /** Takes over the midnights of an earlier process. */
  const restore = (bytes: Buffer): void => {
    const numbers = new Float64Array(Uint8Array.from(bytes).buffer)
    const walks = Array.from({ length: numbers.length / STATE }, (_, day): Walk => {
      const [price = NaN, fast = NaN, daily = NaN, monthly = NaN] = numbers.subarray(day * STATE, (day + 1) * STATE)
      return { price, fast, daily, monthly }
    })
    const [first, last] = [walks[0], walks.at(-1)]
    if (walks.length < 2 || !isSame(first, midnights[0])) return
    midnights.splice(0, 1, ...walks)
    if (!isSame(walkDay(walks.length - 2, null, 0, 0), last)) midnights.splice(0, walks.length, { ...first! })
  }
  if (walked && walked.length % (8 * STATE) === 0) restore(walked)

  return {
    walkedTo: () => SAMPLE_START + (midnights.length - 1) * DAY,
    midnights() {
      const numbers = midnights.flatMap(({ price, fast, daily, monthly }) => [price, fast, daily, monthly])
      return Buffer.from(Float64Array.from(numbers).buffer)
    },
    read(from, to) {
      const first = Math.max(0, Math.floor((from - SAMPLE_START) / DAY))
      const last = Math.floor((to - 1 - SAMPLE_START) / DAY)
      const out = createColumns(Math.max(16, Math.ceil((to - Math.max(from, SAMPLE_START)) / 60)))
      for (let day = midnights.length - 1; day < first; day += 1) midnights[day + 1] = walkDay(day, null, 0, 0)
      for (let day = first; day <= last; day += 1) midnights[day + 1] = walkDay(day, out.add, from, to)
      return out.end()
    },
  }
}

function isSame(one: Walk | undefined, other: Walk | undefined): boolean {
  return (['price', 'fast', 'daily', 'monthly'] as const).every((name) => one?.[name] === other?.[name])
}

/** Log volatility by the minute of a day that trades around the clock: high around 15:30 UTC, low at night. */
const TIME_OF_DAY = Float64Array.from(
  { length: MINUTES_A_DAY },
  (_, minute) => 0.16 * Math.cos((2 * Math.PI * (minute * 60 - 15.5 * 3600)) / DAY),
)

/** By how much log volatility is lower on the day that begins at a time: weekends are quiet. */
function quietness(midnight: number): number {
  const weekday = Math.floor(midnight / DAY) % 7
  return weekday === 2 || weekday === 3 ? 0.22 : 0
}
