import { readBarTable, readInZone, zoneToRead } from '../lib/tables/bar-table.ts'
import type { Zone } from '../lib/time/time-zones.ts'
import { MAX_BARS, MIN_BARS, type ReadBars } from './bar-input.ts'
import { invalid } from './bar-places.ts'
import { readingOfTable } from './bar-reading.ts'

/**
 * Reads the bars of a CSV file of any vendor. Times without an offset are read in `zone`, or as UTC. Throws InvalidInput
 * that names the row or the column.
 */
export async function readBarFile(bytes: Buffer, zone: Zone | null): Promise<ReadBars> {
  const numbers: number[] = []
  const symbols = new Set<string>()
  const table = await readBarTable(bytes, { file: 'file', maxRows: MAX_BARS }, (bar) => {
    numbers.push(bar.time, bar.open, bar.high, bar.low, bar.close, bar.volume)
    symbols.add(bar.symbol)
  })
  const count = numbers.length / WIDTH
  if (count < MIN_BARS)
    throw invalid(['body', 'file'], `Has ${count} bars; send ${MIN_BARS} to ${MAX_BARS}.`, 'bar_count')
  if (symbols.size > 1) {
    const named = table.columns.find(({ used_as }) => used_as === 'symbol')?.name ?? ''
    const some = [...symbols].slice(0, 5).join(', ')
    const msg = `Has bars of ${symbols.size} instruments in the column ${JSON.stringify(named)}: ${some}. Send one at a time.`
    throw invalid(['body', 'file', 'header'], msg, 'several_instruments')
  }
  const column = (place: number): Float64Array =>
    Float64Array.from({ length: count }, (_, i) => numbers[i * WIDTH + place]!)
  const time = column(0)
  const wall = zoneToRead(table, 'file', zone)
  if (wall) readInZone(time, wall)
  const isWall = !table.zoned && !table.daily && table.zoneName === null
  const volume = column(5)
  const bars = {
    count,
    time: time.map((milliseconds) => milliseconds / 1000),
    open: column(1),
    high: column(2),
    low: column(3),
    close: column(4),
    volume: volume.some((value) => !Number.isNaN(value)) ? volume : null,
  }
  return { bars, reading: readingOfTable(table), isWall }
}

const WIDTH = 6
