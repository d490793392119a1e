/** JSON logs. A line names calls and payments by id; it never contains a payment header, a token or a body. */
import { type DestinationStream, type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino'
import { sourceStack } from './source-positions.ts'

/**
 * Creates a logger that writes to standard output by default.
 * @example createLog('info').info({ call: 'c1' }, 'ready') → {"level":"info","time":"2026-…Z","call":"c1","msg":"ready"}
 */
export function createLog(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: errorFields },
      formatters: { level: (label) => ({ level: label }) },
      redact: ['headers', 'req.headers', 'credential', 'signature', 'token', 'body', '*.headers.authorization'],
    },
    destination ?? pino.destination({ dest: 1, sync: false }),
  )
}

/** An error as it is logged. The positions in its stack are those in the sources. */
function errorFields(error: Error): unknown {
  const fields: unknown = stdSerializers.err(error)
  if (typeof fields !== 'object' || fields === null || !('stack' in fields)) return fields
  return { ...fields, stack: sourceStack(String(fields.stack)) }
}
