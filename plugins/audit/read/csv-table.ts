import { Readable } from 'node:stream'
import Papa from 'papaparse'
import { InvalidInput, ServiceError } from 'tollgate/plugin'
import { type CellFormat, cellFormatOfCsv } from './cell-values.ts'

export interface TableLimits {
  /** The field of the request, for error messages. */
  readonly file: 'file' | 'bars'
  readonly maxRows: number
}

export interface TableHandler {
  /** Called once with the cells of the first line. */
  header(cells: readonly string[], format: CellFormat): void
  /** Called for each data row. Cells are trimmed, and there are as many as in the header. */
  row(cells: readonly string[], row: number): void
}

export const MAX_COLUMNS = 64
export const MAX_CELL = 4096
/** A longer line cannot be a row of 64 cells. */
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
 * Streams the rows of a CSV file and returns the number of data rows. The file may use commas, semicolons or tabs, UTF-8 or
 * UTF-16 with a byte order mark, LF or CRLF, and quotes. Throws InvalidInput that names the row, or ServiceError
 * body_too_large beyond `maxRows`.
 */
export async function readCsv(written: Buffer, limits: TableLimits, handler: TableHandler): Promise<number> {
  const { file } = limits
  const bytes = inUtf8(written)
  assertLines(bytes, file)
  const delimiter = delimiterOf(bytes)
  const rows = new CsvRows(limits, handler, () => cellFormatOfCsv(bytes, delimiter))
  await parse(Readable.from(decode(bytes, limits), { objectMode: true, highWaterMark: 1 }), delimiter, (piece) =>
    rows.addPiece(piece),
  )
  if (!rows.hasHeader) throw tableError(file, 'The file is empty. Its first line must name the columns.', 'empty')
  if (rows.count === 0) throw tableError(file, 'The file has a header but no rows.', 'no_rows')
  return rows.count
}

type Piece = Pick<Papa.ParseResult<string[]>, 'data' | 'errors'>

/** Checks the parsed rows of one file and hands them to a handler. The first row that is not empty is the header. */
class CsvRows {
  /** Number of data rows so far. */
  count = 0
  readonly #limits: TableLimits
  readonly #handler: TableHandler
  readonly #format: () => CellFormat
  #width: number | null = null
  /** Number of pieces since the last complete row. */
  #idle = 0

  constructor(limits: TableLimits, handler: TableHandler, format: () => CellFormat) {
    this.#limits = limits
    this.#handler = handler
    this.#format = format
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

  #addHeader(cells: readonly string[]): void {
    const names = cells.map((cell) => cell.trim())
    if (names.every((name) => name === '')) return
    this.#width = names.length
    if (names.length > MAX_COLUMNS) {
      const msg = `The header has ${names.length} columns. At most ${MAX_COLUMNS} are allowed.`
      throw this.#error(msg, 'too_many_columns', 'header')
    }
    this.#handler.header(names, this.#format())
  }

  /** Trims the cells and makes them as many as in the header, in place. */
  #addRow(cells: string[], width: number): void {
    const { count } = this
    if (count === this.#limits.maxRows) throw tooManyRows(this.#limits)
    for (let index = 0; index < cells.length; index += 1) {
      const cell = cells[index]!
      if (cell.length > MAX_CELL) {
        const msg = `Row ${count}, cell ${index + 1} is longer than ${MAX_CELL} characters.`
        throw this.#error(msg, 'cell_too_long', count)
      }
      cells[index] = cell.trim()
    }
    if (cells.length > width && cells.slice(width).some((cell) => cell !== '')) {
      const msg = `Row ${count} has ${cells.length} cells, but the header has ${width}.`
      throw this.#error(msg, 'row_too_wide', count)
    }
    while (cells.length < width) cells.push('')
    this.#handler.row(cells, count)
    this.count += 1
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

/** The delimiter that occurs most often in the first line, outside quotes. */
function delimiterOf(bytes: Buffer): string {
  const [line = ''] = bytes
    .subarray(0, MAX_LINE)
    .toString('utf8')
    .split(/[\r\n]/, 1)
  const bare = line.replace(/"[^"]*"/g, '')
  const counts = DELIMITERS.map((mark) => bare.split(mark).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] as string
}
