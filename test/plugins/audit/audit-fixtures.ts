/**
 * Audits, daily bars and trades for tests. `ask` runs the real bar-quality product; the service has no bars unless a test
 * provides them.
 */
import { type Audit, audit, type AuditRequest } from '../../../plugins/audit/audit.ts'
import { nyseClosed } from '../../../plugins/lib/time/nyse-calendar.ts'
import { ask as askBench } from './audit-figures.ts'
import type { Trip } from './ledger-layouts.ts'
import type { Ask } from '../../../gateway/plugin/plugin.ts'

export const NOW = new Date('2026-11-20T00:00:00Z')
export const ROUND_TRIPS = 'symbol,side,qty,entry_time,entry_price,exit_time,exit_price'

type Options = Partial<Omit<AuditRequest, 'file' | 'bars'>> & {
  readonly bars?: string | Buffer
  readonly ask?: Ask
  readonly unfit?: string | null
}

/** Audits a file given as text, bytes or lines. */
export async function auditOf(file: string | Buffer | readonly string[], options: Options = {}): Promise<Audit> {
  const { bars, ask = askBench, unfit = null, ...rest } = options
  const bytes = Buffer.isBuffer(file) ? file : Buffer.from(typeof file === 'string' ? file : `${file.join('\n')}\n`)
  const request: AuditRequest = {
    preset: 'large_cap',
    trials: 10,
    extraBps: 0,
    symbol: undefined,
    ...rest,
    file: bytes,
    bars: bars === undefined ? undefined : Buffer.from(bars),
  }
  return audit(request, { ask, asOf: NOW, unusableReason: unfit })
}

/** Returns "row code leg" for each finding. */
export function findingsOf(report: Audit): string[] {
  return report.fills.findings.map(({ row, code, leg }) =>
    [row, code, leg].filter((part) => part !== undefined).join(' '),
  )
}

export interface Day {
  readonly day: string
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: number
}

/** Daily bars of one stock with random prices in cents, from a Monday on, without weekends and holidays. */
export function makeDays(count: number, seed = 1): Day[] {
  const random = seededUniform(seed)
  const list: Day[] = []
  let price = 100
  for (let time = Date.UTC(2018, 0, 8); list.length < count; time += 86_400_000) {
    const day = new Date(time).toISOString().slice(0, 10)
    if (nyseClosed(day) !== null) continue
    const open = cents(price * (1 + (random() - 0.5) * 0.01))
    const close = cents(open * (1 + (random() - 0.5) * 0.03))
    const high = cents(Math.max(open, close) + 0.3 + random())
    const low = cents(Math.min(open, close) - 0.3 - random())
    list.push({ day, open, high, low, close, volume: 1_000_000 })
    price = close
  }
  return list
}

export const cents = (price: number): number => Math.round(price * 100) / 100

/** Random numbers in [0, 1) that are the same in every run. */
export function seededUniform(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x7fffffff
  }
}

export function barsText(days: readonly Day[], symbol = 'ACME'): string {
  const lines = days.map(({ day, open, high, low, close, volume }) =>
    [symbol, day, open, high, low, close, volume].join(','),
  )
  return ['symbol,date,open,high,low,close,volume', ...lines, ''].join('\n')
}

/** Consecutive trades of three days, filled inside their bars but not at the open, high or low. */
export function makeTrades(list: readonly Day[], seed = 2): Trip[] {
  const next = seededUniform(seed)
  const inside = ({ high, low }: Day): number => cents(low + (high - low) * (0.2 + 0.6 * next()))
  return Array.from({ length: Math.floor(list.length / 4) }, (_, i) => {
    const [entry, exit] = [list[4 * i]!, list[4 * i + 3]!]
    return {
      symbol: 'ACME',
      sign: next() < 0.5 ? -1 : 1,
      qty: 100,
      entryTime: entry.day,
      entryPrice: inside(entry),
      exitTime: exit.day,
      exitPrice: inside(exit),
    }
  })
}

export function tradeLine({ symbol, sign, qty, entryTime, entryPrice, exitTime, exitPrice }: Trip): string {
  return [symbol, sign === 1 ? 'long' : 'short', qty, entryTime, entryPrice, exitTime, exitPrice].join(',')
}
