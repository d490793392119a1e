import { cellFormatOf, isUnset, readNumber } from '../lib/tables/cell-values.ts'
import { invalid, type Loc, type NumberField, NUMBERS, type Places } from './bar-places.ts'

/** A text in a column of numbers that is no plain number. */
export interface TextCell {
  readonly name: NumberField
  readonly index: number
  readonly text: string
}

interface Source {
  readonly loc: Loc
  readonly rows: readonly unknown[]
  readonly placeOf: (index: number) => Places
}

/** A comma before three digits, which is a decimal mark in some files and a separator in others. */
const AMBIGUOUS = /^\D*\d{1,3}(?:,\d{3})+\D*$/
/** If so many of the values of a column cannot be read, the bars are not checked. */
const MAX_UNREADABLE = 0.5

/**
 * Reads texts such as "67,000.5", "$95.10" and "1.234,5" into their columns, and returns a note for each column. What all
 * texts of the request say about commas and points decides. Throws InvalidInput that names the column if they do not decide,
 * or if most of its values cannot be read.
 */
export function readNumberTexts(
  columns: Readonly<Record<NumberField, Float64Array>>,
  texts: readonly TextCell[],
  source: Source,
): string[] {
  const written = texts.filter(({ text }) => !isUnset(text.trim()))
  if (written.length === 0) return []
  const all = written.some(({ text }) => text.includes(',')) ? textsIn(source) : written
  const { decimal } = cellFormatOf(
    all.map(({ text }) => [text.trim()]),
    ';',
  )
  if (decimal === 'either') refuseAmbiguous(written, source)
  // With decimal commas, "1.234" is a thousand, although it looks like a plain number.
  const cells = decimal === 'comma' ? all : written
  // Volumes are seldom fractions of three digits, so a comma separates their thousands.
  const markOf = (name: NumberField): typeof decimal => (name === 'volume' && decimal === 'either' ? 'point' : decimal)
  for (const { name, index, text } of cells) columns[name][index] = numberIn(text.trim(), markOf(name))
  return NUMBERS.flatMap((name) => {
    const own = cells.filter((cell) => cell.name === name)
    const read = own.filter(({ index }) => !Number.isNaN(columns[name][index]!))
    const unreadable = own.length - read.length
    if (unreadable > MAX_UNREADABLE * source.rows.length) throw unreadableColumn(own, source)
    const [first] = read
    if (!first) return []
    const example = `${JSON.stringify(first.text.slice(0, 40))} as ${columns[name][first.index]}`
    return [`${read.length} values of ${name} are texts and were read as numbers: ${example}.`]
  })
}

/** Every text in a column of numbers. */
function textsIn({ rows, placeOf }: Source): TextCell[] {
  return rows.flatMap((row, index) => {
    const places = placeOf(index)
    return NUMBERS.flatMap((name) => {
      const text = (row as Record<string | number, unknown>)[places[name] ?? '']
      return typeof text === 'string' && !isUnset(text.trim()) ? [{ name, index, text }] : []
    })
  })
}

function numberIn(text: string, decimal: 'point' | 'comma' | 'either'): number {
  try {
    return readNumber(text, { file: 'bars', row: 0, column: '' }, decimal)
  } catch {
    // A formula, or an infinity.
    return NaN
  }
}

function refuseAmbiguous(cells: readonly TextCell[], source: Source): void {
  const cell = cells.find(({ name, text }) => name !== 'volume' && AMBIGUOUS.test(text.trim()))
  if (!cell) return
  const text = JSON.stringify(cell.text.slice(0, 40))
  const msg = `${text} of ${cell.name} may have a decimal comma or a separator of thousands. Send numbers, or texts with a decimal point.`
  throw invalid(locOf(cell, source), msg, 'ambiguous_number')
}

function unreadableColumn(cells: readonly TextCell[], source: Source) {
  const cell = cells.find(({ text }) => Number.isNaN(numberIn(text.trim(), 'either'))) ?? cells[0]!
  const text = JSON.stringify(cell.text.slice(0, 40))
  const msg = `${text} is no number, as most values of ${cell.name}. Send numbers, or texts such as "67000.5".`
  return invalid(locOf(cell, source), msg, 'number_parsing')
}

const locOf = ({ name, index }: TextCell, { loc, placeOf }: Source): Loc => [
  ...loc,
  index,
  placeOf(index)[name] ?? name,
]
