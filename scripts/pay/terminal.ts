/** The output for people: aligned labels, long answers cut. */
import { formatUnits } from 'viem/utils'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The whole answer; empty if it is a stream of events. */
  readonly body: Buffer
  /** The events as they come, if the answer is a stream of server-sent events. */
  readonly events: AsyncIterable<Uint8Array> | null
  readonly milliseconds: number
}

export interface Screen {
  /** Writes a labelled line; further lines of the text are indented below the first. */
  line(label: string, text: string): void
  title(text: string): void
}

const LABEL_WIDTH = 9
const MAX_LINES = 40
/** Wide enough for an access token, which must never be cut. */
const MAX_WIDTH = 1000
const SHORT_LENGTH = 160

/** Creates the screen. `write` receives whole lines; `colour` allows escape codes. */
export function createScreen(write: (text: string) => void, colour: boolean): Screen {
  const faint = (text: string): string => (colour ? `\u001b[2m${text}\u001b[22m` : text)
  const strong = (text: string): string => (colour ? `\u001b[1m${text}\u001b[22m` : text)
  return {
    title: (text) => write(`${strong(text)}\n`),
    line: (label, text) =>
      write(`${faint(label.padEnd(LABEL_WIDTH))} ${text.replaceAll('\n', `\n${' '.repeat(LABEL_WIDTH + 1)}`)}\n`),
  }
}

/**
 * Formats atomic units of USDC.
 *
 * @example usdc(5000n) // '0.005'
 */
export function usdc(atomic: bigint): string {
  return formatUnits(atomic, 6)
}

/** Cuts a text between words so that it fits a line or two. */
export function shorten(text: string): string {
  return text.length <= SHORT_LENGTH ? text : `${text.slice(0, SHORT_LENGTH).replace(/\s+\S*$/, '')} …`
}

/** Returns the answer parsed as JSON, or as text, or null if it is neither. */
export function contentOf({ headers, body }: Answer): unknown {
  const media = headers.get('content-type') ?? ''
  if (/[/+]json\b/.test(media))
    try {
      return JSON.parse(body.toString())
    } catch {
      return body.toString()
    }
  return /^text\/|xml|javascript/.test(media) ? body.toString() : null
}

/** Formats an answer for reading, cut to 40 lines. */
export function excerpt(answer: Answer): string {
  const content = contentOf(answer)
  if (answer.body.length === 0) return '(empty)'
  if (content === null) return `${answer.body.length} bytes of ${answer.headers.get('content-type') ?? 'unknown type'}`
  const lines = (typeof content === 'string' ? content : JSON.stringify(content, null, 2)).trimEnd().split('\n')
  const shown = lines
    .slice(0, MAX_LINES)
    .map((line) => (line.length > MAX_WIDTH ? `${line.slice(0, MAX_WIDTH)}…` : line))
  const more = lines.length - shown.length
  return [...shown, ...(more > 0 ? [`… ${more} more lines (all with --json)`] : [])].join('\n')
}
