/** Bars of an invented market: a random walk with sixteen steps per bar, and volume that grows with the range. */
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'

export interface WalkBar {
  t: number
  o: number
  h: number
  l: number
  c: number
  v: number
}

export interface RandomWalkOptions {
  readonly count: number
  /** Seconds per bar. Default: 60. */
  readonly interval?: number
  readonly seed?: number
  /** Standard deviation of the return of a bar. */
  readonly volatility?: number
  /** Open times of the bars. Default: one per interval from 2024-01-03 00:00 UTC. */
  readonly times?: readonly number[]
}

export const START = Date.UTC(2024, 0, 3) / 1000

export function randomWalk({
  count,
  interval = 60,
  seed = 1,
  volatility = 0.001,
  times,
}: RandomWalkOptions): WalkBar[] {
  const random = seededRandom(seed)
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  let price = 100
  return Array.from({ length: count }, (_, i) => {
    const path = [price]
    for (let step = 0; step < 16; step += 1) path.push(path[step]! * Math.exp((volatility / 4) * normal()))
    price = path[16]!
    const [h, l] = [Math.max(...path), Math.min(...path)]
    const v = 1000 * Math.exp(0.4 * normal() + 0.5 * Math.log(Math.log(h / l) / (1.6 * volatility)))
    return { t: times?.[i] ?? START + i * interval, o: path[0]!, h, l, c: price, v }
  })
}

/** Returns the open times of daily bars on weekdays, from a day on. */
export function weekdays(from: string, count: number): number[] {
  const days: number[] = []
  for (let time = Date.parse(`${from}T00:00:00Z`) / 1000; days.length < count; time += 86_400)
    if (![0, 6].includes(new Date(time * 1000).getUTCDay())) days.push(time)
  return days
}
