/** What is asked for an operation, and the entries of `accepts` that say so in x402 v1 and v2. */
import type { Operation } from '../../plugin/catalog.ts'
import type { Recipient } from '../../config/pay-to.ts'
import type { PaymentPayload } from '../../x402/payload.ts'
import type { PaymentRequirements } from '../../x402/payment-requirements.ts'
import type { Hex, Network } from '../../config/networks.ts'

type Fields = Readonly<Record<string, unknown>>

/** How long a buyer may let a signature live. Enough for a slow product and a slow block. */
export const MAX_TIMEOUT_SECONDS = 300

/**
 * Where an operation can be paid: the payees it accepts. Where it accepts none of them all are taken: a local chain
 * stands for every network, and elsewhere the catalog refuses such an operation.
 */
export function offeredOn(
  { accepts }: Operation,
  payees: readonly [Recipient, ...Recipient[]],
): readonly [Recipient, ...Recipient[]] {
  const [first, ...others] = accepts === null ? payees : payees.filter(({ network }) => accepts.includes(network.name))
  return first ? [first, ...others] : payees
}

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

/**
 * Whether a v2 payment says of itself that it is for another route of ours: it was signed for that route's quote. An
 * address that is not ours says nothing, since proxies rewrite addresses.
 */
export function isForAnother({ path }: Operation, baseUrl: string, resource: PaymentPayload['resource']): boolean {
  const url = resource?.['url']
  if (typeof url !== 'string' || !url.startsWith(`${baseUrl}/`)) return false
  const named = url
    .slice(baseUrl.length)
    .replace(/[?#].*$/s, '')
    .split('/')
  const own = path.split('/')
  return named.length !== own.length || own.some((step, at) => !step.startsWith('{') && step !== named[at])
}
