/** The columns that name the instrument. Rows of two instruments must never be matched with each other. */
import { InvalidInput } from 'tollgate/plugin'
import type { ColumnContent } from '../../lib/tables/column-contents.ts'
import { quoted } from '../../lib/tables/column-names.ts'
import { NAMES, NOT_NEEDED } from './column-words.ts'
import { type Columns, take } from './found-columns.ts'

const KNOWN = NAMES.symbol.split(' ')
/** Names that say a kind of instrument or a number in some files, so that only text is an instrument. */
const NEEDS_TEXT: ReadonlySet<string> = new Set(
  'contracts market asset description item column activo ativo titulo'.split(' '),
)
/** Codes that each belong to one instrument, whatever the symbol says. */
const CODES: ReadonlySet<string> = new Set('isin wkn cusip sedol figi conid localsymbol'.split(' '))
/** Words in the names of columns whose text varies like an instrument, but is none. */
const OTHER: ReadonlySet<string> = new Set(
  'account acct konto broker exchange venue route strategy strat signal reason comment comments memo note notes tag tags setup session status state type typ currency ccy date time day user id ids order orders trade trades leg side direction action position class category sector liquidity maker taker mode result outcome win loss source platform bot timeframe interval wallet network chain header label trial variant zone year month week hour trend regime pattern emotion mistake mistakes rating grade discriminator aggressor capacity country region tif force settle settlement level open close code codes role ref reference entry exit tz timezone period model system portfolio group book desk trader page'.split(
    ' ',
  ),
)
/** Names of orders: "Entry", "Stop1", "Profit target", "Exit Long". */
const ORDER = /^(?:entry|exit|stop|target|profit|close)(?:\b|\d|_)/i
const CODE = /^(?=.*\d)[A-Z0-9 ]{4,24}$/
/** Numbers of instruments, such as IBKR's conid. */
const NUMBER_CODE = /^\d{4,12}$/
const TICKER = /^[A-Z0-9][A-Z0-9.:/_^=-]{0,19}$/

/**
 * Finds the columns that name an instrument together: the symbol, and for options and futures the expiry, the strike and
 * the right. A code of each instrument, such as the ISIN, comes in place of a symbol that several of them share.
 */
export function chooseInstrument(columns: Columns): readonly number[] {
  const { found, contents, parsed, uses, names, reasons } = columns
  if (found.symbol === undefined) {
    const candidates = KNOWN.flatMap((name) =>
      parsed.flatMap(({ plain }, index) => (plain === name && canName(columns, index) ? [index] : [])),
    )
    const [first] = candidates
    const finer =
      first === undefined ? undefined : candidates.find((index) => index !== first && isFiner(columns, first, index))
    if (finer !== undefined) take(columns, 'symbol', finer, `several of its values share one ${quoted(names[first!]!)}`)
    else if (first !== undefined) take(columns, 'symbol', first)
    else takeTicker(columns)
    for (const index of candidates)
      if (!uses.has(index)) reasons.set(index, `the instrument is read from ${quoted(names[found.symbol!]!)}`)
  }
  if (found.symbol === undefined) return []
  const parts = (['expiry', 'strike', 'right'] as const).flatMap((field) => {
    const stated = found[field]
    if (stated !== undefined) return [stated]
    const known = NAMES[field].split(' ')
    const index = parsed.findIndex(({ plain }, place) => known.includes(plain) && !uses.has(place))
    if (index < 0 || contents[index]!.kind === 'empty') return []
    const isRight = field !== 'expiry' || contents[index]!.kind === 'time' || contents[index]!.kind === 'number'
    if (!isRight || contents[index]!.kind === 'percent') return []
    take(columns, field, index)
    return [index]
  })
  return [found.symbol, ...parts]
}

function canName({ parsed, contents, uses }: Columns, index: number): boolean {
  const { kind } = contents[index]!
  if (uses.has(index) || kind === 'empty' || kind === 'percent' || kind === 'clock' || kind === 'flag') return false
  if (parsed[index]!.plain === 'name' && [...contents[index]!.values.keys()].some((text) => ORDER.test(text)))
    return false
  if (kind === 'text' || kind === 'currency' || !NEEDS_TEXT.has(parsed[index]!.plain)) return true
  // "1INCHUSDT" looks like an amount with its unit.
  return (
    parsed[index]!.plain !== 'contracts' && [...contents[index]!.values.keys()].every((text) => /[A-Z]{2}/i.test(text))
  )
}

/**
 * Whether a code, or the description of an option, tells apart rows that the first column gives one name. Each code must
 * belong to one name: a column of other things is not finer.
 */
function isFiner({ parsed, rows, contents }: Columns, first: number, other: number): boolean {
  const isCode = CODES.has(parsed[other]!.plain) && [...contents[other]!.values.keys()].every((text) => CODE.test(text))
  const isGroup = /underlying|market|asset|product|contract$|^name$/.test(parsed[first]!.plain)
  const isDescription = /description|^contractname$|^symbol$|^ticker$|instrumentname/.test(parsed[other]!.plain)
  if (!isCode && !isGroup && !isDescription) return false
  const [details, owners] = [new Map<string, string>(), new Map<string, string>()]
  let isFiner = false
  for (const cells of rows) {
    const [name = '', detail = ''] = [cells[first], cells[other]]
    if (name === '' || detail === '') continue
    const known = details.get(name) ?? detail
    details.set(name, known)
    if ((owners.get(detail) ?? name) !== name) return false
    owners.set(detail, name)
    if (known !== detail && (isCode || isGroup || (isOption(known) && isOption(detail)))) isFiner = true
  }
  return isFiner
}

/** "SPY 1/17/2025 Call $450.00", "SPY 17JAN25 450 C". */
const isOption = (text: string): boolean => /\b(?:call|put)s?\b/i.test(text) || /\d[ ]?[CP]$/.test(text)

/** Takes the one column of unknown name that holds tickers which repeat. */
function takeTicker(columns: Columns): void {
  const { contents } = columns
  const likely = namesOf(columns).filter((index) =>
    [...contents[index]!.values.keys()].every((text) => TICKER.test(text)),
  )
  const [only, second] = likely
  if (only === undefined || second !== undefined || namesOf(columns).length > 1) return
  const some = [...contents[only]!.values.keys()].slice(0, 3).join(', ')
  take(columns, 'symbol', only, `it holds names that repeat: ${some}`)
}

/** Columns of unknown name with text that varies as the name of an instrument does: at least two values, which repeat. */
function namesOf({ parsed, contents, uses }: Columns): number[] {
  return parsed.flatMap(({ plain, words }, index) => {
    if (uses.has(index) || NOT_NEEDED.has(plain) || words.some((word) => OTHER.has(word))) return []
    return variesLikeNames(contents[index]!) ? [index] : []
  })
}

/** Columns of unknown name with whole numbers of four digits and more that all repeat, as codes of instruments do. */
function codesOf({ parsed, contents, uses }: Columns): number[] {
  return parsed.flatMap(({ plain, words }, index) => {
    const { values, filled } = contents[index]!
    if (uses.has(index) || NOT_NEEDED.has(plain) || words.some((word) => OTHER.has(word))) return []
    const areCodes = [...values].every(([text, times]) => times > 1 && NUMBER_CODE.test(text))
    return areCodes && values.size >= 2 && filled >= 4 ? [index] : []
  })
}

function variesLikeNames({ kind, values, filled }: ColumnContent): boolean {
  if (kind !== 'text' && kind !== 'currency') return false
  return values.size >= 2 && values.size <= 0.8 * filled
}

/**
 * Throws InvalidInput if no column is the instrument of fills for sure, but one of unknown name varies like one: matched
 * with each other, the fills of several instruments would make trades that never were.
 */
export function refuseUnnamedInstruments(columns: Columns): void {
  const likely = [...namesOf(columns), ...codesOf(columns)]
  if (likely.length === 0) return
  const names = likely.map((index) => columns.names[index]!.slice(0, 40))
  const some = [...columns.contents[likely[0]!]!.values.keys()].slice(0, 3).map((text) => text.slice(0, 30))
  const msg = `No column is the instrument for sure, and ${names.map(quoted).join(', ')} may be it (${some.join(', ')}). If so, say so in columns: "${names[0]!}=symbol". If all rows are of one instrument, give its name as symbol.`
  throw new InvalidInput([{ loc: ['body', 'file', 'header', names[0]!], msg, type: 'ambiguous_column' }])
}
