import { Readable } from 'node:stream'
import Papa from 'papaparse'
import { InvalidInput, ServiceError } from 'tollgate/plugin'
import { type CellFormat, cellFormatOf, sampleOfCsv } from './cell-values.ts'

export interface TableLimits {
  /** The field of the request, for error messages. */
  readonly file: 'file' | 'bars'
  readonly maxRows: number
}

/** A header: the row of the file that it is, and the names of the columns, which may be more than the row has. */
export interface ChosenHeader {
  readonly cells: readonly string[]
  readonly names: readonly string[]
}

export interface TableHandler {
  /**
   * Chooses the header among rows that could be one; null if none is. Called with the first row, and if it is not the
   * header, with all rows of three or more texts. Without it, the first row is the header.
   */
  choose?(rows: readonly (readonly string[])[], isAll: boolean): ChosenHeader | null
  /** Called for each row above the header. */
  above?(cells: readonly string[]): void
  /** Called once with the names of the columns, and a sample of the rows, which tells what the columns hold. */
  header(names: readonly string[], format: CellFormat, sample: readonly (readonly string[])[]): void
  /** The cells of a row in the order of the header; null if the row is no data. A row may be wider than the header. */
  arrange?(cells: readonly string[], row: number): readonly string[] | null
  /** Called for each data row. Cells are trimmed, and there are as many as in the header. */
  row(cells: readonly string[], row: number): void
}

/** A full Flex Query of trades has 90 columns. */
export const MAX_COLUMNS = 128
export const MAX_CELL = 4096
/** A longer line cannot be a row of so many cells. */
const MAX_LINE = MAX_COLUMNS * (MAX_CELL + 3)
const PIECE = 262_144
const LF = 10
const CR = 13
/** After more pieces without the end of a row, an open quote must have swallowed the rest of the file. */
const MAX_IDLE = 4
const DELIMITERS = [',', ';', '\t'] as const

/** The error of a file that is not a usable table. `at` locates the defect: a row, a line or the header. */
export function tableError(
  file: TableLimits['file'],
  msg: string,
  type: string,
  ...at: readonly (string | number)[]
): InvalidInput {
  return new InvalidInput([{ loc: ['body', file, ...at], msg, type }])
}

/** The error of a file with more rows than allowed: status 413. */
export function tooManyRows({ file, maxRows }: TableLimits): ServiceError {
  const fields = { max_rows: maxRows }
  return new ServiceError('body_too_large', `${file} has more than ${maxRows} rows. Send fewer.`, { fields })
}

/**
 * Streams the rows of a CSV file and returns the number of rows below the header. The file may use commas, semicolons or
 * tabs, UTF-8 or UTF-16 with a byte order mark, LF or CRLF, and quotes. Throws InvalidInput that names the row, or
 * ServiceError body_too_large beyond `maxRows`.
 */
export async function readCsv(written: Buffer, limits: TableLimits, handler: TableHandler): Promise<number> {
  const { file } = limits
  const bytes = inUtf8(written)
  refuseOtherFormats(bytes, file)
  assertLines(bytes, file)
  const delimiter = delimiterOf(bytes)
  const rows = new CsvRows(limits, handler, {
    delimiter,
    sample: () => sampleOfCsv(bytes, delimiter),
    headers: () => headerRows(bytes, delimiter),
  })
  await parse(Readable.from(decode(bytes, limits), { objectMode: true, highWaterMark: 1 }), delimiter, (piece) =>
    rows.addPiece(piece),
  )
  if (!rows.hasHeader) throw tableError(file, 'The file is empty. Its first line must name the columns.', 'empty')
  if (rows.count === 0) throw tableError(file, 'The file has a header but no rows.', 'no_rows')
  return rows.count
}

type Piece = Pick<Papa.ParseResult<string[]>, 'data' | 'errors'>

/** What the rows of a file need of the whole file. */
interface WholeFile {
  readonly delimiter: string
  readonly sample: () => readonly (readonly string[])[]
  /** All rows that could be a header. */
  readonly headers: () => readonly (readonly string[])[]
}

/** Checks the parsed rows of one file and hands them to a handler. */
class CsvRows {
  /** Number of data rows so far. */
  count = 0
  readonly #limits: TableLimits
  readonly #handler: TableHandler
  readonly #file: WholeFile
  #chosen: ChosenHeader | null = null
  #width: number | null = null
  /** Number of pieces since the last complete row. */
  #idle = 0

  constructor(limits: TableLimits, handler: TableHandler, file: WholeFile) {
    this.#limits = limits
    this.#handler = handler
    this.#file = file
  }

  get hasHeader(): boolean {
    return this.#width !== null
  }

  /** Adds the rows of a piece of the file. Throws InvalidInput at the first one that is not a row of a table. */
  addPiece({ data, errors }: Piece): void {
    const wrong = errors.find(({ type }) => type === 'Quotes')?.row
    this.#idle = data.length === 0 ? this.#idle + 1 : 0
    if (this.#idle > MAX_IDLE) throw this.#unclosed()
    for (let index = 0; index < data.length; index += 1) {
      const cells = data[index]!
      if (index === wrong) throw this.#unclosed()
      if (this.#width === null) this.#addHeader(cells)
      else this.#addRow(cells, this.#width)
    }
    if (wrong !== undefined) throw this.#unclosed()
  }

  /** The first row that is not empty is the header, or the first one that has the cells of the chosen header. */
  #addHeader(row: readonly string[]): void {
    const cells = row.map((cell) => cell.trim())
    if (cells.every((cell) => cell === '')) return
    this.#chosen ??= this.#choose(cells)
    const { names } = this.#chosen
    if (!isSame(cells, this.#chosen.cells)) {
      this.#handler.above?.(cells)
      return
    }
    this.#width = names.length
    if (names.length > MAX_COLUMNS) {
      const msg = `The header has ${names.length} columns. At most ${MAX_COLUMNS} are allowed.`
      throw this.#error(msg, 'too_many_columns', 'header')
    }
    const sample = this.#file.sample()
    this.#handler.header(names, cellFormatOf(sample, this.#file.delimiter), sample)
  }

  #choose(first: readonly string[]): ChosenHeader {
    const { choose } = this.#handler
    const chosen = choose?.([first], false) ?? choose?.(this.#file.headers(), true)
    return chosen ?? { cells: first, names: first }
  }

  /** Trims the cells and makes them as many as in the header. */
  #addRow(row: string[], width: number): void {
    const { count } = this
    if (count === this.#limits.maxRows) throw tooManyRows(this.#limits)
    for (let index = 0; index < row.length; index += 1) {
      const cell = row[index]!
      if (cell.length > MAX_CELL) {
        const msg = `Row ${count}, cell ${index + 1} is longer than ${MAX_CELL} characters.`
        throw this.#error(msg, 'cell_too_long', count)
      }
      row[index] = cell.trim()
    }
    const cells = this.#handler.arrange ? this.#handler.arrange(row, count) : row
    if (cells) this.#handler.row(this.#fitted(cells, width), count)
    this.count += 1
  }

  #fitted(cells: readonly string[], width: number): readonly string[] {
    if (cells.length === width) return cells
    if (cells.length > width && cells.slice(width).some((cell) => cell !== '')) {
      const msg = `Row ${this.count} has ${cells.length} cells, but the header has ${width}.`
      throw this.#error(msg, 'row_too_wide', this.count)
    }
    return cells.length > width ? cells : [...cells, ...Array.from({ length: width - cells.length }, () => '')]
  }

  #unclosed(): InvalidInput {
    const msg = `Row ${this.count} has an unclosed quote, or text after a closing quote.`
    return this.#error(msg, 'quotes', this.count)
  }

  #error(msg: string, type: string, at: string | number): InvalidInput {
    return tableError(this.#limits.file, msg, type, at)
  }
}

/** Parses a stream of text and passes its rows on in pieces. Stops at the first error of `onPiece` and throws it. */
async function parse(text: Readable, delimiter: string, onPiece: (piece: Piece) => void): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let failure: Error | null = null
    text.on('error', reject)
    Papa.parse<string[]>(text, {
      delimiter,
      skipEmptyLines: true,
      chunk(piece, parser) {
        try {
          onPiece(piece)
        } catch (error) {
          failure = error as Error
          parser.abort()
          text.destroy()
        }
      },
      complete: () => (failure === null ? resolve() : reject(failure)),
      error: reject,
    })
  })
}

/** Spreadsheets save "Unicode text" as UTF-16 with a byte order mark. */
function inUtf8(bytes: Buffer): Buffer {
  const mark = bytes.subarray(0, 2).toString('hex')
  if (mark !== 'fffe' && mark !== 'feff') return bytes
  return Buffer.from(new TextDecoder(mark === 'fffe' ? 'utf-16le' : 'utf-16be').decode(bytes))
}

/** Decodes the text in pieces, so that the rows of a large file are never in memory all at once. */
function* decode(bytes: Buffer, { file }: TableLimits): Generator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for (let at = 0; at < bytes.length; at += PIECE) {
    const piece = bytes.subarray(at, at + PIECE)
    if (piece.includes(0)) {
      const line = lineAt(bytes, at)
      throw tableError(file, `The file contains binary data near line ${line}. Send text in UTF-8.`, 'binary', line)
    }
    let text: string
    try {
      text = decoder.decode(piece, { stream: at + PIECE < bytes.length })
    } catch {
      const line = lineAt(bytes, at)
      throw tableError(file, `The file is not UTF-8 near line ${line}. Save it as UTF-8.`, 'encoding', line)
    }
    yield text
  }
}

/** How files of other formats begin, and what to send instead. */
const OTHER_FORMATS: readonly (readonly [begins: RegExp, msg: string, type: string])[] = [
  [
    /^PK\W\W/,
    'The file is an Excel workbook or a zip archive. Save the table as CSV, or unpack the archive.',
    'binary',
  ],
  [/^(?:\xD0\xCF|%PDF|\W\x8B)/, 'The file is an old Excel workbook, a PDF or packed. Save the table as CSV.', 'binary'],
  [/^(?:\xEF\xBB\xBF)?\s*<\?xml|^\s*<Flex/, 'The file is XML. Export it as CSV, as Flex Queries can be too.', 'xml'],
  [
    /^(?:\xEF\xBB\xBF)?\s*<(?:!doctype|html|table|head|!--)/i,
    'The file is a web page. Open it in a spreadsheet and save it as CSV.',
    'html',
  ],
]

function refuseOtherFormats(bytes: Buffer, file: TableLimits['file']): void {
  const start = bytes.toString('latin1', 0, 64)
  const other = OTHER_FORMATS.find(([begins]) => begins.test(start))
  if (other) throw tableError(file, other[1], other[2], 1)
}

/** Rejects files that are not tables before they reach the parser. */
function assertLines(bytes: Buffer, file: TableLimits['file']): void {
  for (let [start, line] = [0, 1]; start < bytes.length; line += 1) {
    const found = bytes.indexOf(LF, start)
    const end = found === -1 ? bytes.length : found
    if (end - start > MAX_LINE && longest(bytes.subarray(start, end)) > MAX_LINE)
      throw tableError(file, `Line ${line} is longer than any row of a table.`, 'line_too_long', line)
    start = end + 1
  }
}

/** Length of the longest line of a text in which only carriage returns end lines. */
function longest(bytes: Buffer): number {
  let most = 0
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(CR, start)
    const end = found === -1 ? bytes.length : found
    most = Math.max(most, end - start)
    start = end + 1
  }
  return most
}

function lineAt(bytes: Buffer, end: number): number {
  let line = 1
  for (let at = bytes.indexOf(LF); at !== -1 && at < end; at = bytes.indexOf(LF, at + 1)) line += 1
  return line
}

const isSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((cell, index) => cell === other[index])

/** More rows of texts than any file has headers. */
const MAX_HEADERS = 500

/** A cell of data: a number or a time of two digits or more. "52 week high" and "col_17" can be names. */
const dataCell = (delimiter: string): RegExp => {
  const rest = String.raw`(?=\d[^${delimiter}\d]*\d)(?![^${delimiter}]*\p{L}{4})`
  return new RegExp(String.raw`(?:^|${delimiter})["\s]*[-+(]?\p{Sc}?${rest}`, 'u')
}

/** The rows of three or more cells none of which is a number or a time of two digits: they could be headers. */
function headerRows(bytes: Buffer, delimiter: string): string[][] {
  const rows: string[][] = []
  const data = dataCell(delimiter)
  for (let start = 0; start < bytes.length && rows.length < MAX_HEADERS;) {
    const at = endOfLine(bytes, start)
    const text = bytes.toString('utf8', start, at).replace(/^\uFEFF/, '')
    if (!data.test(text)) {
      const [cells = []] = Papa.parse<string[]>(text, { delimiter }).data
      const row = cells.map((cell) => cell.trim())
      if (row.filter((cell) => cell !== '').length > 2) rows.push(row)
    }
    start = at + 1
  }
  return rows
}

/** Where the line ends that begins at `start`, with a line feed or a carriage return. */
function endOfLine(bytes: Buffer, start: number): number {
  let at = start
  while (at < bytes.length && bytes[at] !== LF && bytes[at] !== CR) at += 1
  return at
}

/**
 * The delimiter that occurs most often in the first line, outside quotes. If that line has fewer than three cells, the one
 * that gives most of the first lines three or more.
 */
function delimiterOf(bytes: Buffer): string {
  const lines = bytes
    .subarray(0, MAX_LINE)
    .toString('utf8')
    .split(/[\r\n]+/, 50)
    .map((line) => line.replace(/"[^"]*"/g, ''))
  const [first = ''] = lines
  const counts = DELIMITERS.map((mark) => first.split(mark).length)
  const most = Math.max(...counts)
  if (most > 2) return DELIMITERS[counts.indexOf(most)] as string
  const wide = DELIMITERS.map((mark) => lines.filter((line) => line.split(mark).length > 2).length)
  const winner = Math.max(...wide)
  return DELIMITERS[winner > 0 ? wide.indexOf(winner) : counts.indexOf(most)] as string
}
