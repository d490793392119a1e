/** Every product that takes times must read the same text as the same instant. */
import { expect } from 'chai'
import fc from 'fast-check'
import { createTimeReader } from '../../plugins/lib/tables/time-cells.ts'
import { readBazaar } from '../../plugins/directory/sources/bazaar.ts'
import { readHistory } from '../../plugins/funding/recorded-settlements.ts'
import { formatMilliseconds, requireEpochSeconds } from '../../plugins/lib/time/timestamps.ts'
import { parseRecording } from '../../plugins/market/bar-recordings.ts'
import { timeRange } from '../../plugins/potus/time-range.ts'
import { parseBarTime } from '../../plugins/qc/bar-times.ts'

const NOW = Date.UTC(2150, 0, 1)
const CELL = { file: 'file', row: 0, column: 'time' } as const
const BARS = { venue: 'test', symbol: 'X', interval_seconds: 60, clock: 'UTC' } as const

/** What each product reads, in whole seconds. */
const READERS: Readonly<Record<string, (text: string) => number | null>> = {
  'the audit of a ledger': (text) => floorSeconds(createTimeReader(null).read(text, CELL)),
  'the check of a series': (text) => floorSeconds((parseBarTime(text) ?? NaN) * 1000),
  'the regime history': (text) => requireEpochSeconds(text, 'start'),
  'the news feed': (text) => floorSeconds(timeRange({ start: text, end: NOW }, { asOf: NOW, longest: null }).from),
  'the directory of services': (text) =>
    readBazaar({ items: [{ resource: 'https://api.example.com/a', accepts: [], lastUpdated: text }] }, NOW / 1000)
      ?.listings[0]?.updated ?? null,
  'recorded funding rates': (text) =>
    floorSeconds((readHistory(`time,symbol,rate\n${text},X,0.1`).get('X')?.[0]?.time ?? NaN) * 1000),
  'recorded bars': (text) =>
    parseRecording(`timestamp,open,high,low,close,volume\n${text},1,1,1,1,1`, BARS).get('X')?.time[0] ?? null,
}

function floorSeconds(milliseconds: number | null): number | null {
  return milliseconds === null || Number.isNaN(milliseconds) ? null : Math.floor(milliseconds / 1000)
}

/**
 * One instant in every notation that all products take. It is after 1973-03-03, from when on milliseconds can be told
 * from seconds. Nanoseconds stop short of the next second, because some products keep seconds as a double, which rounds
 * up in the last quarter of a microsecond.
 */
const notations = fc
  .record({ seconds: fc.integer({ min: 100_000_000, max: 4_000_000_000 }), nanoseconds: fc.nat(999_999_000) })
  .map(({ seconds, nanoseconds }) => {
    const digits = String(nanoseconds).padStart(9, '0')
    const date = formatMilliseconds(seconds * 1000).slice(0, 19)
    return {
      seconds,
      texts: [
        String(seconds),
        `${seconds}${digits.slice(0, 3)}`,
        `${seconds}${digits.slice(0, 6)}`,
        `${seconds}${digits}`,
        `${date}Z`,
        `${date}.${digits.slice(0, 1)}Z`,
        `${date}.${digits}0Z`,
        `${date}+00:00`,
        `${date}+0000`,
        date.replace('T', ' '),
        `${date.replace('T', ' ')} UTC`,
      ],
    }
  })

describe('the timestamps of all products', () => {
  for (const [product, read] of Object.entries(READERS))
    it(`mean the same instant in ${product}`, () => {
      fc.assert(
        fc.property(notations, ({ seconds, texts }) => {
          for (const text of texts) expect(read(text), text).to.equal(seconds)
        }),
      )
    })

  it('are milliseconds from 100,000,000,000 on, and seconds below', () => {
    for (const [product, read] of Object.entries(READERS)) expect(read('100000000000'), product).to.equal(100_000_000)
  })
})
