/** PaymentRequirements of an operation, and the one 402 that serves x402 v1 and v2. */
import type { Catalog, Operation, OperationId } from '../catalog/catalog.ts'
import { ServiceError } from '../errors.ts'
import { type Bazaar, bazaar, type Detail, outputSchema, withPathParams } from './discovery.ts'
import type { Hex, Network, PaymentRequirements } from './payment.ts'

export interface Quote {
  /** Value of the PAYMENT-REQUIRED header: base64 of the v2 object. */
  readonly header: string
  /** The v2 object. */
  readonly v2: Readonly<Record<string, unknown>>
  /** The JSON body: a v1 object with code, message and retry beside its fields. */
  readonly v1: Readonly<Record<string, unknown>>
}

type Fields = Readonly<Record<string, unknown>>

/** How long a buyer may let a signature live. Enough for a slow product and a slow block. */
export const MAX_TIMEOUT_SECONDS = 300
/** Intermediaries drop longer headers. */
const HEADER_CHARACTERS = 2_048
/** A longer address is quoted without its query. */
const URL_CHARACTERS = 2_000
const DESCRIPTION_CHARACTERS = 500

/** Tried in this order until the header is short enough. */
const DETAILS: readonly (Detail & { readonly description: boolean })[] = [
  { description: true, answer: true, output: true, request: true, input: 'words' },
  { description: true, answer: false, output: true, request: true, input: 'words' },
  { description: true, answer: false, output: false, request: true, input: 'words' },
  { description: false, answer: false, output: false, request: true, input: 'words' },
  { description: false, answer: false, output: false, request: true, input: 'rules' },
  { description: false, answer: false, output: false, request: true, input: 'types' },
  { description: false, answer: false, output: false, request: false, input: 'types' },
  { description: false, answer: false, output: false, request: false, input: 'nothing' },
]

const PAYMENT_IDENTIFIER = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128 },
    },
    required: ['required'],
  },
} as const

/** What is asked for an operation. Throws where it is free. */
export function createRequirements(operation: Operation, network: Network, payTo: Hex): PaymentRequirements {
  if (operation.price === null) throw new Error(`${operation.id} is free and asks for no payment`)
  return { scheme: 'exact', network, amount: operation.price, payTo, maxTimeoutSeconds: MAX_TIMEOUT_SECONDS }
}

/** The v2 `accepts` entry. */
export function offerOfV2({ scheme, network, amount, payTo, maxTimeoutSeconds }: PaymentRequirements): Fields {
  const { caip2, asset, domain } = network
  return { scheme, network: caip2, amount: String(amount), asset, payTo, maxTimeoutSeconds, extra: domain }
}

/** The v1 `accepts` entry; what is asked for is described inside it. */
export function offerOfV1(
  { scheme, network, amount, payTo, maxTimeoutSeconds }: PaymentRequirements,
  resource: { readonly url: string; readonly description: string; readonly outputSchema?: Fields },
): Fields {
  return {
    scheme,
    network: network.name,
    maxAmountRequired: String(amount),
    resource: resource.url,
    description: resource.description,
    mimeType: 'application/json',
    ...(resource.outputSchema ? { outputSchema: resource.outputSchema } : {}),
    payTo,
    maxTimeoutSeconds,
    asset: network.asset,
    extra: network.domain,
  }
}

export interface QuoteParts {
  readonly catalog: Catalog
  readonly network: Network
  readonly payTo: Hex
  /** Public address without a trailing slash. */
  readonly baseUrl: string
}

/**
 * Returns the maker of 402s for one catalog. The plain challenge of an operation at its bare address is built once; an
 * address with a query or another error builds what differs. `error` is the x402 reason where there is one, else a
 * sentence.
 */
export function createQuotes(parts: QuoteParts): (operation: Operation, url: string, error: ServiceError) => Quote {
  const { catalog, network, payTo, baseUrl } = parts
  const plain = new ServiceError('payment_required')
  const offers = new Map<OperationId, { readonly quote: Offer; readonly bareUrl: string; readonly bare: Quote }>()

  function offerOf(operation: Operation) {
    const known = offers.get(operation.id)
    if (known) return known
    const bareUrl = baseUrl + operation.path
    const requirements = createRequirements(operation, network, payTo)
    const quote = createOffer({ operation, catalog, requirements, bareUrl, docs: `${baseUrl}/docs` })
    const offer = { quote, bareUrl, bare: quote(bareUrl, plain) }
    offers.set(operation.id, offer)
    return offer
  }

  return (operation, url, error) => {
    const { quote, bareUrl, bare } = offerOf(operation)
    const isPlain = error.code === plain.code && error.message === plain.message
    if (isPlain && url === bareUrl) return bare
    return quote(url.length > URL_CHARACTERS ? url.replace(/\?.*$/s, '') : url, error)
  }
}

type Offer = (url: string, error: ServiceError) => Quote

interface OfferParts {
  readonly operation: Operation
  readonly catalog: Catalog
  readonly requirements: PaymentRequirements
  readonly bareUrl: string
  /** Where a person reads on. */
  readonly docs: string
}

function createOffer({ operation, catalog, requirements, bareUrl, docs }: OfferParts): Offer {
  const schemaV1 = outputSchema(operation, catalog)
  const full = clipped([operation.summary, operation.description].filter(Boolean).join(' '))
  const offered = [offerOfV2(requirements)]
  const service = serviceOf(catalog, operation)
  const hint = limitHint(operation)

  const described: Bazaar[] = []

  function objectOfV2(url: string, error: string, level: number): Fields {
    const detail = DETAILS[level] as (typeof DETAILS)[number]
    const description = detail.description ? full : clipped(operation.summary)
    const general = (described[level] ??= bazaar(operation, catalog, detail))
    const params = paramsOf(operation, url, bareUrl)
    return {
      x402Version: 2,
      error,
      resource: { url, description, mimeType: 'application/json', ...service },
      accepts: offered,
      extensions: {
        bazaar: params ? withPathParams(general, params) : general,
        'payment-identifier': PAYMENT_IDENTIFIER,
      },
    }
  }

  /** The most that fits; an address only makes it longer, so what does not fit the bare one is not tried again. */
  function headed(url: string, error: string, from: number): { v2: Fields; header: string; level: number } {
    for (let level = from; ; level++) {
      const v2 = objectOfV2(url, error, level)
      const header = Buffer.from(JSON.stringify(v2)).toString('base64')
      if (header.length <= HEADER_CHARACTERS || level === DETAILS.length - 1) return { v2, header, level }
    }
  }
  const { level: least } = headed(bareUrl, '', 0)

  return (url, error) => {
    const said = error.reason ?? (error.code === 'payment_required' ? 'Payment required.' : error.message)
    const { v2, header } = headed(url, said, least)
    const v1 = {
      ...error.fields,
      x402Version: 1,
      error: said,
      accepts: [offerOfV1(requirements, { url, description: full, outputSchema: schemaV1 })],
      code: error.code,
      message: error.code === 'payment_required' ? [error.message, hint].filter(Boolean).join(' ') : error.message,
      retry: error.retry,
      docs,
    }
    return { header, v1, v2 }
  }
}

/** Clients refuse, by default, prices above a limit of their own; a buyer who is told can raise it. */
function limitHint({ price, priceText }: Operation): string {
  if (price === null || price <= 100_000n) return ''
  const which = price > 1_000_000n ? '0.10 USDC in v1 clients, 1 USDC in v2 clients' : '0.10 USDC in v1 clients'
  return `The price of ${priceText} USDC is above the default limit of x402 clients (${which}): raise yours.`
}

/** Service name and tags by the rules of indexers: printable ASCII, 32 characters, five tags. */
function serviceOf({ service }: Catalog, { tags }: Operation): Fields {
  const serviceName = [service.title, service.name].find(fits)
  const fitting = [...new Set(tags.map((tag) => tag.toLowerCase()))].filter(fits).slice(0, 5)
  return { ...(serviceName ? { serviceName } : {}), ...(fitting.length > 0 ? { tags: fitting } : {}) }
}

function fits(text: string): boolean {
  return /^[\x20-\x7e]{1,32}$/.test(text)
}

/** Values of the path parameters in this address; null at the bare address, where the example speaks. */
function paramsOf({ path }: Operation, url: string, bareUrl: string): Fields | null {
  if (url === bareUrl || !path.includes('{')) return null
  const names = path.split('/')
  const values = new URL(url).pathname.split('/').slice(-names.length)
  const pairs = names.flatMap((name, at): [string, string][] =>
    name.startsWith('{') ? [[name.slice(1, -1), decoded(values[at] ?? '')]] : [],
  )
  return Object.fromEntries(pairs)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function clipped(text: string): string {
  if (text.length <= DESCRIPTION_CHARACTERS) return text
  return `${text.slice(0, DESCRIPTION_CHARACTERS - 1).replace(/\s+\S*$/, '')}…`
}
