/** Recorded settlements of Binance: what was paid, and the interval by the gaps between payments. */
import type { Excluded, FundingRate } from './funding-rate.ts'
import { decimalOf, splitPair, symbolOf } from './payload-values.ts'
import type { Parsed } from './venues/venue.ts'
import { epochSeconds, PAYLOAD_RULES } from '../lib/time/timestamps.ts'

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

/** Recorded tables: a line of names, then rows. Who wrote one may have ordered and named its columns otherwise. */

/** Names in small letters without anything between them: fundingTime and funding_time are one. */
const COLUMNS = {
  time: ['timestamp', 'time', 'ts', 'fundingtime', 'datetime', 'date', 'capturedat'],
  instrument: ['symbol', 'coin', 'instrument', 'contract', 'name', 'market'],
  rate: ['fundingrate', 'lastfundingrate', 'funding', 'rate'],
  markPrice: ['markprice', 'markpx', 'mark'],
} as const

export type Column = keyof typeof COLUMNS
export type TableRow = Readonly<Record<Column, string>>

/** Rows with the cells that are known; one that is not there is empty. No rows where a needed column is missing. */
export function readTable(csv: string): TableRow[] {
  const [head = [], ...rows] = csv
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map(cellsOf)
  const names = head.map((name) => name.toLowerCase().replace(/[^a-z]/g, ''))
  const place = (column: Column): number => {
    const known: readonly string[] = COLUMNS[column]
    return names.indexOf(known.find((name) => names.includes(name)) ?? '?')
  }
  const [time, instrument, rate, markPrice] = [place('time'), place('instrument'), place('rate'), place('markPrice')]
  if (time < 0 || instrument < 0 || rate < 0) return []
  return rows.map((cells) => ({
    time: cells[time] ?? '',
    instrument: cells[instrument] ?? '',
    rate: cells[rate] ?? '',
    markPrice: cells[markPrice] ?? '',
  }))
}

const cellsOf = (line: string): string[] => line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))

const HOUR = 3600
/** Settlements are stamped up to some seconds late. */
const JITTER = 0.02
/** Gaps that must agree, counted back from the newest. */
const AGREEING = 2

/**
 * Hours between the settlements of an instrument, from the newest gaps: an interval may change, and old gaps tell of the
 * old one. A missing settlement makes a gap longer, never shorter: so a newest gap that is shorter than the one before
 * is the interval, and a longer one counts once another agrees. Null where nothing agrees.
 *
 * @param times epoch seconds, ascending
 * @example intervalOf([0, 28800.007, 57600.009]) // 8
 */
export function intervalOf(times: readonly number[]): number | null {
  const gaps = times
    .slice(1)
    .map((time, i) => (time - times[i]!) / HOUR)
    .filter((gap) => Math.round(gap) >= 1 && Math.abs(gap - Math.round(gap)) <= JITTER)
    .map(Math.round)
    .reverse()
  const [newest, before] = gaps
  if (newest !== undefined && before !== undefined && newest < before) return newest
  const seen = new Map<number, number>()
  for (const gap of gaps) {
    const count = (seen.get(gap) ?? 0) + 1
    if (count >= AGREEING) return gap
    seen.set(gap, count)
  }
  return null
}
