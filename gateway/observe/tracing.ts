/**
 * Spans of the OpenTelemetry API. Without an SDK in the process they do nothing; load one with `node --import` to export
 * them. A span contains ids and codes, never a payment, a token or a body.
 */
import { ProxyTracerProvider, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Awaitable } from '../awaitable.ts'
import { ServiceError } from '../errors.ts'

const NAME = 'tollgate'
const tracer = trace.getTracer(NAME)

/** Whether an SDK is registered. Without one, the provider is a proxy that leads nowhere. */
function isExported(): boolean {
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(NAME) !== undefined
}

/**
 * Runs `work` inside a span. An error is recorded by its code and rethrown.
 * @example traced('admit', { id: 'c1', operation: 'getGold' }, () => admit(parts, entry))
 */
export function traced<Value>(
  name: string,
  call: { readonly id: string; readonly operation: string },
  work: () => Awaitable<Value>,
): Awaitable<Value> {
  if (!isExported()) return work()
  const attributes = { 'call.id': call.id, 'operation.id': call.operation }
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
