/** Reads the recorded data beside the checkout, which is not part of the project. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'

const ROOT = resolve(import.meta.dirname, '../../../shared/data')

/** Whether the recorded data are present. */
export const isRecorded = existsSync(ROOT)

/** The names of the files in a folder of the recorded data that end in `ending`. */
export function recordedNames(folder: string, ending: string): string[] {
  return readdirSync(resolve(ROOT, folder)).filter((name) => name.endsWith(ending))
}

/** The text of a recorded file, decompressed if its name ends in .gz. */
export function readRecorded(name: string): string {
  const bytes = readFileSync(resolve(ROOT, name))
  return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
}

export interface Bar {
  t: number | string
  o: number | null
  h: number | null
  l: number | null
  c: number | null
  v: number | null
}

/** Reads a CSV file of bars with any header style. The first column, or the one after the symbol, is the time. */
export function readBarsFile(name: string): (Bar & { symbol: string | undefined })[] {
  const [header = '', ...lines] = readRecorded(name).trim().split('\n')
  const names = header.toLowerCase().replaceAll('"', '').trim().split(',')
  const at = (word: string): number => names.findIndex((column) => column === word || column.endsWith(`.${word}`))
  const [open, high, low, close, volume, symbol] = ['open', 'high', 'low', 'close', 'volume', 'symbol'].map(at) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const time = symbol === 0 ? 1 : 0
  return lines.map((line) => {
    const text = line.trim()
    const cells = (text.includes('"') ? text.replaceAll('"', '') : text).split(',')
    const moment = cells[time] ?? ''
    return {
      symbol: symbol === -1 ? undefined : cells[symbol],
      t: /^\d+$/.test(moment) ? Number(moment) : moment,
      o: numberOf(cells[open]),
      h: numberOf(cells[high]),
      l: numberOf(cells[low]),
      c: numberOf(cells[close]),
      v: numberOf(cells[volume]),
    }
  })
}

function numberOf(cell: string | undefined): number | null {
  return cell === undefined || cell === '' ? null : Number(cell)
}
