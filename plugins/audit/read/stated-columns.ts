/** The uses of columns that the caller states. */
import { InvalidInput } from 'tollgate/plugin'
import { quoted } from '../../lib/tables/column-names.ts'
import { type Field, NAMES } from './column-words.ts'
import { type Columns, snakeCase, take } from './found-columns.ts'

/** Fees whose sign the caller states. */
const SIGNED_FEES: Readonly<Record<string, 1 | -1>> = { fees_paid_positive: 1, fees_paid_negative: -1 }
const FIELDS = new Map<string, Field>(
  [...Object.keys(NAMES), 'clock'].map((field) => [snakeCase(field), field as Field]),
)

/** Everything that a column can be said to be. */
export const USES: readonly string[] = [...FIELDS.keys(), ...Object.keys(SIGNED_FEES), 'ignore']

export interface StatedFees {
  readonly columns: readonly number[]
  /** The sign of a fee that is paid; null if the caller does not say. */
  readonly sign: 1 | -1 | null
}

/**
 * Gives columns the uses that the caller states. Returns those that are fees. Throws InvalidInput for a column that the
 * file does not have, a use that does not exist, and two columns with one use that needs one.
 */
export function applyStatedColumns(columns: Columns, stated: ReadonlyMap<string, string>): StatedFees {
  const fees: number[] = []
  let sign: StatedFees['sign'] = null
  for (const [name, written] of stated) {
    const use = written.toLowerCase()
    const index = indexOf(columns, name)
    const field = FIELDS.get(use)
    if (use === 'ignore') columns.uses.set(index, { as: 'ignore', why: 'the request says so' })
    else if (use === 'fees' || Object.hasOwn(SIGNED_FEES, use)) {
      fees.push(index)
      columns.uses.set(index, { as: 'fees', why: 'the request says so' })
      sign = SIGNED_FEES[use] ?? sign
    } else if (field === undefined) throw unknownUse(name, written)
    else if (columns.found[field] === undefined) take(columns, field, index, 'the request says so')
    else {
      const other = columns.names[columns.found[field]]!
      throw refusal(
        name,
        `columns says that both ${quoted(other)} and ${quoted(name)} are ${use}. Only fees can be several.`,
      )
    }
  }
  return { columns: fees, sign }
}

function indexOf({ names, parsed }: Columns, name: string): number {
  const lower = name.toLowerCase()
  const places = [
    names.indexOf(name),
    names.findIndex((one) => one.toLowerCase() === lower),
    parsed.findIndex(({ plain }) => plain !== '' && plain === lower.replaceAll(/[^\p{L}\p{N}]/gu, '')),
  ]
  const index = places.find((place) => place >= 0)
  if (index !== undefined) return index
  const list = names.slice(0, 30).map(quoted).join(', ')
  throw refusal(name, `The file has no column ${quoted(name)}. It has ${list}.`)
}

const unknownUse = (name: string, use: string): InvalidInput =>
  refusal(name, `A column cannot be ${quoted(use)}. It can be ${USES.join(', ')}.`)

const refusal = (name: string, msg: string): InvalidInput =>
  new InvalidInput([{ loc: ['body', 'columns', name], msg, type: 'unknown_column' }])
