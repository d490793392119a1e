/**
 * Spans of the OpenTelemetry API. Without an SDK in the process they do nothing; load one with `node --import` to export
 * them. A span contains ids and codes, never a payment, a token or a body.
 */
import { type Attributes, SpanStatusCode, trace } from '@opentelemetry/api'
import { ServiceError } from '../errors.ts'

const tracer = trace.getTracer('tollgate')

/**
 * Runs `work` inside a span. An error is recorded by its code and rethrown.
 * @example traced('admit', { 'call.id': 'c1' }, () => admit(parts, entry))
 */
export function traced<Value>(name: string, attributes: Attributes, work: () => Promise<Value>): Promise<Value> {
  return tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work()
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : 'internal'
      span.setStatus({ code: SpanStatusCode.ERROR, message: code })
      throw error
    } finally {
      span.end()
    }
  })
}
