import Papa from 'papaparse'
import { InvalidInput } from 'tollgate/plugin'

/** Where a cell is, for error messages. */
export interface CellPlace {
  readonly file: 'file' | 'bars'
  /** 0-based data row. */
  readonly row: number
  /** The column as the header names it. */
  readonly column: string
}

const PLAIN = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i
/** "1,234" or "1,234.50". */
const GROUPED = /^[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$/
/** "1,21,650.50": Indian groups of two digits before the last three. */
const LAKHS = /^[+-]?[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d+)?$/
/** "1.234" or "1.234.567": digits in groups, or three decimals. */
const GROUPED_BY_POINTS = /^[+-]?[1-9]\d{0,2}(?:\.\d{3})+$/
/** "1.234,56" or "12,5". */
const DECIMAL_COMMA = /^[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+),\d+$/
const DECIMAL_POINT = /^[+-]?(?:\d+|[1-9]\d{0,2}(?:,\d\d)*(?:,\d{3})+)?\.\d+$/
/** "$", "US$", and separators of thousands other than points and commas. */
const CURRENCY_OR_SPACE = /[A-Z]{0,3}\p{Sc}|[\s'’]/gu
/** "101.25 USD", "1.2%", "(101.25) USD"; "CHF 101.25". */
const UNIT = /(?<=[\d)])(?:[A-Z]{2,10}|%)$|^[A-Z]{3}(?=[-+(\d])/g
const NOT_FINITE = /^[+-]?(?:nan|inf|infinity)$/i
const MISSING = /^(?:|null|none|na|n\/a|nat|-+)$/i
/** The code of "@", the last character in ASCII order with which a formula can begin. */
const LAST_FORMULA_START = 64
const FORMULA = /^[=@]|^[+-](?!\s*(?:[A-Z]{0,3}\p{Sc}\s*)?[\d.,]|inf|nan|-*$)/iu

/** Whether a text begins with a digit, as most cells do. Tells them apart sooner than a regular expression. */
const startsWithDigit = (text: string): boolean => {
  const code = text.charCodeAt(0)
  return code >= 48 && code <= 57
}

/** Whether a cell is empty or holds a word for a missing value. */
export const isMissing = (text: string): boolean => text === '' || (!startsWithDigit(text) && MISSING.test(text))

/** Whether a cell is missing or NaN. pandas writes the exit of an open trade as NaN. */
export const isUnset = (text: string): boolean =>
  text === '' || (!startsWithDigit(text) && (MISSING.test(text) || /^nan$/i.test(text)))

/** Removes currency, unit and spaces from a number: "($1 234)" becomes "-1234". */
function stripUnits(text: string): string {
  return text
    .replace(CURRENCY_OR_SPACE, '')
    .replace(UNIT, '')
    .replace(/[\u2212\u2013]/, '-')
    .replace(/^\((.+)\)$|^([\d.,]+)-$/, '-$1$2')
}

/** Whether a number certainly has a decimal comma. "1,234" does not count, because it may be in groups. */
const isDecimalComma = (bare: string): boolean => DECIMAL_COMMA.test(bare) && !GROUPED.test(bare)

/** Whether a number certainly has a decimal point. "1.234" does not count, because it may be in groups. */
const isDecimalPoint = (bare: string): boolean => DECIMAL_POINT.test(bare) && !GROUPED_BY_POINTS.test(bare)

/**
 * Reads a number as spreadsheets and brokers write it: "1234.5", "1,234.50", "$95.10", "95.10 USD", "1'234.50", "(12.5)"
 * and "12.5-" for -12.5. If the file has decimal commas, it also reads "1.234,5", and "1.234" as thousands. Groups may be
 * lakhs: "1,21,650.50". Returns NaN if the cell is not a number. Throws InvalidInput for NaN, infinities, numbers beyond
 * 1e18 and formulas, because such a file is probably not what the buyer wanted to send.
 */
export function readNumber(text: string, place: CellPlace, decimal: CellFormat['decimal'] = 'point'): number {
  // Most cells are plain numbers.
  if (PLAIN.test(text) && !(decimal === 'comma' && GROUPED_BY_POINTS.test(text)))
    return requireFinite(Number(text), text, place)
  if (isMissing(text)) return Number.NaN
  if (NOT_FINITE.test(text)) return requireFinite(Number.NaN, text, place)
  refuseFormula(text, place)
  const value = numberIn(text, decimal)
  return Number.isNaN(value) ? value : requireFinite(value, text, place)
}

/** The number in a cell, as `readNumber` reads it; NaN if there is none. Accepts any size. */
export function numberIn(text: string, decimal: CellFormat['decimal'] = 'point'): number {
  const hasPoints = decimal === 'comma'
  if (PLAIN.test(text) && !(hasPoints && GROUPED_BY_POINTS.test(text))) return Number(text)
  const bare = stripUnits(text)
  if ((hasPoints && GROUPED_BY_POINTS.test(bare)) || (decimal !== 'point' && DECIMAL_COMMA.test(bare)))
    return Number(bare.replaceAll('.', '').replace(',', '.'))
  if (PLAIN.test(bare)) return Number(bare)
  const isGrouped = decimal !== 'comma' && (GROUPED.test(bare) || LAKHS.test(bare))
  return isGrouped ? Number(bare.replaceAll(',', '')) : Number.NaN
}

/** Whether a cell is a number in any of the ways that files write one, with or without a currency or unit. */
export function isNumber(text: string): boolean {
  if (PLAIN.test(text)) return true
  const bare = stripUnits(text)
  return /\d/.test(bare) && [PLAIN, GROUPED, LAKHS, GROUPED_BY_POINTS, DECIMAL_COMMA].some((form) => form.test(bare))
}

/** Whether a cell is a number with a percent sign. */
export const isPercent = (text: string): boolean => text.endsWith('%') && isNumber(text)

/** Throws InvalidInput if the cell is a spreadsheet formula. */
export function refuseFormula(text: string, place: CellPlace): void {
  if (text.charCodeAt(0) <= LAST_FORMULA_START && FORMULA.test(text))
    throw cellError(place, 'The cell is a formula. Write its value instead.', 'formula')
}

/** The error of one cell. Its message names the row and the column. */
export function cellError({ file, row, column }: CellPlace, msg: string, type: string): InvalidInput {
  return new InvalidInput([{ loc: ['body', file, row, column], msg: `Row ${row}, ${column}: ${msg}`, type }])
}

/** Limits for prices and quantities, which keep their products and ratios finite. */
const LARGEST = 1e18
export const SMALLEST = 1 / LARGEST

function requireFinite(value: number, text: string, place: CellPlace): number {
  if (Math.abs(value) <= LARGEST) return value
  const msg = Number.isFinite(value) ? `is larger than ${LARGEST}.` : 'is not a finite number.'
  throw cellError(place, `${text.slice(0, 40)} ${msg}`, 'finite_number')
}

const PRIME = 0x01000193

/**
 * A number that identifies a row: 52 bits of two FNV-1a hashes of its cells. Among 200,000 different rows, the probability
 * that any two collide is 1 in 200,000.
 */
export function fingerprint(cells: readonly string[]): number {
  let [one, other] = [0x811c9dc5, 0x2f0b4a27]
  for (const cell of cells) {
    for (let i = 0; i < cell.length; i += 1) {
      const code = cell.charCodeAt(i)
      one = Math.imul(one ^ code, PRIME)
      other = Math.imul(other ^ code, 0x5bd1e995)
    }
    one = Math.imul(one ^ 0x1f, PRIME)
    other = Math.imul(other ^ 0x1f, 0x5bd1e995)
  }
  return (one >>> 0) * 0x100000 + (other >>> 12)
}

/** How a file writes numbers and dates. */
export interface CellFormat {
  /** The decimal mark. `either` if the file does not settle it and commas do not separate its cells. */
  readonly decimal: 'point' | 'comma' | 'either'
  /** The decimal mark of columns that settle it themselves, by index. Fees with their unit may have another than prices. */
  readonly decimals?: readonly ('point' | 'comma' | undefined)[]
  /** Whether 3/4/2024 is 3 April; null if the file does not settle it. */
  readonly dayFirst: boolean | null
}

const PIECE = 65_536
const DAY_AND_MONTH = /^(\d\d?)([/-])(\d\d?)\2\d\d/

/** The decimal mark of a column. */
export const decimalOf = ({ decimal, decimals }: CellFormat, column: number): CellFormat['decimal'] =>
  decimals?.[column] ?? decimal

/**
 * Detects from cells how a file writes numbers and dates. 95,10 and 1.234,5 prove a decimal comma and 95.10 a decimal
 * point; 1,234 and 1.234 prove nothing. A column whose cells prove one mark is written with it; the mark of most such columns
 * is that of the others. 31/1/2024 proves that the day comes first, 1/31/2024 that the month does.
 *
 * @example cellFormatOf([['SAP', '1.000', '95,10', '31/01/2024']], ';').decimal // 'comma'
 */
export function cellFormatOf(rows: readonly (readonly string[])[], delimiter: string): CellFormat {
  const counts = { day: 0, month: 0 }
  const marks: { comma: number; point: number }[] = []
  for (const cells of rows)
    for (const [column, cell] of cells.entries()) {
      const bare = stripUnits(cell)
      const mark = (marks[column] ??= { comma: 0, point: 0 })
      if (isDecimalComma(bare)) mark.comma += 1
      else if (isDecimalPoint(bare)) mark.point += 1
      const [, first, , second] = DAY_AND_MONTH.exec(cell.trim()) ?? []
      if (Number(first) > 12) counts.day += 1
      if (Number(second) > 12) counts.month += 1
    }
  const decimals = marks.map((mark) =>
    mark.comma > 0 === mark.point > 0 ? undefined : mark.comma > 0 ? ('comma' as const) : ('point' as const),
  )
  const [commas, points] = (['comma', 'point'] as const).map((one) => decimals.filter((mark) => mark === one).length)
  const isComma = commas! > points!
  const isPoint = delimiter === ',' || points! > commas!
  const isSettled = counts.day > 0 !== counts.month > 0
  return {
    decimal: isComma ? 'comma' : isPoint ? 'point' : 'either',
    decimals,
    // Regions that use a decimal comma do not write the month first.
    dayFirst: isSettled ? counts.day > 0 : isComma && counts.day === 0 ? true : null,
  }
}

/** The rows at the beginning, in the middle and at the end of a CSV file: all rows of a small one, without its first line. */
export function sampleOfCsv(bytes: Buffer, delimiter: string): string[][] {
  const starts = bytes.length <= 3 * PIECE ? [0] : [0, Math.floor((bytes.length - PIECE) / 2), bytes.length - PIECE]
  const length = starts.length === 1 ? bytes.length : PIECE
  return starts.flatMap((start) => {
    const lines = bytes
      .subarray(start, start + length)
      .toString('utf8')
      .split(/\r\n?|\n/)
    // Drops the header or the rest of a line at the start, and the partial line at the end.
    const whole = lines.slice(1, start + length < bytes.length ? -1 : undefined)
    const { data } = Papa.parse<string[]>(whole.join('\n'), { delimiter, skipEmptyLines: true })
    return data.map((cells) => cells.map((cell) => cell.trim()))
  })
}
