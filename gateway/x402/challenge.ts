/**
 * The challenge: the 402 that says what an operation costs and how to pay, in both versions of x402. The v1 object is
 * the body. The v2 object goes into the header PAYMENT-REQUIRED, with as much detail as fits there.
 */
import { LRUCache } from 'lru-cache'
import type { Network } from '../config/networks.ts'
import { type Recipient, type Recipients, recipientsOf } from '../config/pay-to.ts'
import { ServiceError } from '../errors.ts'
import type { Catalog, Operation, OperationId } from '../plugin/catalog.ts'
import { promisesFreshData, writtenFreshData } from '../catalog/fresh-data.ts'
import { type Bazaar, bazaar, type Detail, outputSchema, withPathParams } from './bazaar.ts'
import {
  createRequirements,
  formatOf,
  offeredOn,
  type PaymentRequirements,
  type RequirementFormat,
} from './payment-requirements.ts'
import { SIGN_IN_WITH_X, type SignInChallenge, TRIAL_STATEMENT } from './sign-in-with-x.ts'
import type { Offers, SignedOffer } from './signed-offers.ts'

/** One 402, ready to be sent. */
export interface Quote {
  /** Value of the PAYMENT-REQUIRED header: base64 of the v2 object. */
  readonly header: string
  /** The v2 object. */
  readonly v2: Readonly<Record<string, unknown>>
  /** The JSON body: a v1 object with code, message and retry beside its fields. */
  readonly v1: Readonly<Record<string, unknown>> & { readonly accepts: readonly Readonly<Record<string, unknown>>[] }
}

/** Which freshness requirement is not met. "report": the product could not say. */
export type Missing = 'newest' | 'sources' | 'coverage' | 'report'

/** The part of a 402 about the data. The same object until that changes. */
export interface FreshnessNotice {
  readonly status: 'fresh' | 'stale' | 'unknown'
  readonly missing: readonly Missing[]
}

export interface ChallengeParts extends Recipients {
  readonly catalog: Catalog
  /** One per network. */
  readonly formats: readonly RequirementFormat[]
  /** False while nothing can be settled on a network: it is left out if another one can settle. Default: always true. */
  readonly isReady?: (network: Network) => boolean
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Signs the offers; without it nothing is signed. */
  readonly offers?: Offers
  /** Writes the challenge of a refusal that a wallet can answer by signing in. */
  readonly signInChallenge?: SignInChallenge
}

/** The 402s of one catalog. They name addresses without their query: the price does not depend on it. */
export interface Challenges {
  /**
   * Writes the 402 for a call of an operation at an address. `error` says why it is refused, `notice` how fresh the data
   * are, if that is promised.
   */
  write(operation: Operation, url: string, error: ServiceError, notice?: FreshnessNotice): Quote
  /** Returns what writes the 402s for calls of one address without a payment. Keep it for an address that is often called. */
  at(operation: Operation, url: string): (notice?: FreshnessNotice) => Quote
}

/** 3,200 characters of base64: many proxies hold 4,096 bytes for all headers together. */
const MAX_BYTES = 2_400
const MAX_DESCRIPTION_CHARACTERS = 500

/**
 * Tried in this order until the header is short enough. A shortened example is shown with a schema that it keeps to:
 * without the least number of items, and as an outline without what is in a field.
 */
const DETAILS: readonly (Detail & { readonly description: boolean })[] = [
  { description: true, answer: 'whole', output: 'rules', request: 'whole', input: 'full' },
  { description: true, answer: 'short', output: 'types', request: 'whole', input: 'full' },
  { description: true, answer: 'short', output: 'fields', request: 'whole', input: 'full' },
  { description: false, answer: 'short', output: 'fields', request: 'whole', input: 'rules' },
  { description: false, answer: 'short', output: 'fields', request: 'whole', input: 'types' },
  { description: false, answer: 'outline', output: 'fields', request: 'whole', input: 'types' },
  { description: false, answer: 'outline', output: 'fields', request: 'whole', input: 'fields' },
  { description: false, answer: 'outline', output: 'fields', request: 'short', input: 'types' },
  { description: false, answer: 'outline', output: 'fields', request: 'outline', input: 'fields' },
  { description: false, answer: 'first', output: 'first', request: 'whole', input: 'fields' },
  { description: false, answer: 'first', output: 'first', request: 'outline', input: 'fields' },
  { description: false, answer: 'first', output: 'none', request: 'whole', input: 'fields' },
  { description: false, answer: 'first', output: 'none', request: 'first', input: 'fields' },
  { description: false, answer: 'none', output: 'none', request: 'none', input: 'none' },
]

const OFFERS_SCHEMA = { type: 'object', required: ['offers'] } as const

const PAYMENT_IDENTIFIER = {
  schema: {
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128 },
    },
    required: ['required'],
  },
} as const

/** Most calls without a payment get exactly this refusal, so its 402 is built once per operation. */
const PLAIN = new ServiceError('payment_required')

/** 402s of addresses with path parameters that are kept. Anybody can ask for any address, so not more, and no long ones. */
const KEPT_ADDRESSES = 2_000
const MAX_ADDRESS_CHARACTERS = 300

/** An operation as it is offered while certain networks can settle. */
interface Offered {
  readonly write: (url: string, error: ServiceError, notice?: FreshnessNotice) => Quote
  readonly bareUrl: string
  /** The 402s for calls of the bare address without a payment. */
  readonly plain: Plain
}

/** The 402s for calls of one address without a payment. */
interface Plain {
  readonly write: Offered['write']
  readonly url: string
  /**
   * By what they say about the data, with the period in which their offers were signed. Inputs differ in it, so calls may
   * alternate. Equal notices are the same object, and there are few.
   */
  readonly quotes: Map<FreshnessNotice | undefined, DatedQuote>
}

interface DatedQuote {
  readonly quote: Quote
  readonly periodStart: number
}

const newPlain = (write: Offered['write'], url: string): Plain => ({ write, url, quotes: new Map() })

/**
 * Creates the 402s of one catalog. The 402 of an operation at its bare address is built once for each state of the data,
 * and renewed when its signed offers run out. So are those of the last addresses with path parameters that were asked for.
 * Another error is written per call.
 */
export function createChallenges(parts: ChallengeParts): Challenges {
  const { catalog, formats, isReady, baseUrl, offers, signInChallenge } = parts
  const recipients = recipientsOf(parts)
  const offeredNow = new Map<OperationId, () => Offered>()
  /** By operation and address. */
  const kept = new LRUCache<string, Plain>({ max: KEPT_ADDRESSES })

  function quoteOf(plain: Plain, notice: FreshnessNotice | undefined): Quote {
    const periodStart = offers?.periodStart() ?? 0
    const known = plain.quotes.get(notice)
    if (known?.periodStart === periodStart) return known.quote
    const quote = plain.write(plain.url, PLAIN, notice)
    plain.quotes.set(notice, { quote, periodStart })
    return quote
  }

  /** Returns how an operation is offered now. It is prepared once for each set of networks that can settle. */
  function offeredBy(operation: Operation): () => Offered {
    const known = offeredNow.get(operation.id)
    if (known) return known
    // A free route has a 402 only to ask who calls.
    const possible = operation.price === null ? [] : offeredOn(operation, recipients)
    const byNetworks = new Map<string, Offered>()
    const prepared = (): Offered => {
      const ready = readyRecipients(possible, isReady)
      const names = ready.map(({ network }) => network.name).join()
      let offered = byNetworks.get(names)
      if (!offered) byNetworks.set(names, (offered = prepare(operation, ready)))
      return offered
    }
    let only: Offered | null = null
    const current = possible.length > 1 && isReady ? prepared : (): Offered => (only ??= prepared())
    offeredNow.set(operation.id, current)
    return current
  }

  function prepare(operation: Operation, ready: readonly Recipient[]): Offered {
    const bareUrl = baseUrl + operation.path
    const requirements = ready.map(({ network, payTo }) =>
      createRequirements(operation, formatOf(formats, network), payTo),
    )
    const docs = `${baseUrl}/docs`
    const signing = { ...(offers ? { offers } : {}), ...(signInChallenge ? { signInChallenge } : {}) }
    const write = createWriter({ operation, catalog, requirements, formats, bareUrl, docs, ...signing })
    return { write, bareUrl, plain: newPlain(write, bareUrl) }
  }

  /** The 402s of an address, if they are kept. */
  function plainOf({ id }: Operation, { write, bareUrl, plain }: Offered, address: string): Plain | null {
    if (address === bareUrl) return plain
    if (address.length > MAX_ADDRESS_CHARACTERS) return null
    const key = `${id} ${address}`
    const known = kept.get(key)
    if (known?.write === write) return known
    const made = newPlain(write, address)
    kept.set(key, made)
    return made
  }

  return {
    write(operation, url, error, notice) {
      const offered = offeredBy(operation)()
      const address = withoutQuery(url)
      const isPlain = error.code === PLAIN.code && error.message === PLAIN.message
      const plain = isPlain ? plainOf(operation, offered, address) : null
      return plain ? quoteOf(plain, notice) : offered.write(address, error, notice)
    },
    at(operation, url) {
      const current = offeredBy(operation)
      const address = withoutQuery(url)
      let offered = current()
      let plain = address === offered.bareUrl ? offered.plain : newPlain(offered.write, address)
      return (notice) => {
        const now = current()
        if (now !== offered) {
          offered = now
          plain = address === now.bareUrl ? now.plain : newPlain(now.write, address)
        }
        return quoteOf(plain, notice)
      }
    },
  }
}

function withoutQuery(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? url : url.slice(0, mark)
}

/** Recipients on networks that can settle now. If none can, all of them: a price is shown even during an outage. */
function readyRecipients(offered: readonly Recipient[], isReady: ChallengeParts['isReady']): readonly Recipient[] {
  if (offered.length === 1 || !isReady) return offered
  const ready = offered.filter(({ network }) => isReady(network))
  return ready.length === 0 ? offered : ready
}

interface WriterParts {
  readonly operation: Operation
  readonly catalog: Catalog
  /** One per network. */
  readonly requirements: readonly PaymentRequirements[]
  readonly formats: readonly RequirementFormat[]
  readonly bareUrl: string
  /** Address of the documentation for people. */
  readonly docs: string
  readonly offers?: Offers
  readonly signInChallenge?: SignInChallenge
}

/** Returns the writer of 402s for one operation. */
function createWriter(parts: WriterParts) {
  const { operation, catalog, requirements, formats, bareUrl, docs, offers, signInChallenge } = parts
  const description = shorten([operation.summary, operation.description].filter(Boolean).join(' '))
  const acceptsV2 = requirements.map((each) => formatOf(formats, each.network).acceptsV2(each))
  const requirementsV1 = requirements.filter(({ network }) => !network.v2Only)
  const schemaV1 = outputSchema(operation, catalog)
  const service = serviceOf(catalog, operation)
  const hint = limitHint(operation)
  const mimeType = mediaTypeOf(operation)
  const extensions: Bazaar[] = []

  function objectV2(url: string, error: string, level: number, more: Fields = {}): Fields {
    const detail = DETAILS[level] as (typeof DETAILS)[number]
    const extension = (extensions[level] ??= bazaar(operation, catalog, detail))
    const params = pathParamsOf(operation, url, bareUrl)
    return {
      x402Version: 2,
      error,
      resource: {
        url,
        description: detail.description ? description : shorten(operation.summary),
        mimeType,
        ...service,
      },
      accepts: acceptsV2,
      extensions: {
        bazaar: params ? withPathParams(extension, params) : extension,
        'payment-identifier': { info: { required: operation.identifier === 'required' }, ...PAYMENT_IDENTIFIER },
        ...more,
      },
    }
  }

  /** The v2 object with the most detail that fits the header, starting at level `from`. */
  function fitHeader(
    url: string,
    error: string,
    from: number,
    signed: readonly SignedOffer[],
    notice?: FreshnessNotice,
    more?: Fields,
  ): { v2: Fields; header: string; level: number } {
    for (let level = from; ; level++) {
      const v2 = objectV2(url, error, level, more)
      const bytes = Buffer.byteLength(JSON.stringify(v2))
      if (bytes > MAX_BYTES && level < DETAILS.length - 1) continue
      const withSigned = withOffers(v2, signed, MAX_BYTES - bytes)
      const whole = notice ? withFreshness(withSigned, operation, notice, MAX_BYTES) : withSigned
      return { v2: whole, header: Buffer.from(JSON.stringify(whole)).toString('base64'), level }
    }
  }

  /** The v2 object with a challenge, and with the least detail: its reader knows the route. */
  function askToSignIn(url: string, error: string): { v2: Fields; header: string } {
    const { extensions, ...fields } = objectV2(url, error, DETAILS.length - 1)
    const challenge = signInChallenge ? { [SIGN_IN_WITH_X]: signInChallenge(url) } : {}
    const v2 = { ...fields, extensions: { ...(extensions as Fields), ...challenge } }
    return { v2, header: Buffer.from(JSON.stringify(v2)).toString('base64') }
  }

  // Any other address is longer than the bare one, so detail that does not fit here fits nowhere.
  const { level: firstLevel } = fitHeader(bareUrl, '', 0, [])

  return (url: string, error: ServiceError, notice?: FreshnessNotice): Quote => {
    const isPaymentRequired = error.code === 'payment_required'
    const advice = [hint, notice?.status === 'stale' ? STALE_HINT : ''].filter(Boolean).join(' ')
    const reason = error.reason ?? (isPaymentRequired ? 'Payment required.' : error.message)
    const signed = offers?.of(url, requirements) ?? []
    const more =
      signInChallenge && isTrialOffered(error) ? { [SIGN_IN_WITH_X]: signInChallenge(url, TRIAL_STATEMENT) } : {}
    const { v2, header } =
      error.code === 'sign_in_required'
        ? askToSignIn(url, reason)
        : fitHeader(url, reason, firstLevel, signed, notice, more)
    const v1 = {
      ...error.fields,
      x402Version: 1,
      error: reason,
      accepts: requirementsV1.map((each) =>
        formatOf(formats, each.network).acceptsV1(each, { url, description, mimeType, outputSchema: schemaV1 }),
      ),
      code: error.code,
      message: isPaymentRequired ? [error.message, advice].filter(Boolean).join(' ') : error.message,
      retry: error.retry,
      ...(notice ? { freshness: freshnessOf(operation, notice) } : {}),
      ...(signed.length > 0 ? { extensions: { 'offer-receipt': offerExtension(signed) } } : {}),
      docs,
    }
    return { header, v1, v2 }
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Whether a wallet that signs in need not pay. What is left is known only of a caller whose trial is used up. */
function isTrialOffered({ fields }: ServiceError): boolean {
  const trial = fields['trial'] as { readonly by: string; readonly left?: number } | undefined
  return trial?.by === 'wallet' && trial.left === undefined
}

const STALE_HINT =
  'At present the data are not fresh enough to be sold: do not pay now, it would be refused with 503 and not charged. Ask again later; /health has the state.'

/** The part of a 402 about the data: which freshness is promised, and which requirement is not met at present. */
function freshnessOf(operation: Operation, { status, missing }: FreshnessNotice): Fields {
  const required = promisesFreshData(operation) ? { required: writtenFreshData(operation.fresh) } : {}
  return { status, missing, ...required }
}

/** The extension offer-receipt of a 402 (extension offer-receipt, section 5.1). */
const offerExtension = (offers: readonly SignedOffer[]): Fields => ({ info: { offers }, schema: OFFERS_SCHEMA })

/** Adds as many signed offers as fit into so many bytes, the first network's first. The body has all of them. */
function withOffers(v2: Fields, signed: readonly SignedOffer[], bytes: number): Fields {
  for (let count = signed.length; count > 0; count--) {
    const extension = { 'offer-receipt': offerExtension(signed.slice(0, count)) }
    if (JSON.stringify(extension).length > bytes) continue
    return { ...v2, extensions: { ...(v2['extensions'] as Fields), ...extension } }
  }
  return v2
}

/** Adds how fresh the data are, if that fits into so many bytes. The body of the 402 says it in any case. */
function withFreshness(v2: Fields, operation: Operation, notice: FreshnessNotice, bytes: number): Fields {
  const extensions = { ...(v2['extensions'] as Fields), freshness: { info: freshnessOf(operation, notice) } }
  const whole = { ...v2, extensions }
  return Buffer.byteLength(JSON.stringify(whole)) <= bytes ? whole : v2
}

/** x402 clients refuse prices above a default limit. A buyer who knows can raise it. */
function limitHint({ price, priceText }: Operation): string {
  if (price === null || price <= 100_000n) return ''
  const limits = price > 1_000_000n ? '0.10 USDC in v1 clients, 1 USDC in v2 clients' : '0.10 USDC in v1 clients'
  return `The price of ${priceText} USDC is above the default limit of x402 clients (${limits}): raise yours.`
}

/** The media type of a paid answer: JSON, unless the catalog names another one. */
function mediaTypeOf({ response }: Operation): string {
  const media = response?.['contentMediaType']
  return typeof media === 'string' ? media : 'application/json'
}

/** Service name and tags as indexers accept them: printable ASCII, at most 32 characters, at most five tags. */
function serviceOf({ service }: Catalog, { tags }: Operation): Fields {
  const serviceName = [service.title, service.name].find(isIndexable)
  const indexable = [...new Set(tags.map((tag) => tag.toLowerCase()))].filter(isIndexable).slice(0, 5)
  return { ...(serviceName ? { serviceName } : {}), ...(indexable.length > 0 ? { tags: indexable } : {}) }
}

function isIndexable(text: string): boolean {
  return /^[\x20-\x7e]{1,32}$/.test(text)
}

/** The values of the path parameters in this address; null at the bare address, which shows the example's values. */
function pathParamsOf({ path }: Operation, url: string, bareUrl: string): Fields | null {
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

function shorten(text: string): string {
  if (text.length <= MAX_DESCRIPTION_CHARACTERS) return text
  return `${text.slice(0, MAX_DESCRIPTION_CHARACTERS - 1).replace(/\s+\S*$/, '')}…`
}
