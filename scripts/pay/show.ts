/** What the person at the terminal sees: aligned labels, long answers cut. */
import { formatUnits } from 'viem/utils'
import type { Exchange } from './send.ts'

export interface Screen {
  /** One labelled line; further lines of the text stand under the first. */
  line(label: string, text: string): void
  title(text: string): void
}

const LABEL = 9
const LINES = 40
/** Wide enough for an access token, which is cut for nobody. */
const WIDTH = 1000
const SHORT = 160

export function createScreen(write: (text: string) => void, colour: boolean): Screen {
  const faint = (text: string): string => (colour ? `\u001b[2m${text}\u001b[22m` : text)
  const strong = (text: string): string => (colour ? `\u001b[1m${text}\u001b[22m` : text)
  return {
    title: (text) => write(`${strong(text)}\n`),
    line: (label, text) =>
      write(`${faint(label.padEnd(LABEL))} ${text.replaceAll('\n', `\n${' '.repeat(LABEL + 1)}`)}\n`),
  }
}

/** @example usdc(5000n) → '0.005' */
export function usdc(atomic: bigint): string {
  return formatUnits(atomic, 6)
}

/** What fits a line or two, cut between words. */
export function shorten(text: string): string {
  return text.length <= SHORT ? text : `${text.slice(0, SHORT).replace(/\s+\S*$/, '')} …`
}

/** The answer as JSON where it is JSON, else as text; null where it is neither. */
export function contentOf({ headers, body }: Exchange): unknown {
  const media = headers.get('content-type') ?? ''
  if (/[/+]json\b/.test(media))
    try {
      return JSON.parse(body.toString())
    } catch {
      return body.toString()
    }
  return /^text\/|xml|javascript/.test(media) ? body.toString() : null
}

/** A readable form of an answer, cut to 40 lines. */
export function excerpt(answer: Exchange): string {
  const content = contentOf(answer)
  if (answer.body.length === 0) return '(empty)'
  if (content === null) return `${answer.body.length} bytes of ${answer.headers.get('content-type') ?? 'unknown type'}`
  const lines = (typeof content === 'string' ? content : JSON.stringify(content, null, 2)).trimEnd().split('\n')
  const shown = lines.slice(0, LINES).map((line) => (line.length > WIDTH ? `${line.slice(0, WIDTH)}…` : line))
  const more = lines.length - shown.length
  return [...shown, ...(more > 0 ? [`… ${more} more lines (all with --json)`] : [])].join('\n')
}
