import { InvalidInput } from 'tollgate/plugin'
import { assertDistinctNames, columnName, type ColumnName, quoted } from '../../lib/tables/column-names.ts'
import { type ColumnContent, contentsOf, spreadRows } from '../../lib/tables/column-contents.ts'
import type { CellFormat } from '../../lib/tables/cell-values.ts'
import type { ReadColumn } from '../reading.ts'
import type { ReadingOptions } from '../reading-options.ts'
import type { Layout } from '../trade-ledger.ts'
import { apart, BARE, ENTRY, EXIT, type Field, NAMES, NOT_NEEDED, PLAIN, PRICE, QTY, TIME } from './column-words.ts'
import { type Columns, snakeCase, take } from './found-columns.ts'
import { chooseFeeColumns, type PaidSign } from './fee-columns.ts'
import { chooseInstrument, refuseUnnamedInstruments } from './instrument-columns.ts'
import { saysOpenAndClose } from './open-close.ts'
import { chooseSide, holdsSides } from './side-columns.ts'
import { applyStatedColumns } from './stated-columns.ts'

export type { Field } from './column-words.ts'
export { snakeCase } from './found-columns.ts'

export interface Header {
  readonly layout: Layout
  /** Index of the column of each field that the file has. */
  readonly columns: Partial<Readonly<Record<Field, number>>>
  /** The columns whose sum is the fee: commission, clearing, exchange and others. */
  readonly feeColumns: readonly number[]
  /** The sign of a fee that is paid; null if the amounts decide. */
  readonly paidSign: PaidSign | null
  /** The columns that name an instrument together: symbol, expiry, strike and right of an option. */
  readonly instrumentColumns: readonly number[]
  /** Whether "Open Long" is a trade that is still open, because the file also says "Long". */
  readonly opensStayOpen: boolean
  /** The currency that the name of a column carries, such as USDT for "Fee (USDT)". */
  readonly currencies: Partial<Readonly<Record<Field, string>>>
  /** Minutes east of UTC of times without a zone, if the names of their columns say it: 0 for "Date(UTC)". */
  readonly zone: number | null
  /** Columns that hold times and are not used, although their names do not say that no audit needs them. */
  readonly unusedTimes: readonly string[]
  /** Whether no time of the sample has a clock other than midnight. */
  readonly isDaily: boolean
  /** Column names as the file writes them. */
  readonly names: readonly string[]
  readonly format: CellFormat
  /** What each column is used as. */
  readonly readings: readonly ReadColumn[]
}

/** What the caller says that matters for the header. */
type StatedOfHeader = Pick<ReadingOptions, 'columns'> & { readonly symbol: string | undefined }
const NOTHING: StatedOfHeader = { columns: new Map(), symbol: undefined }

const ROUND_TRIP: readonly Field[] = ['entryTime', 'entryPrice', 'exitTime', 'exitPrice']
const BUY_AND_SELL: readonly Field[] = ['buyTime', 'buyPrice', 'sellTime', 'sellPrice']
const TIMES: ReadonlySet<Field> = new Set(['entryTime', 'exitTime', 'buyTime', 'sellTime', 'time', 'expiry'])
const NUMBERS: ReadonlySet<Field> = new Set([
  ...(['qty', 'stake', 'entryPrice', 'exitPrice', 'buyPrice', 'sellPrice', 'price', 'entryRate', 'exitRate'] as const),
  ...(['entryFees', 'exitFees', 'funding', 'contractSize', 'pnl', 'balance', 'strike'] as const),
])
/** Numbers without which a ledger can be read. */
const OPTIONAL: ReadonlySet<Field> = new Set([
  'stake',
  'funding',
  'contractSize',
  'pnl',
  'balance',
  'entryRate',
  'exitRate',
])
/** Fields in the order in which they are looked for. Entry and exit come before the time and the price of a fill. */
const ORDER: readonly Field[] = [
  ...ROUND_TRIP,
  ...BUY_AND_SELL,
  ...([
    'time',
    'price',
    'qty',
    'stake',
    'positionSide',
    'short',
    'long',
    'entryRate',
    'exitRate',
    'funding',
    'pnl',
    'balance',
  ] as const),
  ...(['feeCurrency', 'currency', 'contractSize', 'trial', 'status', 'number', 'type', 'signal'] as const),
]

/**
 * Recognises the columns of a ledger by their names and by what they hold, and its layout. Throws InvalidInput for
 * duplicate column names, for columns that cannot be told apart safely, and if the columns are neither round trips nor
 * fills; the messages name the columns.
 *
 * @param sample rows from all over the file
 * @param stated what the caller says of the file. It comes before names and contents
 */
export function recogniseHeader(
  names: readonly string[],
  format: CellFormat,
  sample: readonly (readonly string[])[] = [],
  stated: StatedOfHeader = NOTHING,
): Header {
  assertDistinctNames(names)
  const rows = spreadRows(sample, names.length)
  const columns: Columns = {
    names,
    parsed: names.map((name) => withWords(columnName(name))),
    contents: contentsOf(rows, names.length),
    rows,
    format,
    found: {},
    uses: new Map(),
    reasons: new Map(),
  }
  const statedFees = applyStatedColumns(columns, stated.columns)
  const side = chooseSide(columns)
  for (const field of ORDER) if (columns.found[field] === undefined) findField(columns, field)
  findClock(columns)
  findOpenClose(columns)
  const fees = chooseFeeColumns(columns, statedFees)
  const instrumentColumns = chooseInstrument(columns)
  settleEntries(columns)
  const layout = layoutOf(columns)
  if (instrumentColumns.length === 0 && stated.symbol === undefined && isFills(layout))
    refuseUnnamedInstruments(columns)
  return {
    layout,
    columns: columns.found,
    feeColumns: fees.columns,
    paidSign: fees.paidSign,
    instrumentColumns,
    opensStayOpen: side.opensStayOpen,
    currencies: currenciesOf(columns),
    zone: zoneOf(columns),
    unusedTimes: unusedTimes(columns),
    isDaily: isDaily(columns),
    names,
    format,
    readings: readingsOf(columns),
  }
}

const withWords = (name: ColumnName): ColumnName => ({ ...name, words: apart(name.words) })

/** Whether each row is an execution, not a round trip. */
export const isFills = (layout: Layout): boolean => layout === 'fills' || layout === 'lean_orders'

/** Finds the column of a field: by a known name, else by the words of its name; if possible, one that holds what it should. */
function findField(columns: Columns, field: Field): void {
  const { parsed, contents, uses, reasons } = columns
  const known = NAMES[field as keyof typeof NAMES].split(' ')
  const isFree = (index: number): boolean => !uses.has(index) || (field === 'type' && columns.found.side === index)
  const byName = known.flatMap((name) => parsed.flatMap(({ plain }, index) => (plain === name ? [index] : [])))
  const byWords = parsed.flatMap(({ words }, index) => (saysInWords(field, words) ? [index] : []))
  const candidates = [...new Set([...byName, ...byWords])].filter(
    (index) => isFree(index) && !isForbidden(columns, field, index),
  )
  const suitable = candidates.filter((index) => suits(field, contents[index]!) && !uses.has(index))
  // Of several times, one with a clock says more than a day.
  const best = suitable.find((index) => !TIMES.has(field) || hasClock(contents[index]!)) ?? suitable[0] ?? candidates[0]
  if (best === undefined) return
  if (field === 'type' && columns.found.side === best) columns.found.type = best
  else take(columns, field, best)
  for (const index of candidates)
    if (index !== best && !uses.has(index))
      reasons.set(index, `${snakeCase(field)} is read from ${quoted(columns.names[best]!)}`)
}

/** Whether the words of a name say a time or a price, such as "Ex. date", or a quantity. */
function saysInWords(field: Field, words: readonly string[]): boolean {
  if (field === 'qty')
    return words.some((word) => QTY.has(word)) && words.every((word) => QTY.has(word) || PLAIN.has(word))
  const isTime = words.some((word) => TIME.has(word))
  const isPrice = words.some((word) => PRICE.has(word))
  if (isTime === isPrice) return false
  const [isEntry, isExit] = [words.some((word) => ENTRY.has(word)), words.some((word) => EXIT.has(word))]
  const nouns = isTime ? TIME : PRICE
  if ((isEntry && isExit) || !words.every((word) => [nouns, ENTRY, EXIT, PLAIN].some((known) => known.has(word))))
    return false
  const said = isTime ? 'Time' : 'Price'
  return field === (isEntry ? `entry${said}` : isExit ? `exit${said}` : said.toLowerCase())
}

/** The states of orders and trades in the words of exports, and in the numbers of LEAN. */
const STATE =
  /^(?:(?:partial(?:ly)?[ _]?)?fill(?:ed)?|closed?|completed?|executed|done|finished|success|settled|open|new|active|pending|working|submitted|accepted|placed|resting|triggered|update_submitted|cancell?ed|cancel|cancel_?pending|rejected|expired|invalid|deleted|inactive|failed|none|win|loss|[0-8])(?:[ _].*)?$/i

/** Whether most cells are states of orders. */
function saysStates({ values, filled }: ColumnContent): boolean {
  let known = 0
  for (const [text, times] of values) if (STATE.test(text)) known += times
  return filled > 0 && known >= filled / 2
}

function suits(field: Field, { kind }: ColumnContent): boolean {
  if (TIMES.has(field)) return kind === 'time'
  if (NUMBERS.has(field)) return kind === 'number' || kind === 'time'
  if (field === 'feeCurrency' || field === 'currency') return kind !== 'empty'
  return field === 'short' || field === 'long' ? kind === 'flag' || kind === 'number' : kind !== 'empty'
}

/** Whether a column cannot be a field, whatever its name: a percentage is no money, and "Long" no number of a trade. */
function isForbidden(columns: Columns, field: Field, index: number): boolean {
  const content = columns.contents[index]!
  if (BARE.has(columns.parsed[index]!.plain) && !suits(field, content)) return true
  if (NUMBERS.has(field) && (content.kind === 'percent' || content.kind === 'currency')) {
    columns.reasons.set(index, content.kind === 'percent' ? 'it holds percentages, not amounts' : 'it holds currencies')
    return true
  }
  if (OPTIONAL.has(field) && (content.kind === 'text' || content.kind === 'flag')) {
    columns.reasons.set(index, 'it holds text, not numbers')
    return true
  }
  if (field === 'status' && columns.rows.length > 0 && !saysStates(content)) {
    columns.reasons.set(index, 'it does not hold states of orders')
    return true
  }
  if (field === 'number' || field === 'qty') return holdsSides(content) || (field === 'qty' && content.kind === 'text')
  if (field === 'currency' || field === 'feeCurrency')
    return ![...content.values.keys()].every((text) => /\p{L}/u.test(text))
  return false
}

/** Finds the column that says whether a fill opens or closes a position. */
function findOpenClose(columns: Columns): void {
  const { names, rows, uses } = columns
  const index = names.findIndex((_, at) => !uses.has(at) && saysOpenAndClose(rows.map((cells) => cells[at] ?? '')))
  if (index >= 0) take(columns, 'openClose', index, 'it says what opens and what closes a position')
}

/** The day and the time of day may have columns of their own. */
function findClock(columns: Columns): void {
  const { found, contents, parsed, uses, names } = columns
  const time = found.time
  if (time === undefined || found.clock !== undefined) return
  const isDay = (index: number): boolean => /^(?:trade)?(?:date|day|datum|fecha|data)$/.test(parsed[index]!.plain)
  const others = names.flatMap((_, index) =>
    index === time || uses.has(index) || isOfLeg(parsed[index]!) ? [] : [index],
  )
  const use = (day: number, clock: number): void => {
    found.time = day
    found.clock = clock
    uses.set(day, { as: 'time', why: null })
    uses.set(clock, { as: 'clock', why: null })
  }
  if (isClock(contents[time]!)) {
    const day = others.find(isDay)
    if (day !== undefined) use(day, time)
    return
  }
  const clock = others.find(
    (index) => contents[index]!.kind === 'clock' || (isTimeOfDay(parsed[index]!) && isClock(contents[index]!)),
  )
  if (clock !== undefined && isDay(time)) use(time, clock)
}

const isTimeOfDay = ({ plain }: ColumnName): boolean => /^(?:time|clock|timeofday|zeit|uhrzeit|hora|heure)$/.test(plain)

/** "09:30", or "93000" as some exports write it. */
const isClock = ({ kind, values }: ColumnContent): boolean =>
  kind === 'clock' || (kind === 'number' && [...values.keys()].every((text) => /^\d{4,6}$/.test(text)))

const hasClock = ({ values }: ColumnContent): boolean => [...values.keys()].some((text) => !MIDNIGHT.test(text))

/** "Exit time of day" is no clock of an execution. */
const isOfLeg = ({ words }: ColumnName): boolean => words.some((word) => EXIT.has(word) || ENTRY.has(word))

/** "Date, Price, Ex. date, Ex. Price" (AmiBroker): the time and price without a word for the exit are those of the entry. */
function settleEntries(columns: Columns): void {
  const { found, uses } = columns
  if (found.exitTime === undefined || found.exitPrice === undefined) return
  for (const [entry, plain] of [['entryTime', 'time'] as const, ['entryPrice', 'price'] as const]) {
    const index = found[plain]
    if (found[entry] !== undefined || index === undefined) continue
    delete found[plain]
    found[entry] = index
    uses.set(index, { as: snakeCase(entry), why: `another column has the exit` })
  }
}

function layoutOf({ found, parsed, contents, names }: Columns): Layout {
  const has = (...fields: readonly Field[]): boolean => fields.every((field) => found[field] !== undefined)
  const isNamed = (plain: string): boolean => parsed.some((name) => name.plain === plain)
  if (has(...ROUND_TRIP)) {
    if (isNamed('openrate') && isNamed('opendate')) return 'freqtrade'
    if (isNamed('avgentryprice')) return 'vectorbt'
    if (isNamed('entrybar')) return 'backtesting.py'
    if (isNamed('mae') && isNamed('mfe')) return 'lean_trades'
    return 'round_trips'
  }
  if (has(...BUY_AND_SELL)) return 'round_trips'
  if (has('number', 'type', 'time', 'price') && saysLegs(contents[found.type!]!)) return 'tradingview'
  if (has('time', 'price', 'qty', 'status', 'type') && !has('side')) return 'lean_orders'
  if (has('time', 'price', 'qty')) return 'fills'
  const isFill = (has('time') || has('price')) && !has('entryPrice', 'exitPrice')
  const missing = (isFill ? (['time', 'price', 'qty'] as const) : ROUND_TRIP).filter((field) => !has(field))
  throw unknownLayout(names, missing, contents, isFill)
}

/** Whether the types say entry and exit. A column without any is judged by its rows. */
const saysLegs = ({ values }: ColumnContent): boolean =>
  values.size === 0 || [...values.keys()].some((text) => /entry|exit|open|close/i.test(text))

function unknownLayout(
  names: readonly string[],
  missing: readonly Field[],
  contents: readonly ColumnContent[],
  isFill: boolean,
): InvalidInput {
  const isMissingTime = missing.some((field) => /time/i.test(field))
  const times = names.filter((_, index) => contents[index]!.kind === 'time')
  const hint =
    isMissingTime && times.length > 0
      ? ` ${times.slice(0, 4).map(quoted).join(', ')} ${times.length === 1 ? 'holds' : 'hold'} times: say what they are in columns, such as "${times[0]!.slice(0, 40)}=${snakeCase(missing[0]!)}".`
      : ` If a column has it under another name, say so in columns, such as "${(names.find((name) => name !== '') ?? 'Name').slice(0, 40)}=${snakeCase(missing[0]!)}".`
  const list = missing.map(snakeCase).join(', ')
  const wanted = isFill ? `${list} of each fill` : list
  return new InvalidInput([
    {
      loc: ['body', 'file', 'header'],
      msg: `The columns ${names.slice(0, 12).map(quoted).join(', ')} are neither round trips nor fills. Missing: ${wanted}.${hint}`.slice(
        0,
        1200,
      ),
      type: 'unknown_layout',
    },
  ])
}

function currenciesOf({ found, parsed }: Columns): Header['currencies'] {
  const named = Object.entries(found).flatMap(([field, index]) => {
    const { currency } = parsed[index]!
    return currency === null ? [] : [[field, currency] as const]
  })
  return Object.fromEntries(named)
}

/** The zone that the names of the time columns carry. */
function zoneOf({ found, parsed }: Columns): number | null {
  const times = [...TIMES].flatMap((field) => found[field] ?? [])
  return times.map((index) => parsed[index]!.zone).find((zone) => zone !== null) ?? null
}

const MIDNIGHT = /^[^:]*$|(?:^|[ T;,])0?0:00(?::00(?:\.0+)?)?(?:Z|[+-]\d\d:?\d\d)?$/

function isDaily({ found, contents }: Columns): boolean {
  const times = [...TIMES].flatMap((field) => found[field] ?? [])
  return (
    found.clock === undefined &&
    times.every((index) =>
      [...contents[index]!.values.keys()].every((text) => MIDNIGHT.test(text) && !/^\d{9,}/.test(text)),
    )
  )
}

function unusedTimes({ names, parsed, contents, uses, reasons }: Columns): string[] {
  return names.filter((_, index) => {
    const isKnown = uses.has(index) || reasons.has(index) || NOT_NEEDED.has(parsed[index]!.plain)
    return !isKnown && contents[index]!.kind === 'time'
  })
}

/** What each column is used as, or why it is not used. */
function readingsOf({ names, parsed, contents, uses, reasons, found }: Columns): ReadColumn[] {
  return names.map((name, index) => {
    const use = uses.get(index)
    if (use?.as.endsWith('fees') && found.qty === undefined && found.stake === undefined)
      return { name, used_as: use.as, why: 'without a quantity, fees are no share of a trade and do not count' }
    if (use) return { name, used_as: use.as === 'ignore' ? null : use.as, why: use.why }
    const { plain } = parsed[index]!
    const why =
      contents[index]!.kind === 'empty'
        ? 'it is empty'
        : (reasons.get(index) ??
          (NOT_NEEDED.has(plain) ? 'the audit does not need it' : 'its name is not known; columns can say what it is'))
    return { name, used_as: null, why }
  })
}
