/** Payment requirements and reasons to refuse a payment: the x402 vocabulary that all payment methods share. */
import type { Recipient } from '../config/pay-to.ts'
import type { Hex, Network } from '../config/networks.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { PaymentEnvelope } from './payment-envelope.ts'

type Fields = Readonly<Record<string, unknown>>

/** The terms of one operation on one network. Both versions of an `accepts` entry are built from it. */
export interface PaymentRequirements {
  readonly scheme: string
  readonly network: Network
  /** Atomic units. */
  readonly amount: bigint
  readonly payTo: Hex
  readonly maxTimeoutSeconds: number
}

/** The fields of a v1 entry of `accepts` about its resource. */
export interface DescribedResource {
  readonly url: string
  readonly description: string
  /** Media type of the answer; JSON if absent. */
  readonly mimeType?: string
  readonly outputSchema?: Fields
}

/** Writes requirements as entries of `accepts`. Each payment method brings one for its network. */
export interface RequirementFormat {
  readonly scheme: string
  readonly network: Network
  acceptsV1(requirements: PaymentRequirements, resource: DescribedResource): Fields
  acceptsV2(requirements: PaymentRequirements): Fields
}

/** Finds the format of a network. Throws if no payments are taken on it. */
export function formatOf<Format extends RequirementFormat>(
  formats: readonly Format[],
  { caip2 }: Pick<Network, 'caip2'>,
): Format {
  const format = formats.find(({ network }) => network.caip2 === caip2)
  if (!format) throw new Error(`No payments are taken on ${caip2}.`)
  return format
}

/** Why a payment is refused: an x402 reason (x402 spec v2, section 9) and a message that says what to do. */
export interface Refusal {
  readonly reason: string
  readonly message: string
  /** The same payment gets this refusal until then, whatever becomes of its wallet. */
  readonly retryAfterSeconds?: number
}

/** The longest life of a signature that we ask for: long enough for a slow product and a slow block. */
const MAX_TIMEOUT_SECONDS = 300

/**
 * Returns where an operation can be paid: on the networks that it accepts. An operation that accepts none of ours can
 * be paid on all of them: the local chain stands for every network, and elsewhere the catalog refuses such an operation.
 */
export function offeredOn(
  { accepts }: Operation,
  recipients: readonly [Recipient, ...Recipient[]],
): readonly [Recipient, ...Recipient[]] {
  const [first, ...others] =
    accepts === null ? recipients : recipients.filter(({ network }) => accepts.includes(network.name))
  return first ? [first, ...others] : recipients
}

/** Builds the requirements of an operation. Throws if the operation is free. */
export function createRequirements(
  operation: Operation,
  { scheme, network }: Pick<RequirementFormat, 'scheme' | 'network'>,
  payTo: Hex,
): PaymentRequirements {
  if (operation.price === null) throw new Error(`${operation.id} is free and asks for no payment`)
  return { scheme, network, amount: operation.price, payTo, maxTimeoutSeconds: MAX_TIMEOUT_SECONDS }
}

/**
 * Whether a v2 payment names another route of ours as its resource, so that it was signed for that route's price. An
 * address that is not ours proves nothing, because proxies rewrite addresses.
 */
export function isForAnotherRoute({ path }: Operation, baseUrl: string, { resource }: PaymentEnvelope): boolean {
  const url = resource?.['url']
  if (typeof url !== 'string' || !url.startsWith(`${baseUrl}/`)) return false
  const named = url
    .slice(baseUrl.length)
    .replace(/[?#].*$/s, '')
    .split('/')
  const own = path.split('/')
  return named.length !== own.length || own.some((step, at) => !step.startsWith('{') && step !== named[at])
}
