import type { Builder } from './builder.ts'

const UP = /^(?:long|buy|bought|bot|b|l|1|\+1|buy[ _]?to[ _]?(?:open|cover|close))$/i
const DOWN = /^(?:short|sell|sold|sld|s|-1|sell[ _]?short|sell[ _]?to[ _]?(?:open|close))$/i
const YES = /^(?:true|yes|1)$/i

/**
 * 1 for long or buy, -1 for short or sell, from a column of sides, a flag for shorts, a type that says buy or sell, or
 * the sign of the quantity; long where the file says nothing. Null and a finding where the side is not a side.
 */
export function readSide(builder: Builder, cells: readonly string[], row: number, qty: number): 1 | -1 | null {
  const { header, has, text, exclude, name } = builder
  if (has('side')) {
    const cell = text(cells, 'side')
    // LEAN's own numbers for the direction of a trade.
    if (header.layout === 'lean_trades' && /^[01]$/.test(cell)) return cell === '0' ? 1 : -1
    if (UP.test(cell)) return 1
    if (DOWN.test(cell)) return -1
    exclude(row, { code: 'missing_value', field: name('side') })
    return null
  }
  if (has('short')) return YES.test(text(cells, 'short')) ? -1 : 1
  const type = text(cells, 'type')
  if (UP.test(type)) return 1
  if (DOWN.test(type)) return -1
  return qty < 0 ? -1 : 1
}

/** Whether the quantity's own sign says the side, so that a negative one is no mistake. */
export function isSigned({ has, text }: Builder, cells: readonly string[]): boolean {
  if (has('side') || has('short')) return false
  const type = text(cells, 'type')
  return !UP.test(type) && !DOWN.test(type)
}

interface Signed {
  readonly row: number
  readonly sign: 1 | -1
  readonly qty: number
}

/**
 * Makes quantities positive, in place. A negative one beside a side is a mistake and its row is left out, unless
 * everything that is sold, and nothing else, is written so.
 */
export function settleSigns({ exclude, name }: Builder, items: Signed[]): void {
  const isConvention = items.every(({ qty, sign }) => !(qty * sign < 0))
  let kept = 0
  for (const item of items) {
    const isMistake = item.qty < 0 && !isConvention
    if (isMistake) exclude(item.row, { code: 'nonpositive_qty', field: name('qty') })
    else {
      items[kept] = item.qty < 0 ? { ...item, qty: -item.qty } : item
      kept += 1
    }
  }
  items.length = kept
}
