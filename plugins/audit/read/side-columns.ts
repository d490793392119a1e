/** The column that says long or short, or buy or sell. It is chosen by the words that it holds. */
import { InvalidInput } from 'tollgate/plugin'
import type { ColumnContent } from '../../lib/tables/column-contents.ts'
import { quoted } from '../../lib/tables/column-names.ts'
import { ENTRY, EXIT, NAMES } from './column-words.ts'
import { type Columns, take } from './found-columns.ts'
import { isWeakSide, sideOf } from './side-words.ts'

const SIDE_NAMES = NAMES.side.split(' ')
const EXIT_NAMES: ReadonlySet<string> = new Set(NAMES.exitSide.split(' '))
const QUANTITIES: ReadonlySet<string> = new Set(NAMES.qty.split(' '))
/** The names that mean nothing but a side. Others are a side only if they hold sides. */
const SURE: ReadonlySet<string> = new Set(
  'side direction positionside tradedirection buysell tradeside marketpos marketposition longshort orderside buyorsell longorshort bs ls dir'.split(
    ' ',
  ),
)
/** Columns that may say "sell" without being the side of the trade. */
const NO_SIDE =
  /reason|signal|comment|note|tag|strategy|trend|regime|bias|label|setup|model|status|symbol|ticker|instrument|name|description|currency|coin|asset|liquidity|maker|aggressor/
/** Share of the cells of a column without a known name that must be words of side. */
const MOST = 0.9

/** Whether most cells of a column are words of side, and at least one of them is nothing else. */
export const holdsSides = (content: ColumnContent): boolean =>
  shareOf(content) >= 0.5 && (hasStrong(content) || hasBothSides(content))

const hasStrong = ({ values }: ColumnContent): boolean => [...values.keys()].some(isStrong)

const isStrong = (text: string): boolean => !isWeakSide(text) && sideOf(text) !== null

/**
 * Finds the column of sides, and the one of the sides of exits. Columns with a known name come first, if they hold words of
 * side; then any column that holds nearly nothing else. Throws InvalidInput if two columns could be it and contradict each
 * other, and for 0 and 1, which may mean either side.
 */
export function chooseSide(columns: Columns): { readonly opensStayOpen: boolean } {
  const { found, contents, parsed, uses } = columns
  if (found.side === undefined) {
    const all = parsed.map((_, index) => index).filter((index) => !uses.has(index))
    const exits = all.filter((index) => EXIT_NAMES.has(parsed[index]!.plain) && holdsSides(contents[index]!))
    if (exits[0] !== undefined && found.exitSide === undefined) take(columns, 'exitSide', exits[0])
    const named = SIDE_NAMES.flatMap((name) => all.filter((index) => parsed[index]!.plain === name && !uses.has(index)))
    const isSure = (index: number): boolean => SURE.has(parsed[index]!.plain)
    const byName = named.find(
      (index) =>
        holdsSides(contents[index]!) ||
        (isSure(index) && shareOf(contents[index]!) >= 0.5) ||
        (!parsed[index]!.plain.endsWith('type') && holdsLetters(contents[index]!)),
    )
    if (byName !== undefined) take(columns, 'side', byName)
    else takeByContent(columns, all)
    const bySign = named.find((index) => isSigns(contents[index]!) && hasQuantity(columns, index))
    if (found.side === undefined && bySign !== undefined) take(columns, 'side', bySign)
    // A statement may have more dividends and transfers than trades.
    const some = named.find((index) => !uses.has(index) && shareOf(contents[index]!) > 0 && hasStrong(contents[index]!))
    if (found.side === undefined && some !== undefined) take(columns, 'side', some)
    const sure = named.find((index) => isSure(index) && contents[index]!.kind !== 'empty')
    if (found.side === undefined && sure !== undefined && !saysLegsOnly(contents[sure]!)) take(columns, 'side', sure)
    for (const index of named)
      if (index !== found.side && holdsSides(contents[index]!))
        columns.reasons.set(index, `side is read from ${quoted(columns.names[found.side!]!)}`)
  }
  const side = found.side
  if (side === undefined) return { opensStayOpen: false }
  refuseFlags(columns, side)
  const read = [...contents[side]!.values.keys()].flatMap((text) => sideOf(text) ?? [])
  return { opensStayOpen: read.some(({ isOpening }) => isOpening) && read.some(({ isOpening }) => !isOpening) }
}

function takeByContent(columns: Columns, all: readonly number[]): void {
  const { parsed, contents, names, uses } = columns
  const candidates = all.filter((index) => {
    const { plain, words } = parsed[index]!
    if (uses.has(index) || NO_SIDE.test(plain) || words.some((word) => EXIT.has(word) || ENTRY.has(word))) return false
    return shareOf(contents[index]!) >= MOST && [...contents[index]!.values.keys()].some(isStrong)
  })
  const weak = all.filter((index) => !uses.has(index) && hasBothLetters(contents[index]!))
  const [first, second] = candidates.length > 0 ? candidates : weak
  if (first === undefined) return
  if (second !== undefined && contradict(columns, first, second)) {
    const [one, other] = [quoted(names[first]!), quoted(names[second]!)]
    const msg = `Both ${one} and ${other} hold words such as buy and sell, and they contradict each other. Say which is the side in columns: "${names[first]!.slice(0, 40)}=side".`
    throw new InvalidInput([{ loc: ['body', 'file', 'header'], msg, type: 'ambiguous_column' }])
  }
  const words = [...contents[first]!.values.keys()].slice(0, 3).join(', ')
  take(columns, 'side', first, `it holds words of side: ${words}`)
  if (second !== undefined) columns.reasons.set(second, `side is read from ${quoted(names[first]!)}`)
}

function shareOf({ values, filled }: ColumnContent): number {
  let known = 0
  for (const [text, times] of values) if (sideOf(text) !== null) known += times
  return filled === 0 ? 0 : known / filled
}

/** Whether short words of both sides occur, such as SS and BC. Numbers do not count: they may be quantities. */
function hasBothSides({ values }: ColumnContent): boolean {
  const orders = [...values.keys()].flatMap((text) => (/\d/.test(text) ? [] : (sideOf(text)?.order ?? [])))
  return orders.includes(1) && orders.includes(-1)
}

/** "B" and "S", "L" and "S": letters of both sides and nothing else. */
function hasBothLetters(content: ColumnContent): boolean {
  const letters = new Set([...content.values.keys()].map((text) => (text.toUpperCase() === 'S' ? 'S' : 'B')))
  return holdsLetters(content) && letters.size === 2
}

/** Whether every cell is "B", "S" or "L". A column whose name may say a side says it with one of them alone. */
const holdsLetters = ({ values }: ColumnContent): boolean =>
  values.size > 0 && [...values.keys()].every((text) => /^[bsl]$/i.test(text))

/** 1 and -1, and nothing else. */
const isSigns = ({ values }: ColumnContent): boolean =>
  values.size > 0 && [...values.keys()].every((text) => /^[-+\u2212]?1$/.test(text))

/** Whether another column is the quantity, so that 1 and -1 are none. */
const hasQuantity = ({ parsed, contents }: Columns, other: number): boolean =>
  parsed.some(({ plain }, index) => index !== other && QUANTITIES.has(plain) && contents[index]!.kind === 'number')

/** MetaTrader's direction says "in" and "out", which is no side. */
const saysLegsOnly = ({ values }: ColumnContent): boolean =>
  [...values.keys()].every((text) => /^(?:in|out|in\/out|entry|exit|open|close)$/i.test(text))

function contradict({ rows }: Columns, one: number, other: number): boolean {
  return rows.some((cells) => {
    const [first, second] = [sideOf(cells[one] ?? ''), sideOf(cells[other] ?? '')]
    return first !== null && second !== null && first.order !== second.order
  })
}

/** 0 and 1 are long and short in LEAN and MetaTrader, and the reverse in files that say whether a trade is long. */
function refuseFlags({ names, contents, parsed }: Columns, side: number): void {
  const texts = [...contents[side]!.values.keys()]
  const isLean = parsed.some(({ plain }) => plain === 'mae') && parsed.some(({ plain }) => plain === 'mfe')
  if (isLean || !texts.includes('0') || !texts.every((text) => text === '0' || text === '1')) return
  const name = names[side]!.slice(0, 40)
  const msg = `The column ${quoted(name)} holds 0 and 1. Say in columns which is which: "${name}=short" if 1 is short, "${name}=long" if 1 is long.`
  throw new InvalidInput([{ loc: ['body', 'file', 'header'], msg, type: 'ambiguous_column' }])
}
