/** JSON logs. A line names calls and payments by id; it never contains a payment header, a token or a body. */
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import { sourceStack } from './source-positions.ts'

/**
 * Lines are written together: after this many bytes, or after this time. A fatal line and the end of the process wait for
 * neither. A write wakes a thread, which costs as much as several calls, so that a batch is worth some hundred lines.
 */
const BATCH_BYTES = 65_536
const BATCH_MS = 200

/**
 * Creates a logger that writes to standard output by default, in batches.
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
 * Lines go to the batch as buffers. pino's destination measures a batch of text whenever a line is added, which copies all
 * of it: with batches of 8 kB that was a third of the garbage of a small call.
 */
function standardOutput(): DestinationStream & { flushSync(): void } {
  const options = {
    sync: false,
    minLength: BATCH_BYTES,
    maxWrite: 2 * BATCH_BYTES,
    contentMode: 'buffer',
  } as const
  const batches = pino.destination({ dest: 1, ...options })
  // Once nobody reads, for example because the terminal is gone, lines are dropped: they must not pile up or end anything.
  let isRead = true
  const onError = ({ code }: NodeJS.ErrnoException): void => void (isRead &&= code !== 'EIO' && code !== 'EPIPE')
  batches.on('error', onError)
  const flush = batches.flushSync.bind(batches)
  batches.flushSync = () => {
    try {
      if (isRead) flush()
    } catch (error) {
      onError(error as Error)
    }
  }
  // pino's own interval would write, and wake a thread, five times a second for good, also if there is no line.
  let waiting: NodeJS.Timeout | null = null
  const writeWaiting = (): void => {
    waiting = null
    batches.flush()
  }
  return {
    write(line) {
      if (!isRead) return
      batches.write(Buffer.from(line) as unknown as string)
      waiting ??= setTimeout(writeWaiting, BATCH_MS).unref()
    },
    flushSync: () => batches.flushSync(),
  }
}

let written = { at: 0, text: '' }

/** The time of a line, written once per millisecond: under load many lines share one. */
function timestamp(): string {
  const at = Date.now()
  if (at !== written.at) written = { at, text: `,"time":"${new Date(at).toISOString()}"` }
  return written.text
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
