/** How a file looks: numbers, times, names, the order of its rows and columns, and its bytes. None of it changes what it says. */
import * as fc from 'fast-check'

export interface NumberCell {
  readonly value: number
  readonly decimals: number
  /** The currency of an amount. */
  readonly money?: string
  readonly isPercent?: true
}

export const percentCell = (value: number): NumberCell => ({ value, decimals: 2, isPercent: true })

/** A cell before it is written. */
export type Cell = string | NumberCell | { readonly at: number }

export interface Table {
  readonly names: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
  /** Lines before the header and after the last row. */
  readonly before?: readonly string[]
  readonly after?: readonly (readonly Cell[])[]
  /** What the venue always writes. A dress does not change it. */
  readonly fixed?: {
    readonly times?: TimeStyle
    readonly order?: true
    readonly names?: true
    readonly numbers?: true
    readonly delimiter?: ',' | ';' | '\t'
    readonly rows?: true
  }
}

interface NumberStyle {
  readonly mark: '.' | ','
  readonly group: '' | ',' | '.' | "'" | '\u202f' | ' '
  readonly lakh?: true
}

const NUMBER_STYLES: readonly NumberStyle[] = [
  { mark: '.', group: '' },
  { mark: '.', group: ',' },
  { mark: '.', group: ',', lakh: true },
  { mark: '.', group: "'" },
  { mark: ',', group: '' },
  { mark: ',', group: '.' },
  { mark: ',', group: '\u202f' },
]

const two = (value: number): string => String(value).padStart(2, '0')
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const HOUR = 3_600_000

function parts(at: number) {
  const date = new Date(at)
  const [hour, minute] = [date.getUTCHours(), date.getUTCMinutes()]
  return {
    y: String(date.getUTCFullYear()),
    m: two(date.getUTCMonth() + 1),
    d: two(date.getUTCDate()),
    month: MONTHS[date.getUTCMonth()] as string,
    clock: `${two(hour)}:${two(minute)}`,
    half: `${hour % 12 === 0 ? 12 : hour % 12}:${two(minute)}:00 ${hour < 12 ? 'AM' : 'PM'}`,
  }
}

const TIMES = {
  iso: (at) => new Date(at).toISOString().slice(0, 19).replace('T', ' '),
  isoT: (at) => new Date(at).toISOString().slice(0, 19),
  zulu: (at) => `${new Date(at).toISOString().slice(0, 19)}Z`,
  pandas: (at) => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}+00:00`,
  berlin: (at) => `${new Date(at + HOUR).toISOString().slice(0, 19)}+01:00`,
  us: (at) => `${Number(parts(at).m)}/${Number(parts(at).d)}/${parts(at).y} ${parts(at).half}`,
  us24: (at) => `${parts(at).m}/${parts(at).d}/${parts(at).y} ${parts(at).clock}`,
  uk: (at) => `${parts(at).d}/${parts(at).m}/${parts(at).y} ${parts(at).clock}`,
  german: (at) => `${parts(at).d}.${parts(at).m}.${parts(at).y} ${parts(at).clock}:00`,
  dutch: (at) => `${parts(at).d}-${parts(at).m}-${parts(at).y} ${parts(at).clock}`,
  metatrader: (at) => `${parts(at).y}.${parts(at).m}.${parts(at).d} ${parts(at).clock}:00`,
  slashed: (at) => `${parts(at).y}/${parts(at).m}/${parts(at).d} ${parts(at).clock}`,
  seconds: (at) => String(at / 1000),
  milliseconds: (at) => String(at),
  compact: (at) => `${parts(at).y}${parts(at).m}${parts(at).d};${parts(at).clock.replace(':', '')}00`,
  activity: (at) => `${parts(at).y}-${parts(at).m}-${parts(at).d}, ${parts(at).clock}:00`,
  named: (at) => `${parts(at).d}-${parts(at).month}-${parts(at).y} ${parts(at).clock}`,
  english: (at) => `${parts(at).month} ${Number(parts(at).d)}, ${parts(at).y} ${parts(at).half}`,
  usDay: (at) => `${parts(at).m}/${parts(at).d}/${parts(at).y}`,
  germanDay: (at) => `${parts(at).d}.${parts(at).m}.${parts(at).y}`,
  isoDay: (at) => new Date(at).toISOString().slice(0, 10),
  compactDay: (at) => `${parts(at).y}${parts(at).m}${parts(at).d}`,
} satisfies Record<string, (at: number) => string>

export type TimeStyle = keyof typeof TIMES
const STYLES_OF_DAYS: readonly TimeStyle[] = ['isoDay', 'usDay', 'germanDay', 'compactDay', 'iso', 'zulu']
const STYLES_OF_TIMES = Object.keys(TIMES).filter((name) => !name.endsWith('Day')) as TimeStyle[]

/** Columns that people have and an audit does not need. */
const EXTRA_COLUMNS: readonly (readonly [string, (row: number, salt: number) => Cell])[] = [
  ['Notes', () => ''],
  ['Exchange', (row) => (row % 2 === 0 ? 'NASDAQ' : 'ARCA')],
  ['Order ID', (row, salt) => String(7_000_000 + salt + row)],
  ['Account', () => 'U1234567'],
  ['Stop Loss', () => ''],
  ['Leverage', () => '1'],
  ['Bars held', (row, salt) => String(1 + ((row * 7 + salt) % 40))],
  ['Run-up %', (row, salt) => percentCell(((row * 13 + salt) % 90) / 10)],
  ['MAE', (row, salt) => ({ value: -((row * 17 + salt) % 300) - 0.25, decimals: 2 })],
  ['Comment', (row) => (row % 3 === 0 ? 'breakout, then trail' : '')],
  ['Setup', (row) => (row % 3 === 0 ? 'Gap "A"' : 'Pullback')],
  ['Balance', (row, salt) => ({ value: 10_000 + ((row * 37 + salt) % 500) + 0.5, decimals: 2 })],
  ['Heart rate', (row, salt) => String(60 + ((row + salt) % 40))],
]

/** Draws how a file looks. */
export const DRAWN_DRESS = fc.record({
  delimiter: fc.constantFrom<',' | ';' | '\t'>(',', ';', '\t'),
  numbers: fc.nat(NUMBER_STYLES.length - 1),
  negative: fc.constantFrom<'-' | '()' | 'after' | '\u2212'>('-', '()', 'after', '\u2212'),
  currency: fc.constantFrom<'' | 'sign' | 'code'>('', 'sign', 'code'),
  trimmed: fc.boolean(),
  times: fc.nat(59),
  names: fc.constantFrom<'' | 'upper' | 'lower' | 'snake' | 'joined' | 'spaced'>(
    '',
    'upper',
    'lower',
    'snake',
    'joined',
    'spaced',
  ),
  newline: fc.constantFrom('\n', '\r\n'),
  encoding: fc.constantFrom<'utf8' | 'mark' | 'utf16'>('utf8', 'mark', 'utf16'),
  quoted: fc.boolean(),
  preamble: fc.nat(3),
  total: fc.constantFrom('', 'Total', 'Totals', 'Grand Total', 'SubTotal', 'Summe'),
  repeated: fc.nat(5).map((n) => n === 5),
  blank: fc.nat(5).map((n) => n === 5),
  extra: fc.array(fc.nat(EXTRA_COLUMNS.length - 1), { maxLength: 4 }),
  order: fc.nat(5).chain((n) => (n < 2 ? fc.constant(0) : fc.nat(9_999))),
  newestFirst: fc.boolean(),
  salt: fc.nat(9_999),
})
export type Dress = typeof DRAWN_DRESS extends fc.Arbitrary<infer Value> ? Value : never

export const PLAIN: Dress = {
  delimiter: ',',
  numbers: 0,
  negative: '-',
  currency: '',
  trimmed: false,
  times: 0,
  names: '',
  newline: '\n',
  encoding: 'utf8',
  quoted: false,
  preamble: 0,
  total: '',
  repeated: false,
  blank: false,
  extra: [],
  order: 0,
  newestFirst: false,
  salt: 0,
}

export interface Written {
  readonly bytes: Buffer
  /** The columns as the file names them. */
  readonly names: readonly string[]
  readonly times: TimeStyle
}

const SIGNS: Readonly<Record<string, string>> = { USD: '$', EUR: '€', GBP: '£' }

/** Writes a table in a dress. `daily` says that all times are midnights. */
export function write(table: Table, dress: Dress, daily: boolean): Written {
  const { fixed = {} } = table
  const delimiter = fixed.delimiter ?? dress.delimiter
  // A decimal comma between commas is rare and needs quotes, so these files have semicolons or tabs.
  const style = fixed.numbers
    ? NUMBER_STYLES[0]!
    : NUMBER_STYLES[delimiter === ',' ? dress.numbers % 4 : dress.numbers]!
  const styles = daily ? STYLES_OF_DAYS : STYLES_OF_TIMES
  const times = fixed.times ?? styles[dress.times % styles.length]!
  const textOf = (cell: Cell): string => {
    if (typeof cell === 'string') return cell
    return 'at' in cell ? TIMES[times](cell.at) : fixed.numbers ? plainNumber(cell) : numberText(cell, style, dress)
  }
  const extras = fixed.order ? [] : extraColumns(table, dress)
  const wide = [
    ...table.names.map((name) => (fixed.names ? name : spelled(name, dress))),
    ...extras.map(([name]) => name),
  ]
  const order = fixed.order || dress.order === 0 ? wide.map((_, at) => at) : shuffled(wide.length, dress.order)
  const line = (cells: readonly string[]): string =>
    order.map((at) => quotedCell(cells[at] ?? '', delimiter, dress.quoted)).join(delimiter)
  const rows = table.rows.map((row, index) => [
    ...row.map(textOf),
    ...extras.map(([, cellOf]) => textOf(cellOf(index, dress.salt))),
  ])
  if (dress.newestFirst && !fixed.rows) rows.reverse()
  const after = (table.after ?? []).map((row) => row.map(textOf).join(delimiter))
  const preamble = table.before ?? preambleOf(dress, delimiter)
  const lines = [...preamble, line(wide), ...rows.map(line), ...after]
  if (!fixed.rows) {
    const middle = preamble.length + 1 + Math.ceil(rows.length / 2)
    if (dress.repeated && rows.length > 2) lines.splice(middle, 0, line(wide))
    if (dress.blank) lines.splice(middle, 0, '')
    if (dress.total !== '') lines.push(totalLine(dress.total, table, order, textOf, delimiter))
  }
  const text = lines.join(dress.newline) + dress.newline
  return { bytes: encoded(text, dress.encoding), names: order.map((at) => wide[at]!), times }
}

/** A number as programs write it: 9.64e-05 for small ones. */
export const plainNumber = ({ value, decimals }: NumberCell): string =>
  String(Number(value.toFixed(decimals))).replace(/e-(\d)$/, 'e-0$1')

function numberText(
  { value, decimals, money, isPercent }: NumberCell,
  { mark, group, lakh }: NumberStyle,
  { negative, currency, trimmed }: Dress,
): string {
  const fixed = Math.abs(value).toFixed(decimals)
  const [whole = '', fraction = ''] = fixed.split('.')
  const digits = trimmed ? fraction.replace(/0+$/, '') : fraction
  const places = lakh ? /(\d)(?=(?:\d\d)*\d{3}$)/g : /(\d)(?=(?:\d{3})+$)/g
  const bare = `${group === '' ? whole : whole.replace(places, `$1${group}`)}${digits === '' ? '' : `${mark}${digits}`}`
  const sign = money === undefined || currency !== 'sign' ? '' : (SIGNS[money] ?? '')
  const code = isPercent ? '%' : money === undefined || money === '' || currency !== 'code' ? '' : ` ${money}`
  if (Number(fixed) === 0 || value >= 0) return `${sign}${bare}${code}`
  if (negative === '()') return `(${sign}${bare})${code}`
  return negative === 'after' && !isPercent
    ? `${sign}${bare}-`
    : `${negative === 'after' ? '-' : negative}${sign}${bare}${code}`
}

function spelled(name: string, { names }: Dress): string {
  switch (names) {
    case '':
      return name
    case 'upper':
      return name.toUpperCase()
    case 'lower':
      return name.toLowerCase()
    case 'snake':
      return name
        .toLowerCase()
        .replace(/[ ./()]+/g, '_')
        .replace(/^_|_$/g, '')
    case 'joined':
      // The currency stays apart, or nobody could read it.
      return name.replace(/ (?!\(?[A-Z]{3,4}\)?$)/g, '')
    case 'spaced':
      return ` ${name} `
  }
}

function extraColumns({ names }: Table, { extra }: Dress) {
  const taken = new Set(names.map((name) => name.toLowerCase()))
  return [...new Set(extra)].map((at) => EXTRA_COLUMNS[at]!).filter(([name]) => !taken.has(name.toLowerCase()))
}

function shuffled(length: number, seed: number): number[] {
  const list = Array.from({ length }, (_, at) => at)
  let state = seed
  for (let at = length - 1; at > 0; at -= 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    const other = (state >>> 8) % (at + 1)
    ;[list[at], list[other]] = [list[other]!, list[at]!]
  }
  return list
}

function quotedCell(text: string, delimiter: string, always: boolean): string {
  if (!always && !text.includes(delimiter) && !/["\r\n]/.test(text)) return text
  return `"${text.replaceAll('"', '""')}"`
}

function preambleOf({ preamble, salt }: Dress, delimiter: string): string[] {
  const lines = [`Trade history of account ${10_000 + salt}`, ['Generated', '2024-11-02'].join(delimiter), '']
  return lines.slice(0, preamble)
}

const SUMMED = /fee|comm|profit|p&l|pnl|proceeds/i

/** A last line with a word in its first cell and the sums of fees and profits. */
function totalLine(
  word: string,
  { names, rows }: Table,
  order: readonly number[],
  textOf: (cell: Cell) => string,
  delimiter: string,
): string {
  const cells = order.map((at, place): string => {
    const cells = rows.map((row) => row[at])
    const numbers = cells.filter((cell): cell is NumberCell => typeof cell === 'object' && 'value' in cell)
    if (place === 0) return word
    if (!SUMMED.test(names[at] ?? '') || numbers.length < rows.length) return ''
    return textOf({ ...numbers[0]!, value: numbers.reduce((sum, { value }) => sum + value, 0) })
  })
  return cells.map((text) => quotedCell(text, delimiter, false)).join(delimiter)
}

function encoded(text: string, encoding: Dress['encoding']): Buffer {
  if (encoding === 'utf16') return Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])
  return Buffer.from(encoding === 'mark' ? `\uFEFF${text}` : text)
}
