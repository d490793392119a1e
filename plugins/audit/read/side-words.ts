/** The words with which exports say buy or sell, long or short. A new word is an entry in a list here. */

/** What a word of side says. */
export interface Side {
  /** 1 if an order with this word buys, -1 if it sells. */
  readonly order: 1 | -1
  /** 1 if a position with this word is long, -1 if it is short. "Buy to cover" buys, and the position is short. */
  readonly position: 1 | -1
  /** "Open Long": still open in lists that also say "Long" (AmiBroker), an entry elsewhere. */
  readonly isOpening: boolean
}

type Part = 'buy' | 'sell' | 'long' | 'short' | 'open' | 'close' | 'cover' | 'none'

const WORDS: Readonly<Record<Part, string>> = {
  buy: 'buy buys bought bot buying purchase purchased compra compras comprar compro comprado achat achats acheter kauf kaufen kaufe gekauft koop kopen aankoop kop kjop kob osto kupno zakup nakup acquisto acquisti alis покупка купля купить 買 買い 买 买入 買入 매수 bid',
  sell: 'sell sells sold sld sale selling venta ventas venda vendas vente ventes vender vendre vendido verkauf verkaufen verkaufe verkauft verkoop verkopen salj salg myynti sprzedaz prodej vendita vendite satis продажа продать 売 売り 卖 卖出 賣出 매도 ask',
  long: 'long lng longs largo',
  short: 'short shrt shorts corto',
  open: 'open opening opened enter entry entered',
  close: 'close closing closed exit exited cover covering liquidate liquidation reduce',
  cover: 'cover covering covered',
  none: 'to at market limit stop order mkt lmt trade position pos call put exempt the a',
}
/** Words that stand for several, and the parts they stand for. */
const SHORTHANDS: Readonly<Record<string, readonly Part[]>> = {
  bto: ['buy', 'open'],
  stc: ['sell', 'close'],
  sto: ['sell', 'open'],
  btc: ['buy', 'close'],
  ss: ['sell', 'short'],
  bc: ['cover'],
  leerverkauf: ['sell', 'short'],
  le: ['long', 'open'],
  lx: ['long', 'close'],
  se: ['short', 'open'],
  sx: ['short', 'close'],
  b: ['buy'],
  s: ['sell'],
  l: ['long'],
  a: ['sell'],
  '+1': ['buy'],
  '1': ['buy'],
  '-1': ['sell'],
}
/** Also symbols, quantities or initials. A column of nothing else is a column of sides only if its name says so. */
const WEAK: ReadonlySet<string> = new Set(
  'btc ss bc le lx se sx b s l a +1 1 -1 ask bid call put open close cover'.split(' '),
)

const PARTS = new Map<string, readonly Part[]>()
for (const [part, words] of Object.entries(WORDS))
  for (const word of words.split(' ')) {
    // A word can have two parts: to cover is to close.
    const key = word.normalize('NFKD')
    PARTS.set(key, [...(PARTS.get(key) ?? []), part as Part])
  }
for (const [word, parts] of Object.entries(SHORTHANDS)) PARTS.set(word, parts)
/** "BUYTOCOVER": words without anything between them. */
const JOINED = /^(?:buy|sell|open|close|exit|enter|entry|long|short|cover|to)+$/
const ONE = /buy|sell|open|close|exit|enter|entry|long|short|cover|to/g

/** Examples for messages. */
export const KNOWN_SIDES = 'buy, sell, long, short, BOT, SLD, "Sell Short", "Buy to Cover", "Open Long", "Close Short"'

/**
 * Reads a word of side, whatever its case and punctuation; null if it is not known. A part in brackets does not count:
 * "SELL (Ca.)" is a sale.
 *
 * @example sideOf('Close Short') // { order: 1, position: -1, isOpening: false }
 */
export function sideOf(text: string): Side | null {
  const parts = partsOf(wordsOf(text))
  if (parts === null) return null
  const has = (part: Part): boolean => parts.includes(part)
  const [isBuy, isSale, isLong, isShort] = [has('buy'), has('sell'), has('long'), has('short')]
  if (isLong && isShort) return turnOf(text)
  if (isBuy && isSale) return null
  const isClosing = has('close')
  const isOpening = has('open') && !isClosing
  if (has('cover')) return isSale || isLong ? null : { order: 1, position: -1, isOpening }
  if (isBuy) return { order: 1, position: isShort || isClosing ? -1 : 1, isOpening }
  if (isSale) return { order: -1, position: isLong || isClosing ? 1 : -1, isOpening }
  if (isLong) return { order: isClosing ? -1 : 1, position: 1, isOpening }
  if (isShort) return { order: isClosing ? 1 : -1, position: -1, isOpening }
  return null
}

/** Whether a word of side is also something else, such as a symbol or a quantity. */
export const isWeakSide = (text: string): boolean => /^\W*\d/.test(text) || WEAK.has(text.trim().toLowerCase())

/** "Long > Short" (Hyperliquid) sells, "Short > Long" buys. */
function turnOf(text: string): Side | null {
  const [, from] = /^\s*(long|short)\s*(?:->|>|→|to)\s*(?:long|short)\s*$/i.exec(text) ?? []
  if (from === undefined) return null
  const sign = from.toLowerCase() === 'long' ? -1 : 1
  return { order: sign, position: sign, isOpening: false }
}

function wordsOf(text: string): string[] {
  const trimmed = text.trim().replace(/^[\u2212\u2013]/, '-')
  if (Object.hasOwn(SHORTHANDS, trimmed)) return [trimmed]
  return trimmed
    .replace(/\([^)]*\)$/, '')
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll('ø', 'o')
    .replaceAll('ł', 'l')
    .replaceAll('ı', 'i')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
}

/** The parts of all words; null if a word is not known. */
function partsOf(words: readonly string[]): readonly Part[] | null {
  if (words.length === 0 || words.length > 5) return null
  const parts: Part[] = []
  for (const word of words) {
    const known = PARTS.get(word) ?? (words.length > 1 ? undefined : joinedParts(word))
    // A single letter or number is a word of side only if it is alone.
    if (known === undefined || (words.length > 1 && word.length < 2 && known[0] !== 'none')) return null
    parts.push(...known)
  }
  return parts
}

const joinedParts = (word: string): readonly Part[] | undefined =>
  JOINED.test(word) ? (word.match(ONE) ?? []).flatMap((one) => PARTS.get(one) ?? []) : undefined
