/** Reads recorded settlements of Binance. The gaps between settlements determine the funding interval. */
import type { Excluded, FundingRate } from './funding-rate.ts'
import { splitPair, symbolOf } from './contract-names.ts'
import { decimalOf } from './payload-numbers.ts'
import type { Parsed } from './venues/funding-venue.ts'
import { epochSeconds, PAYLOAD_RULES } from '../lib/time/timestamps.ts'

export interface Settlement {
  /** Epoch seconds. */
  readonly time: number
  readonly rate: string
}

/** Settlements by instrument, oldest first. */
export type History = ReadonlyMap<string, readonly Settlement[]>

/** Number of settlements to look back on: enough to find two equal gaps if some settlements are missing. */
const LOOKED_AT = 12

/** Reads a table with time, symbol and rate. Skips rows without them. */
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

/** The last settlement of each instrument at a time. An instrument whose gaps do not agree has no known interval. */
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

/* --- Recorded tables: a header and rows, with any order and naming of the columns. --- */

/** Accepted names, compared in lower case and letters only: fundingTime and funding_time are the same. */
const COLUMNS = {
  time: ['timestamp', 'time', 'ts', 'fundingtime', 'datetime', 'date', 'capturedat'],
  instrument: ['symbol', 'coin', 'instrument', 'contract', 'name', 'market'],
  rate: ['fundingrate', 'lastfundingrate', 'funding', 'rate'],
  markPrice: ['markprice', 'markpx', 'mark'],
} as const

type Column = keyof typeof COLUMNS
export type TableRow = Readonly<Record<Column, string>>

/** Reads the known columns of a table. A missing cell is empty; without a needed column there are no rows. */
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
/** Settlements carry times that are up to some seconds late. */
const JITTER = 0.02
/** How many of the newest gaps are compared. */
const AGREEING = 2

/**
 * Hours between the settlements of an instrument, from the newest gaps, because the interval may have changed. A missing
 * settlement makes a gap longer, never shorter. So a newest gap that is shorter than the one before is the interval, and
 * a longer one counts once another gap agrees. Null if no gaps agree.
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
