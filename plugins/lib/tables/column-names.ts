import { InvalidInput } from 'tollgate/plugin'

/** The name of a column, taken apart. */
export interface ColumnName {
  /** Its words in lower case, without accents, currency and zone. "%" is the word "percent". */
  readonly words: readonly string[]
  /** The words without anything between them. */
  readonly plain: string
  /** The currency that it names: "USDT" for "Fee (USDT)"; null if none. */
  readonly currency: string | null
  /** Minutes east of UTC that it names: 0 for "Date(UTC)"; null if none. */
  readonly zone: number | null
}

/** Currencies that names of columns carry. */
const CURRENCIES = new Set(
  'usd eur gbp jpy chf aud cad nzd sek nok dkk pln czk huf try zar brl mxn inr cny cnh hkd sgd krw twd thb rub ils aed sar usdt usdc busd fdusd tusd dai btc xbt eth bnb'.split(
    ' ',
  ),
)
const SIGNS: Readonly<Record<string, string>> = { $: 'USD', '€': 'EUR', '£': 'GBP', '¥': 'JPY', '₹': 'INR' }
const ZONE = /(?<!\p{L})(?:utc|gmt)(?!\p{L})(?:\s*([+-]\d{1,2})(?::?(\d\d))?)?/iu

/** No export has longer names. What is read of a name takes a time that grows faster than it. */
export const MAX_NAME = 80

/** Whether a text is a code of a currency that is often traded or paid with. */
export const isCurrency = (text: string): boolean => CURRENCIES.has(text.toLowerCase())

/**
 * Takes the name of a column apart.
 *
 * @example columnName('Fee (USDT)') // { words: ['fee'], plain: 'fee', currency: 'USDT', zone: null }
 */
export function columnName(whole: string): ColumnName {
  const name = whole.slice(0, MAX_NAME)
  const spaced = name.replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
  const [zoned, hours, minutes = '0'] = ZONE.exec(spaced) ?? []
  const sign = /[$€£¥₹]/.exec(name)?.[0]
  const words = (zoned === undefined ? spaced : spaced.replace(zoned, ' '))
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll('%', ' percent ')
    .replaceAll('ß', 'ss')
    .replaceAll('ø', 'o')
    .replaceAll('ł', 'l')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
  const unit = words.length > 1 ? words.find(isCurrency) : undefined
  const rest = unit === undefined ? words : words.filter((word) => word !== unit)
  const hour = Number(hours ?? 0)
  return {
    words: rest,
    plain: rest.join(''),
    currency: unit?.toUpperCase() ?? (sign === undefined ? null : (SIGNS[sign] ?? null)),
    zone: zoned === undefined ? null : hour * 60 + Math.sign(hour || 1) * Number(minutes),
  }
}

/** A column name without case, accents, spaces, punctuation, currency and zone. "%" is "percent". */
export const plainName = (name: string): string => columnName(name).plain

/** A column name in quotes, cut to 40 characters. */
export const quoted = (name: string): string => JSON.stringify(name.slice(0, 40))

/** Throws InvalidInput if two columns have the same name, whatever its case. Columns without a name may repeat. */
export function assertDistinctNames(names: readonly string[], file: 'file' | 'bars' = 'file'): void {
  const seen = new Set<string>()
  for (const name of names) {
    const key = name.toLowerCase()
    if (name !== '' && seen.has(key))
      throw new InvalidInput([
        { loc: ['body', file, 'header'], msg: `Two columns have the name ${quoted(name)}.`, type: 'duplicate_column' },
      ])
    seen.add(key)
  }
}
