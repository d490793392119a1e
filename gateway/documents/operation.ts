/** One operation as OpenAPI writes it. */
import type { Operation } from '../plugin/catalog.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import type { Bundle } from './bundle.ts'
import { dollars, hasInput, isPriced, type PricedOperation } from './listing.ts'
import type { Place } from './parts.ts'
import { CURRENCY, namesOf, payeesFor } from './paying.ts'

interface Surroundings {
  readonly bundle: Bundle
  readonly place: Place
  /** Plans whose token opens the operation. */
  readonly plans: readonly string[]
}

/** An OpenAPI 3.1 Operation Object under one tag. */
export function describeOperation(operation: Operation, tag: string, { bundle, place, plans }: Surroundings) {
  const parameters = [...parametersIn('path', operation, bundle), ...parametersIn('query', operation, bundle)]
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: describe(operation, place, plans),
    tags: [tag],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(operation.body === null ? {} : { requestBody: requestBody(operation, operation.body, bundle) }),
    responses: responses(operation, bundle),
    security: isPriced(operation) ? securityOf(plans) : [],
    ...(isPriced(operation) ? { 'x-payment-info': paymentInfo(operation, place) } : {}),
    ...(operation.tool === null ? {} : { 'x-mcp-tool': operation.tool }),
    ...(operation.maxFreshnessSeconds > 0 ? { 'x-max-freshness-seconds': operation.maxFreshnessSeconds } : {}),
  }
}

function describe(operation: Operation, place: Place, plans: readonly string[]): string {
  const price = isPriced(operation)
    ? `Price: $${dollars(operation.price)} in ${CURRENCY} on ${namesOf(payeesFor(operation, place))}.`
    : ''
  const covered = plans.length > 0 ? `Unmetered with a token of ${plans.join(', ')}.` : ''
  const age =
    operation.maxFreshnessSeconds > 0 ? `Data are at least ${operation.maxFreshnessSeconds / 3600} hours old.` : ''
  return [operation.description, price, covered, age].filter(Boolean).join(' ')
}

function parametersIn(place: 'path' | 'query', operation: Operation, bundle: Bundle): readonly object[] {
  const schema = place === 'path' ? operation.params : operation.query
  const examples = operation.example?.request[place === 'path' ? 'params' : 'query'] ?? {}
  if (schema === null) return []
  return bundle.properties(schema, operation.id).map(({ name, required, schema }) => ({
    name,
    in: place,
    required: place === 'path' || required,
    ...(typeof schema['description'] === 'string' ? { description: schema['description'] } : {}),
    schema,
    ...(name in examples ? { example: examples[name] } : {}),
  }))
}

/** The example belongs to the first media type; the others carry the same fields in another form. */
function requestBody(operation: Operation, body: JsonSchema, bundle: Bundle): object {
  const schema = bundle.add(body, operation.id)
  const example = operation.example?.request.body
  const content = operation.bodyMedia.map((media, index) => [
    media,
    isRaw(media)
      ? { schema: rawSchema(media), ...(typeof example === 'string' ? { example } : {}) }
      : { schema, ...(index === 0 && example !== undefined ? { example } : {}) },
  ])
  return { required: true, content: Object.fromEntries(content) as object }
}

/** Sent as it is, without fields. */
const isRaw = (media: string): boolean => !/json$|^multipart\/|form-urlencoded$/.test(media)

const rawSchema = (media: string): object =>
  media.startsWith('text/') ? { type: 'string' } : { type: 'string', contentMediaType: media }

function responses(operation: Operation, bundle: Bundle): object {
  const { response, view, example } = operation
  const media = response?.['contentMediaType']
  const [type, schema]: [string, JsonSchema] =
    view === null
      ? [typeof media === 'string' ? media : 'application/json', response ?? { type: 'object' }]
      : ['text/html', { type: 'string' }]
  return {
    '200': {
      description: operation.summary,
      ...(isPriced(operation)
        ? { headers: { 'PAYMENT-RESPONSE': { $ref: '#/components/headers/PaymentResponse' } } }
        : {}),
      content: {
        [type]: {
          schema: bundle.add(schema, operation.id),
          ...(example?.response === undefined ? {} : { example: example.response }),
        },
      },
    },
    ...(isPriced(operation) ? { '402': shown('PaymentRequired') } : {}),
    ...(isPriced(operation) || hasInput(operation) ? { '422': shown('ValidationError') } : {}),
    '429': shown('Error'),
    default: shown('Error'),
  }
}

const shown = (response: string) => ({ $ref: `#/components/responses/${response}` })

/** Any one of the entries will do: a v2 payment, a v1 payment, or a token of a plan. */
function securityOf(plans: readonly string[]): readonly object[] {
  return [{ paymentSignature: [] }, { payment: [] }, ...(plans.length > 0 ? [{ serviceToken: [] }] : [])]
}

/** Price in dollars for people and indexers, and in atomic units in `offers`. */
function paymentInfo(operation: PricedOperation, place: Place): object {
  return {
    protocols: [{ x402: {} }],
    price: { mode: 'fixed', currency: 'USD', amount: dollars(operation.price) },
    offers: payeesFor(operation, place).map(({ network, payTo }) => ({
      method: 'x402',
      intent: 'charge',
      scheme: 'exact',
      network: network.caip2,
      currency: network.asset,
      amount: operation.price.toString(),
      payTo,
      description: operation.summary,
    })),
  }
}
