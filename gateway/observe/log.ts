/** The logs. A line names calls and payments by id; it never contains a payment header, a token or a body. */
import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import { sourceStack } from './source-positions.ts'
import { TerminalLog } from './terminal.ts'

/**
 * Lines are written together: after this many bytes, or after this time. A fatal line and the end of the process wait for
 * neither. A write wakes a thread, which costs as much as several calls, so that a batch is worth some hundred lines.
 */
const BATCH_BYTES = 65_536
const BATCH_MS = 200

/** The part of the configuration that is about the log. */
export interface LogSettings {
  readonly logLevel: string
  /** `auto` is `text` on a terminal, and otherwise `json`. */
  readonly logFormat: 'auto' | 'json' | 'text'
}

/** Removes what the progress of a start has left in the last line of a terminal. */
const CLEAR_LINE = '\r\u001b[K'

/** Creates the logger of a process, which writes to standard output: lines for people on a terminal, and otherwise JSON. */
export function openLog({ logLevel, logFormat }: LogSettings): Logger {
  const isTerminal = isatty(1)
  if (logFormat === 'json' || (logFormat === 'auto' && !isTerminal)) return createLog(logLevel)
  const output = standardOutput(() => text.flush(), isTerminal ? CLEAR_LINE : '')
  const text = new TerminalLog({
    write: (line) => output.write(line),
    colour: isTerminal && process.stdout.hasColors(),
    isVerbose: logLevel === 'debug' || logLevel === 'trace',
  })
  const destination = { write: (line: string) => text.write(line), flushSync: () => output.flushSync() }
  // Refusals are logged as debug.
  return createLog(logLevel === 'info' ? 'debug' : logLevel, destination)
}

/**
 * Creates a logger of JSON lines that writes to standard output by default, in batches.
 * @example createLog('info').info({ call: 'c1' }, 'ready') → {"level":"info","time":"2026-…Z","call":"c1","msg":"ready"}
 */
export function createLog(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp,
      serializers: { err: errorFields },
      formatters: { level: (label) => ({ level: label }) },
      redact: ['headers', 'req.headers', 'credential', 'signature', 'token', 'body'],
    },
    destination ?? standardOutput(),
  )
}

/**
 * Keeps lines as text until a batch of them is written: a buffer for each line would cost more than the line.
 * @param beforeFlush called before what is left is written at the end of the process
 * @param start begins every batch
 */
function standardOutput(beforeFlush = (): void => {}, start = ''): DestinationStream & { flushSync(): void } {
  const output = pino.destination({ dest: 1, sync: false, maxWrite: 2 * BATCH_BYTES, contentMode: 'buffer' })
  // Without a reader, for example once the terminal is gone, lines are dropped: they must not pile up or end anything.
  let isRead = true
  const onError = ({ code }: NodeJS.ErrnoException): void => void (isRead &&= code !== 'EIO' && code !== 'EPIPE')
  output.on('error', onError)
  let lines: string[] = []
  let size = 0
  // pino's own interval would write, and wake a thread, five times a second for good, also if there is no line.
  let waiting: NodeJS.Timeout | null = null
  const writeLines = (): void => {
    if (waiting) clearTimeout(waiting)
    waiting = null
    if (isRead && size > 0) output.write(Buffer.from(start + lines.join('')) as unknown as string)
    lines = []
    size = 0
  }
  // pino calls one of these at the end of the process: the first if the event loop is empty, else the second.
  const [flush, flushSync] = [output.flush.bind(output), output.flushSync.bind(output)]
  output.flush = (done) => {
    beforeFlush()
    writeLines()
    flush(done)
  }
  output.flushSync = () => {
    try {
      if (!isRead) return
      beforeFlush()
      writeLines()
      flushSync()
    } catch (error) {
      onError(error as Error)
    }
  }
  return {
    write(line) {
      if (!isRead) return
      lines.push(line)
      size += line.length
      if (size >= BATCH_BYTES) writeLines()
      else waiting ??= setTimeout(writeLines, BATCH_MS).unref()
    },
    flushSync: () => output.flushSync(),
  }
}

let written = { second: 0, text: '' }

/** The time of a line. The part up to the second is written once a second: under load, hundreds of lines share it. */
function timestamp(): string {
  const at = Date.now()
  const second = Math.floor(at / 1000)
  if (second !== written.second)
    written = { second, text: `,"time":"${new Date(at).toISOString().slice(0, -'000Z'.length)}` }
  return `${written.text}${String(at % 1000).padStart(3, '0')}Z"`
}

/** An error as it is logged: without authorization, and with the positions in its stack as they are in the sources. */
function errorFields(error: Error): unknown {
  const fields = stdSerializers.err(error) as unknown
  if (typeof fields !== 'object' || fields === null || !('stack' in fields)) return fields
  const shown = { ...fields, stack: sourceStack(String(fields.stack)) }
  const { headers } = shown as { readonly headers?: unknown }
  if (typeof headers !== 'object' || headers === null || !('authorization' in headers)) return shown
  return { ...shown, headers: { ...headers, authorization: '[Redacted]' } }
}
