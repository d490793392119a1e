/**
 * Plants known defects in clean bars: one split, then `each` of every other defect. Defects are at least 12 bars apart and
 * 60 bars from the ends. Their size depends on the local scale, the 101-bar centred median of (high - low)/close, at least
 * 5e-4.
 */
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { centredMedian } from '../../../plugins/lib/quant/rolling-median.ts'
import type { Bar } from '../../support/recorded-data.ts'

export interface Defect {
  readonly family: 'impossible' | 'timestamp' | 'bad_print' | 'stale' | 'volume' | 'split'
  readonly type: string
  readonly tier?: string
  readonly length?: number
  readonly factor?: number
  /** Row of the corrupted bars. */
  readonly row: number
}

export interface Corrupted {
  readonly bars: Bar[]
  readonly truth: Defect[]
}

type CleanBar = { t: number; o: number; h: number; l: number; c: number; v: number }
type Mark = Omit<Defect, 'row'>

/** A bar, its defect, and a duplicate that follows it. */
interface Slot {
  bar: CleanBar
  mark?: Mark
  duplicate?: Slot
}

interface Tools {
  /** Null for a removed bar. */
  readonly slots: (Slot | null)[]
  readonly interval: number
  readonly scale: (at: number) => number
  readonly between: (low: number, high: number) => number
  readonly coin: () => boolean
  readonly pick: <Item>(items: readonly Item[]) => Item
}

/** Changes the bars from `at` on. Returns the mark to set, or null if it has set the mark itself. */
type Inject = (tools: Tools, at: number) => { readonly at: number; readonly mark: Mark } | null

const RATIOS = [2, 3, 1.5, 4, 5, 7, 10, 20, 1 / 4, 1 / 8, 1 / 10, 1 / 20]
type Tier = 'easy' | 'medium' | 'hard'
const TIERS: Readonly<Record<Tier, readonly [number, number]>> = { easy: [20, 60], medium: [10, 20], hard: [6, 10] }
const PRICES = ['o', 'h', 'l', 'c'] as const
const APART = 12
const MARGIN = 60
/** Length of the longest defect in rows. */
const REACH = 26

/** Corrupts a copy of the bars. Times must be epoch seconds. The same seed gives the same defects. */
export function corrupt(clean: readonly Bar[], each: number, seed: number, interval: number): Corrupted {
  const random = seededRandom(seed)
  const slots: (Slot | null)[] = clean.map((bar) => ({ bar: { ...bar } as CleanBar }))
  const ranges = clean.map(({ h, l, c }) => (h! - l!) / c!)
  const scales = centredMedian(ranges, 101)
  const tools: Tools = {
    slots,
    interval,
    scale: (at) => Math.max(5e-4, scales[at]!),
    between: (low, high) => low + random() * (high - low),
    coin: () => random() < 0.5,
    pick: (items) => items[Math.floor(random() * items.length)]!,
  }
  const injections = [split, ...Array.from({ length: each }, () => injectionsOf(interval)).flat()]
  const places = placesFor(injections.length, clean.length, random)
  for (const [index, inject] of injections.entries()) {
    const marked = inject(tools, places[index]!)
    if (marked) slots[marked.at]!.mark = marked.mark
  }
  const rows = slots.flatMap((slot) => (slot ? [slot, ...(slot.duplicate ? [slot.duplicate] : [])] : []))
  return {
    bars: rows.map(({ bar }) => bar),
    truth: rows.flatMap(({ mark }, row) => (mark ? [{ ...mark, row }] : [])),
  }
}

/** Places in random order, each with room for the longest defect plus twelve bars. */
function placesFor(count: number, length: number, random: () => number): number[] {
  const room = Math.floor((length - 2 * MARGIN) / (REACH + APART))
  if (room < count) throw new RangeError(`${length} bars have room for ${room} defects, not ${count}`)
  const cells = Array.from({ length: room }, (_, index) => index)
  for (let i = cells.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1))
    ;[cells[i], cells[j]] = [cells[j]!, cells[i]!]
  }
  const slack = (length - 2 * MARGIN) / room - REACH - APART
  return cells.slice(0, count).map((cell) => Math.floor(MARGIN + cell * (REACH + APART + slack) + random() * slack))
}

function injectionsOf(interval: number): Inject[] {
  const tiers = Object.keys(TIERS) as Tier[]
  const prints = tiers.flatMap((tier) => [wick('h', tier), wick('l', tier), close(tier)])
  const timed = interval < 86_400 ? [duplicate, swap, gap, offGrid] : [duplicate, swap]
  return [...prints, decimal, ...Object.keys(IMPOSSIBLE).map(impossible), stale, volume, ...timed]
}

const split: Inject = ({ slots, pick }, at) => {
  const factor = pick(RATIOS)
  for (const slot of slots.slice(0, at)) {
    for (const field of PRICES) slot!.bar[field] *= factor
    slot!.bar.v /= factor
  }
  return { at, mark: { family: 'split', type: 'unadjusted_split', factor } }
}

const wick =
  (side: 'h' | 'l', tier: Tier): Inject =>
  ({ slots, scale, between }, at) => {
    const { bar } = slots[at]!
    const size = Math.exp(between(...TIERS[tier]) * scale(at))
    if (side === 'h') bar.h = Math.max(bar.o, bar.c) * size
    else bar.l = Math.min(bar.o, bar.c) / size
    return { at, mark: { family: 'bad_print', type: side === 'h' ? 'bad_print_high' : 'bad_print_low', tier } }
  }

const close =
  (tier: Tier): Inject =>
  ({ slots, scale, between, coin }, at) => {
    const { bar } = slots[at]!
    const size = Math.exp(between(...TIERS[tier]) * scale(at))
    bar.c = coin() ? bar.c * size : bar.c / size
    bar.h = Math.max(bar.h, bar.c)
    bar.l = Math.min(bar.l, bar.c)
    return { at, mark: { family: 'bad_print', type: 'bad_print_close', tier } }
  }

const decimal: Inject = ({ slots, pick }, at) => {
  const factor = pick([10, 0.1, 100, 0.01])
  for (const field of PRICES) slots[at]!.bar[field] *= factor
  return { at, mark: { family: 'bad_print', type: 'decimal_shift', tier: 'decimal', factor } }
}

const outside = (bar: CleanBar, { between, coin }: Tools, scale: number): number =>
  coin() ? bar.h * (1 + between(0.5, 3) * scale) : bar.l * (1 - between(0.5, 3) * scale)

const IMPOSSIBLE: Readonly<Record<string, (bar: CleanBar, tools: Tools, scale: number) => void>> = {
  missing_value: (bar, { pick }) => {
    bar[pick(PRICES)] = null as unknown as number
  },
  nonpositive_price: (bar, { pick, coin }) => {
    bar[pick(PRICES)] *= coin() ? 0 : -1
  },
  high_lt_low: (bar, _, scale) => {
    ;[bar.h, bar.l] = [Math.min(bar.l, bar.h * (1 - scale / 4)), bar.h]
  },
  open_outside_range: (bar, tools, scale) => {
    bar.o = outside(bar, tools, scale)
  },
  close_outside_range: (bar, tools, scale) => {
    bar.c = outside(bar, tools, scale)
  },
  negative_volume: (bar) => {
    bar.v = -Math.max(1, bar.v)
  },
}

const impossible =
  (type: string): Inject =>
  (tools, at) => {
    IMPOSSIBLE[type]!(tools.slots[at]!.bar, tools, tools.scale(at))
    return { at, mark: { family: 'impossible', type } }
  }

const stale: Inject = ({ slots, between, coin }, at) => {
  const length = Math.floor(between(8, 25))
  const level = slots[at - 1]!.bar.c
  const isSilent = coin()
  for (const slot of slots.slice(at, at + length)) {
    for (const field of PRICES) slot!.bar[field] = level
    if (isSilent) slot!.bar.v = 0
  }
  return { at, mark: { family: 'stale', type: 'stale_run', length } }
}

const volume: Inject = ({ slots, between }, at) => {
  const largest = Math.max(...slots.slice(at - 10, at + 11).map((slot) => slot?.bar.v ?? 0))
  slots[at]!.bar.v = largest * between(50, 1000)
  return { at, mark: { family: 'volume', type: 'volume_outlier' } }
}

const duplicate: Inject = ({ slots, scale, between, coin }, at) => {
  const slot = slots[at]!
  const bar = { ...slot.bar }
  if (coin()) {
    bar.c *= 1 + between(-1, 1) * scale(at)
    bar.h = Math.max(bar.h, bar.c)
    bar.l = Math.min(bar.l, bar.c)
  }
  slot.duplicate = { bar, mark: { family: 'timestamp', type: 'duplicate_timestamp' } }
  return null
}

const swap: Inject = ({ slots }, at) => {
  ;[slots[at], slots[at + 1]] = [slots[at + 1]!, slots[at]!]
  return { at: at + 1, mark: { family: 'timestamp', type: 'out_of_order_timestamp' } }
}

const gap: Inject = ({ slots, between }, at) => {
  const length = Math.floor(between(3, 15))
  slots.fill(null, at, at + length)
  return { at: at + length, mark: { family: 'timestamp', type: 'gap', length } }
}

const offGrid: Inject = ({ slots, interval, between }, at) => {
  slots[at]!.bar.t += Math.max(1, Math.round(interval * between(0.2, 0.85)))
  return { at, mark: { family: 'timestamp', type: 'off_grid_timestamp' } }
}
