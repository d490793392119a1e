/** Recorded settlements of Binance: what was paid, and the interval by the gaps between payments. */
import { epochSeconds, PAYLOAD_RULES } from '../lib/time/timestamps.ts'
import { decimalOf } from './decimal.ts'
import { intervalOf } from './interval.ts'
import type { Excluded, FundingRate } from './rate.ts'
import { splitPair, symbolOf } from './symbol.ts'
import { readTable } from './tables.ts'
import type { Parsed } from './venues/venue.ts'

export interface Settlement {
  /** Epoch seconds. */
  readonly time: number
  readonly rate: string
}

/** By instrument, oldest first. */
export type History = ReadonlyMap<string, readonly Settlement[]>

/** Gaps looked at: enough for two that agree where some settlements are missing. */
const LOOKED_AT = 12

/** Reads a table with time, symbol and rate. Rows that are none are left out. */
export function readHistory(csv: string): History {
  const history = new Map<string, Settlement[]>()
  for (const { instrument, ...row } of readTable(csv)) {
    const [time, rate] = [epochSeconds(row.time, PAYLOAD_RULES), decimalOf(row.rate)]
    if (instrument === '' || rate === null || time === null) continue
    const list = history.get(instrument) ?? []
    list.push({ time, rate })
    history.set(instrument, list)
  }
  for (const list of history.values()) list.sort((a, b) => a.time - b.time)
  return history
}

/** The last settlement of each instrument at a moment. One whose gaps agree on no interval is untold. */
export function settledAt(history: History, at: number): Parsed {
  const rates: FundingRate[] = []
  const untold: Excluded[] = []
  for (const [instrument, settlements] of history) {
    const before = settlements.filter(({ time }) => time <= at).slice(-LOOKED_AT)
    const last = before.at(-1)
    if (!last) continue
    const hours = intervalOf(before.map(({ time }) => time))
    if (hours === null) {
      untold.push({ instrument, rate: last.rate, reason: 'too few settlements to tell the interval' })
      continue
    }
    const { base, quote } = splitPair(instrument) ?? { base: instrument, quote: '' }
    const observed = Math.floor(last.time)
    rates.push({
      instrument,
      symbol: symbolOf(base),
      quote,
      settle: quote,
      contract: 'linear',
      rate: last.rate,
      intervalHours: hours,
      intervalSource: 'inferred',
      kind: 'settled',
      predictedRate: null,
      nextFunding: observed + hours * 3600,
      markPrice: null,
      indexPrice: null,
      observed,
    })
  }
  return { rates, untold }
}
