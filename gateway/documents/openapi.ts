/** /openapi.json: OpenAPI 3.1 of every listed operation, with prices as indexers read them (`x-payment-info`). */
import { type Catalog, type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import { type Bundle, createBundle } from './bundle.ts'
import { groups } from './listing.ts'
import { describeOperation } from './operation.ts'
import type { Place } from './parts.ts'
import { capNotes, howToPay, MCP_NOTE, tokenNotes } from './paying.ts'

const VERSION = '3.1.1'

/** The OpenAPI document. Prices stand at `x-payment-info`; the catalog version at `info.x-catalog-version`. */
export function openapi(catalog: Catalog, place: Place) {
  const { service } = catalog
  const bundle = createBundle(catalog.schemas, '#/components/schemas/')
  const tagged = groups(catalog)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { title, operations } of tagged)
    for (const operation of operations)
      (paths[operation.path] ??= {})[operation.method.toLowerCase()] = describeOperation(operation, title, {
        bundle,
        place,
        plans: plansFor(operation, catalog),
      })
  const words = [
    service.description,
    ...service.notes,
    howToPay(place),
    ...capNotes(catalog),
    ...tokenNotes(catalog),
    MCP_NOTE,
  ]
  return {
    openapi: VERSION,
    info: {
      title: `${service.name}: ${service.title}`,
      summary: service.summary,
      description: words.join('\n\n'),
      version: service.version,
      ...(service.contact === undefined ? {} : { contact: contactOf(service.contact) }),
      ...(service.license === undefined ? {} : { license: { name: service.license } }),
      'x-catalog-version': catalog.version,
      'x-guidance': [howToPay(place), ...capNotes(catalog)].join(' '),
    },
    servers: [{ url: place.baseUrl }],
    tags: tagsOf(tagged),
    paths,
    components: components(bundle),
  }
}

/** Each name once, as OpenAPI wants it: two products may have one title. */
function tagsOf(tagged: ReturnType<typeof groups>): { readonly name: string; readonly description: string }[] {
  const names = new Map(tagged.toReversed().map(({ title, summary }) => [title, summary]))
  return [...names].toReversed().map(([name, description]) => ({ name, description }))
}

/** Plans whose token opens the operation. */
function plansFor(operation: Operation, { plans }: Catalog): readonly string[] {
  return plans.plans.filter(({ authorizes }) => authorizes.includes(operation.id)).map(({ plan }) => plan)
}

function contactOf(contact: string): Record<string, string> {
  return contact.includes('@') ? { email: contact.replace(/^mailto:/, '') } : { url: contact }
}

const header = (description: string) => ({ description, schema: { type: 'string', contentEncoding: 'base64' } })
const key = (name: string, description: string) => ({ type: 'apiKey', in: 'header', name, description })

function components(bundle: Bundle) {
  const json = (definition: string) => ({
    'application/json': { schema: bundle.add({ $ref: `common.json#/$defs/${definition}` }, 'openapi') },
  })
  const responses = {
    PaymentRequired: {
      description: 'Payment required, or the payment or token was refused; `code` says which. Nothing was charged.',
      headers: { 'PAYMENT-REQUIRED': { $ref: '#/components/headers/PaymentRequired' } },
      content: json('PaymentRequired'),
    },
    ValidationError: {
      description: 'A parameter or the body fails validation. Nothing was charged.',
      content: json('ValidationError'),
    },
    Error: {
      description:
        'Any other refusal or failure; `retry` says what to do next. Nothing was charged, unless it says same_payment.',
      content: json('Error'),
    },
  }
  return {
    schemas: bundle.schemas,
    responses,
    headers: {
      PaymentRequired: header('x402 v2 PaymentRequired object, base64 of JSON.'),
      PaymentResponse: header('Receipt: x402 SettlementResponse object, base64 of JSON.'),
    },
    securitySchemes: {
      paymentSignature: key('PAYMENT-SIGNATURE', 'x402 v2 PaymentPayload, base64 of JSON.'),
      payment: key('X-PAYMENT', 'x402 v1 PaymentPayload, base64 of JSON.'),
      serviceToken: key(TOKEN_HEADER, 'Access token of a plan, as the purchase returned it.'),
    },
  }
}
