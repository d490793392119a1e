/** One 402, said in both versions of x402: as much of it as fits a header, and all of it in the body. */
import type { Catalog, Operation } from '../plugin/catalog.ts'
import type { ServiceError } from '../errors.ts'
import { type Bazaar, bazaar, type Detail, outputSchema, withPathParams } from './bazaar.ts'
import type { Offers, SignedOffer } from './signed-offers.ts'
import { formatOf, type PaymentRequirements, type RequirementFormat } from './payment-requirements.ts'

export interface Quote {
  /** Value of the PAYMENT-REQUIRED header: base64 of the v2 object. */
  readonly header: string
  /** The v2 object. */
  readonly v2: Readonly<Record<string, unknown>>
  /** The JSON body: a v1 object with code, message and retry beside its fields. */
  readonly v1: Readonly<Record<string, unknown>>
}

type Fields = Readonly<Record<string, unknown>>

/** Intermediaries drop longer headers: 2,048 characters of base64. */
const MOST_BYTES = 1_536
/** With signed offers in it 3,200: proxies that hold 4,096 bytes of all headers together are common. */
const MOST_SIGNED_BYTES = 2_400
/** What the name of the extension takes. */
const NAME_BYTES = 20
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

const OFFERS_SCHEMA = { type: 'object', required: ['offers'] } as const

const PAYMENT_IDENTIFIER = {
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

/** The quote for an address of the operation, and why it is given. */
export type Quoter = (url: string, error: ServiceError) => Quote

export interface QuoterParts {
  readonly operation: Operation
  readonly catalog: Catalog
  /** One per network. */
  readonly requirements: readonly PaymentRequirements[]
  readonly formats: readonly RequirementFormat[]
  readonly bareUrl: string
  /** Where a person reads on. */
  readonly docs: string
  /** Absent: nothing is signed. */
  readonly offers?: Offers
}

/** The maker of the 402s of one operation. */
export function createQuoter({
  operation,
  catalog,
  requirements,
  formats,
  bareUrl,
  docs,
  offers,
}: QuoterParts): Quoter {
  const schemaV1 = outputSchema(operation, catalog)
  const full = clipped([operation.summary, operation.description].filter(Boolean).join(' '))
  const offered = requirements.map((each) => formatOf(formats, each.network).acceptsV2(each))
  const offeredInV1 = requirements.filter(({ network }) => !network.v2Only)
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
        'payment-identifier': { info: { required: operation.identifier === 'required' }, ...PAYMENT_IDENTIFIER },
      },
    }
  }

  /** The most that fits; an address only makes it longer, so what does not fit the bare one is not tried again. */
  function fitting(url: string, error: string, from: number): { v2: Fields; header: string; level: number } {
    const signed = offers?.of(url, requirements) ?? []
    const reserved = signed.length === 0 ? 0 : NAME_BYTES + JSON.stringify(extensionOf(signed.slice(0, 1))).length
    for (let level = from; ; level++) {
      const v2 = objectOfV2(url, error, level)
      const bytes = Buffer.byteLength(JSON.stringify(v2))
      const fits = bytes <= MOST_BYTES && bytes + reserved <= MOST_SIGNED_BYTES
      if (!fits && level < DETAILS.length - 1) continue
      const whole = withOffers(v2, signed, MOST_SIGNED_BYTES - bytes)
      return { v2: whole, header: Buffer.from(JSON.stringify(whole)).toString('base64'), level }
    }
  }
  const { level: least } = fitting(bareUrl, '', 0)

  return (url, error) => {
    const said = error.reason ?? (error.code === 'payment_required' ? 'Payment required.' : error.message)
    const { v2, header } = fitting(url, said, least)
    const v1 = {
      ...error.fields,
      x402Version: 1,
      error: said,
      accepts: offeredInV1.map((each) =>
        formatOf(formats, each.network).acceptsV1(each, { url, description: full, outputSchema: schemaV1 }),
      ),
      code: error.code,
      message: error.code === 'payment_required' ? [error.message, hint].filter(Boolean).join(' ') : error.message,
      retry: error.retry,
      docs,
    }
    return { header, v1, v2 }
  }
}

/** The extension offer-receipt of a 402 (section 5.1 there). */
const extensionOf = (offers: readonly SignedOffer[]): Fields => ({ info: { offers }, schema: OFFERS_SCHEMA })

/** With as many signed offers as so many bytes hold, the leading network's first. */
function withOffers(v2: Fields, signed: readonly SignedOffer[], bytes: number): Fields {
  for (let count = signed.length; count > 0; count--) {
    const extension = { 'offer-receipt': extensionOf(signed.slice(0, count)) }
    if (JSON.stringify(extension).length > bytes) continue
    return { ...v2, extensions: { ...(v2['extensions'] as Fields), ...extension } }
  }
  return v2
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
