/** Ledgers that cannot be read safely. They are refused before payment; the messages say what would help. */
import { InvalidInput } from 'tollgate/plugin'
import { quoted } from '../../lib/tables/column-names.ts'
import { isFills } from './ledger-header.ts'
import type { LedgerBuilder } from './ledger-rows.ts'
import { KNOWN_SIDES } from './side-words.ts'

/** With more unknown words of side, the verdict would be about our reading. */
const MAX_UNKNOWN_SHARE = 0.005
/** The fills of one instrument that differ by this factor, one after the other, are probably of two. */
const MAX_JUMP = 15

/** Throws InvalidInput if words of side that are not known make up more than 0.5 % of the rows, at least two. */
export function refuseUnknownSides({ unknownSides, counts, name }: LedgerBuilder): void {
  const rows = [...unknownSides.values()].reduce((sum, one) => sum + one, 0)
  if (rows < 2 || rows <= MAX_UNKNOWN_SHARE * counts.rows) return
  const column = name('side')
  const words = [...unknownSides.keys()].slice(0, 5).map(quoted)
  const msg = `The column ${quoted(column)} says ${words.join(', ')} in ${rows} rows, which ${words.length === 1 ? 'is no known word' : 'are no known words'} of side. Known: ${KNOWN_SIDES}. If another column is the side, say so in columns.`
  throw new InvalidInput([{ loc: ['body', 'file', 'header', column], msg, type: 'unknown_side' }])
}

/** The error of a file of which no row is a usable trade. */
export function noTradesError(builder: LedgerBuilder): InvalidInput {
  const { counts, options } = builder
  const [first] = options.findings.list()
  if (!first) {
    const msg = counts.open > 0 ? openMessage(builder) : unfilledMessage(builder)
    return new InvalidInput([{ loc: ['body', 'file', 0], msg, type: 'no_trades' }])
  }
  const { row, code, field, text } = first
  const loc = ['body', 'file', row, ...(field === undefined ? [] : [field])]
  const known = code === 'unknown_side' ? ` Known: ${KNOWN_SIDES}.` : ''
  const shown = text === undefined ? '' : ` (${quoted(text)})`
  const msg = `No row is a usable trade. Row ${row}: ${code}${field ? ` in ${field}` : ''}${shown}.${known}`
  return new InvalidInput([{ loc, msg, type: code }])
}

function unfilledMessage({ has, name }: LedgerBuilder): string {
  if (!has('status')) return 'No row is a trade.'
  const column = quoted(name('status'))
  return `No order was filled: no row of ${column} says filled, closed or completed. If ${column} is no state of an order, say in columns "${name('status').slice(0, 40)}=ignore".`
}

/**
 * Throws InvalidInput for fills of which none closes a position, if the reason may be the reading: a column of unknown name
 * holds times, which may be those of the exits, or no column says which fills are sales.
 */
export function refuseUnsold(builder: LedgerBuilder): void {
  const { header, fills, has } = builder
  if (!isFills(header.layout) || fills.some(({ leg }) => leg === 'exit')) return
  const saysSide = has('side') || has('short') || has('long') || fills.some(({ sign }) => sign === -1)
  if (saysSide && header.unusedTimes.length === 0) return
  throw new InvalidInput([{ loc: ['body', 'file', 0], msg: openMessage(builder), type: 'no_trades' }])
}

/** Names what may be the exits of trades that all seem to be open. */
function openMessage({ header, has }: LedgerBuilder): string {
  const open = 'All trades are still open.'
  const unused = header.readings.filter(({ used_as: use, why }) => use === null && why !== 'it is empty')
  const some = unused.slice(0, 6).map(({ name }) => quoted(name))
  const others = some.length === 0 ? '' : ` Columns that are not used: ${some.join(', ')}.`
  if (!isFills(header.layout)) return `${open}${others}`
  if (!has('side') && !has('short') && !has('long'))
    return `${open} No column says which fills are sales, and no quantity is negative.${others} If one says it, name it in columns: "Name=side".`
  return `${open}${others} If each row is a round trip, say in columns which are the exits: "Name=exit_time, Name=exit_price".`
}

interface Jump {
  readonly symbol: number
  readonly row: number
  readonly from: number
  readonly to: number
}

/**
 * Throws InvalidInput if the price of fills without a symbol jumps 15-fold: they are probably of several instruments, and
 * matched with each other they make trades that never were. If the file names the symbol, the jump is only noted.
 */
export function refusePooled(builder: LedgerBuilder): void {
  const { header, options, name, symbolNames } = builder
  const jump = jumpOf(builder)
  if (!jump) return
  const { row, from, to } = jump
  const prices = `from ${from} to ${to} in row ${row}`
  const isNamed = header.instrumentColumns.length > 0
  if (!isNamed && options.symbol === undefined && isFills(header.layout)) {
    const msg = `No column names the instrument, and the price goes ${prices}: these are probably several instruments. If a column names them, say so in columns: "Name=symbol". If it is one, give its name as symbol.`
    throw new InvalidInput([{ loc: ['body', 'file', row, name('price')], msg, type: 'ambiguous_column' }])
  }
  const symbol = symbolNames[jump.symbol]
  const subject = symbol ? `All rows of ${symbol.slice(0, 40)}` : 'All rows'
  builder.assume(
    'one_instrument',
    `${subject} are read as one instrument, although the price goes ${prices}.`,
    'columns',
  )
}

/** The first jump between fills of a symbol that follow each other. They are in the order of time, or of the trades. */
function jumpOf({ fills }: LedgerBuilder): Jump | null {
  const last: number[] = []
  for (const { symbol, row, price } of fills) {
    const before = last[symbol]
    if (before !== undefined && (price >= MAX_JUMP * before || before >= MAX_JUMP * price))
      return { symbol, row, from: before, to: price }
    last[symbol] = price
  }
  return null
}
