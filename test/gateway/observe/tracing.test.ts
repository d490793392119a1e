import { type Attributes, type Context, type Span, type SpanOptions, trace, type Tracer } from '@opentelemetry/api'
import { expect } from 'chai'
import { buy } from '../../support/agent.ts'
import { openGateway } from '../../support/gateway.ts'

interface RecordedSpan {
  readonly name: string
  readonly attributes: Attributes
  message: string | undefined
  ended: boolean
}

describe('a trace', () => {
  const spans: RecordedSpan[] = []

  before(() => {
    const startActiveSpan = (name: string, options: SpanOptions, work: (span: Span) => unknown): unknown => {
      const record: RecordedSpan = { name, attributes: options.attributes ?? {}, message: undefined, ended: false }
      spans.push(record)
      return work({
        setStatus: ({ message }: { message?: string }) => (record.message = message),
        end: () => (record.ended = true),
      } as unknown as Span)
    }
    const tracer = { startActiveSpan, startSpan: (_name: string, _options?: SpanOptions, _context?: Context) => null }
    trace.setGlobalTracerProvider({ getTracer: () => tracer as unknown as Tracer })
  })
  after(() => trace.disable())

  it('has a span for admission, handler and settlement of a paid call, with its ids and nothing else', async () => {
    const shop = await openGateway()
    const paid = await buy(`${shop.url}/v1/echo/a`, shop.wallet)
    const attributes = { 'call.id': paid.headers.get('x-call-id'), 'operation.id': 'getEcho' }
    const finished = { attributes, message: undefined, ended: true }
    expect(spans.splice(0)).to.deep.equal(['admit', 'handle', 'settle'].map((name) => ({ name, ...finished })))

    await buy(`${shop.url}/v1/echo`, shop.wallet, 2, { method: 'POST', body: { text: 'a', fault: 'throw' } })
    expect(spans.map(({ name, message, ended }) => [name, message, ended])).to.deep.equal([
      ['admit', undefined, true],
      ['handle', 'product_failed', true],
    ])
    await shop.close()
  })
})
