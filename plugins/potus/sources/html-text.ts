/** Converts the HTML of feeds to plain text. The fragments are small and their form is known, so scanning tags is enough. */

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '–',
  mdash: '—',
  lsquo: '‘',
  rsquo: '’',
  sbquo: '‚',
  ldquo: '“',
  rdquo: '”',
  bdquo: '„',
  hellip: '…',
  bull: '•',
  middot: '·',
  trade: '™',
  copy: '©',
  reg: '®',
  sect: '§',
  para: '¶',
  deg: '°',
  frac12: '½',
  frac14: '¼',
  eacute: 'é',
  aacute: 'á',
  iacute: 'í',
  oacute: 'ó',
  uacute: 'ú',
  ntilde: 'ñ',
  uuml: 'ü',
  ouml: 'ö',
  auml: 'ä',
  ccedil: 'ç',
  euro: '€',
  pound: '£',
  yen: '¥',
  cent: '¢',
  shy: '',
  zwnj: '',
  zwj: '',
}

const TAG = /<!--[\s\S]*?-->|<(\/?)([a-zA-Z][\w:-]*)((?:[^>"']|"[^"]*"|'[^']*')*)>/g
/** Elements that are skipped with their content. */
const SKIPPED = new Set(['script', 'style', 'nav', 'svg', 'form', 'noscript', 'button', 'iframe'])
/** The White House theme puts its menu into every entry. */
const TOPPER = /\bclass\s*=\s*["'][^"']*\bwp-block-whitehouse-topper(?![\w-])/
const VOID = new Set(['br', 'img', 'hr', 'input', 'meta', 'link', 'source', 'path'])
const PARAGRAPHS = new Set(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'table', 'blockquote', 'hr'])
const LINES = new Set(['div', 'li', 'tr', 'section', 'article', 'figure'])

/**
 * Text of an HTML fragment. Skips menus, scripts and drawings, and separates paragraphs with blank lines. Text without tags
 * keeps its line breaks.
 *
 * @example toText('<nav>menu</nav><p>One&nbsp;&amp; two<br>three</p>') // "One & two\nthree"
 */
export function toText(html: string): string {
  if (!/<[a-zA-Z!/]/.test(html)) return tidy(decode(html))
  let text = ''
  let at = 0
  let skipping: { readonly name: string; depth: number } | null = null
  for (const match of html.matchAll(TAG)) {
    if (!skipping) text += decode(html.slice(at, match.index).replace(/\s+/g, ' '))
    at = match.index + match[0].length
    const name = match[2]?.toLowerCase()
    if (name === undefined) continue
    const isEnd = match[1] === '/'
    const isAlone = VOID.has(name) || (match[3] ?? '').endsWith('/')
    if (skipping) {
      if (name !== skipping.name || isAlone) continue
      skipping.depth += isEnd ? -1 : 1
      if (skipping.depth === 0) skipping = null
    } else if (!isEnd && !isAlone && (SKIPPED.has(name) || TOPPER.test(match[3] ?? ''))) skipping = { name, depth: 1 }
    else if (PARAGRAPHS.has(name)) text += '\n\n'
    else if (name === 'br' || (LINES.has(name) && !/\n\s*$/.test(text.slice(-8)))) text += '\n'
  }
  if (!skipping) text += decode(html.slice(at).replace(/\s+/g, ' '))
  return tidy(text)
}

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z][a-z0-9]{1,10}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[name as string] ?? NAMED[(name as string).toLowerCase()] ?? whole
    const code = decimal === undefined ? parseInt(hex as string, 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
      ? western(String.fromCodePoint(code))
      : ''
  })
}

/** Characters 128 to 159 of Windows-1252, which HTML and many authors mean by these numbers. */
const WESTERN = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008DŽ\u008F\u0090‘’“”•–—˜™š›œ\u009DžŸ'

/**
 * Replaces control characters by those of Windows-1252.
 *
 * @example western('It\u0092s') // "It’s"
 */
export function western(text: string): string {
  return text.replace(/[\u0080-\u009F]/g, (control) => WESTERN.charAt(control.charCodeAt(0) - 0x80))
}

/** Normalises to NFC and ordinary spaces. Removes zero-width characters, spaces around line breaks, and extra blank lines. */
export function tidy(text: string): string {
  return text
    .normalize('NFC')
    .replace(/\r\n?/g, '\n')
    .replace(/[\u200B-\u200D\u2060\uFEFF\u00AD]/g, '')
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Text on one line, for titles. */
export function oneLine(text: string): string {
  return tidy(toText(text)).replace(/\s+/g, ' ')
}
