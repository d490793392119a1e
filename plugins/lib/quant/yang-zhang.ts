import { moments } from './moments.ts'
import type { Ohlc } from './ohlc.ts'

/**
 * Yang and Zhang's variance of returns per bar, free of drift and aware of opening jumps: the sample variance of
 * overnight returns, plus k of open-to-close returns, plus 1-k of the Rogers-Satchell range, k = 0.34/(1.34 + (n+1)/(n-1))
 * with n the bars after the first. Null below three bars.
 *
 * Source: Yang and Zhang, "Drift-independent volatility estimation based on high, low, open, and close prices", J.
 * Business 73 (2000) 477-491, eq. 7 and 10.
 *
 * @example yangZhangVariance({ open: [100, 101, 100], high: [102, 102, 102], low: [99, 100, 99], close: [101, 100, 101] })
 * // 0.000287962…
 */
export function yangZhangVariance({ open, high, low, close }: Ohlc): number | null {
  const count = open.length - 1
  if (count < 2) return null
  const overnight = new Float64Array(count)
  const session = new Float64Array(count)
  let range = 0
  for (let i = 1; i <= count; i += 1) {
    const [up, down, end] = [high, low, close].map((price) => Math.log(price[i]! / open[i]!)) as [
      number,
      number,
      number,
    ]
    overnight[i - 1] = Math.log(open[i]! / close[i - 1]!)
    session[i - 1] = end
    range += up * (up - end) + down * (down - end)
  }
  const weight = 0.34 / (1.34 + (count + 1) / (count - 1))
  const sample = (values: Float64Array): number => (moments(values).variance * count) / (count - 1)
  return sample(overnight) + weight * sample(session) + (1 - weight) * (range / count)
}
