import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import Papa from 'papaparse'
import { InvalidInput, ServiceError } from 'tollgate/plugin'
import { type CellFormat, cellFormatOfCsv } from './cell-values.ts'

export interface TableLimits {
  /** The field of the request, for error messages. */
  readonly file: 'file' | 'bars'
  readonly maxRows: number
  readonly signal: AbortSignal
}

export interface TableHandler {
  /** Called once with the cells of the first line. */
  header(cells: readonly string[], writing: CellFormat): void
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
/** After this many pieces without the end of a row, an open quote must have swallowed the rest of the file. */
const MAX_IDLE = 4
const DELIMITERS = [',', ';', '\t'] as const

/**
 * Streams the rows of a CSV file and returns the number of data rows. The file may use commas, semicolons or tabs, UTF-8 or
 * UTF-16 with a byte order mark, LF or CRLF, and quotes. Other work runs between pieces. Throws InvalidInput that names
 * the row, or ServiceError body_too_large beyond `maxRows`.
 */
export async function readCsv(written: Buffer, limits: TableLimits, reader: TableHandler): Promise<number> {
  const { file, maxRows, signal } = limits
  const bytes = inUtf8(written)
  const refuse = (msg: string, type: string, ...at: readonly (string | number)[]): InvalidInput =>
    new InvalidInput([{ loc: ['body', file, ...at], msg, type }])
  assertLines(bytes, (line) => refuse(`Line ${line} is longer than any row of a table.`, 'line_too_long', line))
  let header: readonly string[] | null = null
  let delimiter = ','
  let count = 0
  let idle = 0
  const unclosed = (): InvalidInput =>
    refuse(`Row ${count} has an unclosed quote, or text after a closing quote.`, 'quotes', count)

  function take(cells: string[]): void {
    if (header === null) {
      if (cells.every((cell) => cell.trim() === '')) return
      header = cells.map((cell) => cell.trim())
      if (header.length > MAX_COLUMNS)
        throw refuse(
          `The header has ${header.length} columns. At most ${MAX_COLUMNS} are allowed.`,
          'too_many_columns',
          'header',
        )
      reader.header(header, cellFormatOfCsv(bytes, delimiter))
      return
    }
    if (count === maxRows) {
      const fields = { max_rows: maxRows }
      throw new ServiceError('body_too_large', `${file} has more than ${maxRows} rows; send fewer.`, { fields })
    }
    for (const [index, cell] of cells.entries()) {
      if (cell.length > MAX_CELL)
        throw refuse(`Row ${count}, cell ${index + 1} is longer than ${MAX_CELL} characters.`, 'cell_too_long', count)
      cells[index] = cell.trim()
    }
    if (cells.length > header.length && cells.slice(header.length).some((cell) => cell !== ''))
      throw refuse(
        `Row ${count} has ${cells.length} cells, but the header has ${header.length}.`,
        'row_too_wide',
        count,
      )
    while (cells.length < header.length) cells.push('')
    reader.row(cells, count)
    count += 1
  }

  const text = Readable.from(decode(bytes, signal, refuse), { objectMode: true, highWaterMark: 1 })
  delimiter = delimiterOf(bytes)
  await new Promise<void>((resolve, reject) => {
    let failure: Error | null = null
    text.on('error', reject)
    Papa.parse<string[]>(text, {
      delimiter,
      skipEmptyLines: true,
      chunk({ data, errors }, parser) {
        try {
          const wrong = errors.find(({ type }) => type === 'Quotes')?.row
          idle = data.length === 0 ? idle + 1 : 0
          if (idle > MAX_IDLE) throw unclosed()
          for (const [index, cells] of data.entries()) {
            if (index === wrong) throw unclosed()
            take(cells)
          }
          if (wrong !== undefined) throw unclosed()
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
  if (header === null) throw refuse('Is empty. The first line names the columns.', 'empty')
  if (count === 0) throw refuse('Has a header but no rows.', 'no_rows')
  return count
}

/** Spreadsheets save "Unicode text" as UTF-16 with a byte order mark. */
function inUtf8(bytes: Buffer): Buffer {
  const mark = bytes.subarray(0, 2).toString('hex')
  if (mark !== 'fffe' && mark !== 'feff') return bytes
  return Buffer.from(new TextDecoder(mark === 'fffe' ? 'utf-16le' : 'utf-16be').decode(bytes))
}

/** Decodes the text in pieces and lets other work run after each. */
async function* decode(
  bytes: Buffer,
  signal: AbortSignal,
  refuse: (msg: string, type: string, ...at: readonly (string | number)[]) => InvalidInput,
): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for (let at = 0; at < bytes.length; at += PIECE) {
    signal.throwIfAborted()
    const piece = bytes.subarray(at, at + PIECE)
    const line = (): number => lineAt(bytes, at)
    if (piece.includes(0)) throw refuse(`Holds binary data near line ${line()}; send text in UTF-8.`, 'binary', line())
    let text: string
    try {
      text = decoder.decode(piece, { stream: at + PIECE < bytes.length })
    } catch {
      throw refuse(`Is not UTF-8 near line ${line()}; save it as UTF-8.`, 'encoding', line())
    }
    yield text
    await turn()
  }
}

/** Rejects files that are not tables before they reach the parser. */
function assertLines(bytes: Buffer, refusal: (line: number) => InvalidInput): void {
  for (let [start, line] = [0, 1]; start < bytes.length; line += 1) {
    const found = bytes.indexOf(LF, start)
    const end = found === -1 ? bytes.length : found
    if (end - start > MAX_LINE && longest(bytes.subarray(start, end)) > MAX_LINE) throw refusal(line)
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

/** The separator that the first line has most of, outside quotes. */
function delimiterOf(bytes: Buffer): string {
  const [line = ''] = bytes
    .subarray(0, MAX_LINE)
    .toString('utf8')
    .split(/[\r\n]/, 1)
  const bare = line.replace(/"[^"]*"/g, '')
  const counts = DELIMITERS.map((mark) => bare.split(mark).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] as string
}
