import Papa from 'papaparse'
import { bareOf, isDecimalComma, isDecimalPoint } from './cells.ts'

/** How a file writes numbers and dates. */
export interface Writing {
  /** The decimal mark; `either` where the file does not say and commas do not separate its cells. */
  readonly mark: 'point' | 'comma' | 'either'
  /** Whether 3/4/2024 is in April; null where the file does not say. */
  readonly dayFirst: boolean | null
}

const PIECE = 65_536
const DAY_AND_MONTH = /^(\d\d?)([/-])(\d\d?)\2\d\d/

/**
 * Tells from cells how their file is written. A number such as 95,10 or 1.234,5 has a decimal comma for certain, 95.10 a
 * point, and 1,234 or 1.234 say nothing; a date such as 31/1/2024 has its day first, 1/31/2024 its month.
 *
 * @example writingOf([['SAP', '1.000', '95,10', '31/01/2024']], ';') // { mark: 'comma', dayFirst: true }
 */
export function writingOf(rows: readonly (readonly string[])[], delimiter: string): Writing {
  const counts = { comma: 0, point: 0, day: 0, month: 0 }
  for (const cells of rows)
    for (const cell of cells) {
      const bare = bareOf(cell)
      if (isDecimalComma(bare)) counts.comma += 1
      else if (isDecimalPoint(bare)) counts.point += 1
      const [, first, , second] = DAY_AND_MONTH.exec(cell.trim()) ?? []
      if (Number(first) > 12) counts.day += 1
      if (Number(second) > 12) counts.month += 1
    }
  const isComma = counts.comma > 0 && counts.point === 0
  const isPoint = delimiter === ',' || (counts.point > 0 && counts.comma === 0)
  const isSaid = counts.day > 0 !== counts.month > 0
  return {
    mark: isComma ? 'comma' : isPoint ? 'point' : 'either',
    // Whoever writes a decimal comma writes no month first.
    dayFirst: isSaid ? counts.day > 0 : isComma && counts.day === 0 ? true : null,
  }
}

/** The same from the beginning, the middle and the end of a CSV file. */
export function writingOfCsv(bytes: Buffer, delimiter: string): Writing {
  const starts = [0, Math.floor((bytes.length - PIECE) / 2), bytes.length - PIECE].filter((start) => start >= 0)
  const rows = (starts.length === 0 ? [0] : starts).flatMap((start) => {
    const lines = bytes
      .subarray(start, start + PIECE)
      .toString('utf8')
      .split(/\r\n?|\n/)
    // The header, or what is left of a line; and the line that the piece ends in.
    const whole = lines.slice(1, start + PIECE < bytes.length ? -1 : undefined)
    return Papa.parse<string[]>(whole.join('\n'), { delimiter }).data
  })
  return writingOf(rows, delimiter)
}
