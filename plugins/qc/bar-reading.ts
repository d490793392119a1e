import type { BarReading } from '../../schemas/types.d.ts'
import type { BarTable } from '../lib/tables/bar-table.ts'
import type { Places } from './bar-places.ts'

interface ReadRows {
  /** The first row of the request. */
  readonly first: unknown
  /** The names of a table's columns. */
  readonly columns: readonly unknown[] | null
  readonly places: Places
  /** Whether the columns of arrays were recognised by their values. */
  readonly isByValue: boolean
  readonly notes: readonly string[]
}

/** How bars in JSON were read: each column of the first row, with what it is used as. */
export function readingOf({ first, columns, places, isByValue, notes }: ReadRows): BarReading {
  const isArray = Array.isArray(first)
  const names = columns ?? (isArray ? [...first.keys()] : Object.keys(first as object))
  const used = new Map(Object.entries(places).map(([field, place]) => [place, field]))
  const why = columns || !isArray ? null : isByValue ? 'by its values' : 'by its place'
  return {
    columns: names.slice(0, MAX_COLUMNS).map((name, index) => {
      const field = used.get(isArray ? index : (name as string))
      return { name: String(name), used_as: field ?? null, why: field === undefined ? 'not part of a bar' : why }
    }),
    notes: isByValue ? [...notes, orderNote(places)] : [...notes],
  }
}

/** More columns are not listed. */
const MAX_COLUMNS = 64

function orderNote(places: Places): string {
  if (places.open === 1 && places.high === 2 && places.low === 3)
    return 'The sixth value is between low and high in every bar, so it was taken for a mean price, and the seventh for the volume.'
  const order = (['time', 'open', 'high', 'low', 'close', 'volume'] as const)
    .filter((name) => places[name] !== undefined)
    .toSorted((a, b) => Number(places[a]) - Number(places[b]))
  return `The arrays were read as ${order.join(', ')}, because only then the high is the largest and the low the smallest price.`
}

/** How a file was read. */
export function readingOfTable(table: BarTable): BarReading {
  const notes: string[] = []
  if (!table.hasHeader) notes.push('The file has no header. Its columns were recognised by their values.')
  if (table.headerRows > 0) notes.push(`The first ${table.headerRows} rows belong to the header.`)
  if (table.assumedOrder) notes.push(`Dates such as 1/2/2024 were read with the ${table.assumedOrder} first.`)
  if (table.zoneName !== null) notes.push(`Times were read in ${table.zoneName}, which they name.`)
  return { columns: table.columns, notes }
}

/** What was assumed of times without a zone. */
export const zoneNote = (timezone: string | null): string =>
  `Times name no zone and were read in ${timezone ?? 'UTC. Send timezone if they are in another one'}.`
