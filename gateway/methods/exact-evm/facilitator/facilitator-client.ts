/** One x402 facilitator over HTTP (spec v2, section 7), with answers sorted by what they prove. */
import type { Logger } from '../../../plugin/plugin.ts'
import type { PaymentRequirements } from '../../../x402/payment-requirements.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import type { PaymentEnvelope } from '../../../x402/payment-envelope.ts'
import type { DecodedPayment } from '../../payment-method.ts'
import { type Transfer, transferOf } from '../eip3009.ts'
import { createExactEvm } from '../exact-evm.ts'
import { isUnsent } from '../nodes/rpc.ts'

/**
 * `unsent`: it did not take the request, so nothing was broadcast. `unknown`: it may have. Otherwise what it said, with
 * the transaction where it named one.
 */
export type SettleAnswer =
  | { readonly kind: 'unsent' | 'unknown' }
  | { readonly kind: 'success' | 'failure'; readonly reason: string; readonly transaction: Hex | null }

export interface Remote {
  readonly url: string
  /** Whether it settles this network, as of the last look; null before the first. */
  able(): boolean | null
  /** Looks at /supported. Throws where it cannot be reached. */
  look(): Promise<void>
  settle(payment: DecodedPayment, requirements: PaymentRequirements): Promise<SettleAnswer>
}

export interface RemoteOptions {
  readonly url: string
  readonly network: Network
  /** Public address of the gateway: v1 requirements name a resource. */
  readonly baseUrl: string
  readonly timeoutSeconds: number
  readonly log: Logger
}

type Fields = Readonly<Record<string, unknown>>

const LOOK_SECONDS = 10
/** Refusals that may come after the request was worked on. */
const UNCLEAR_STATUS = new Set([408, 409, 425])

export function createRemote({ url: given, network, baseUrl, timeoutSeconds, log }: RemoteOptions): Remote {
  const url = given.replace(/\/+$/, '')
  const method = createExactEvm(network)
  let versions: ReadonlySet<unknown> | null = null

  /** The payer's own envelope, or the other one where only that is understood: the signature is the same. */
  function requestOf({ envelope, ...payment }: DecodedPayment, requirements: PaymentRequirements): Fields {
    const spoken = versions === null || versions.size === 0 || versions.has(envelope.version)
    const version = spoken ? envelope.version : 3 - envelope.version
    const signed = signedPart(transferOf(payment))
    if (version === 1)
      return {
        x402Version: 1,
        paymentPayload: { x402Version: 1, scheme: envelope.scheme, network: network.name, payload: signed },
        paymentRequirements: method.acceptsV1(requirements, { url: resourceOf(envelope) ?? baseUrl, description: '' }),
      }
    const offer = method.acceptsV2(requirements)
    const { resource, extensions } = envelope
    const accepted = envelope.accepted ?? offer
    const described = resource ? { resource } : {}
    return {
      x402Version: 2,
      paymentPayload: { x402Version: 2, ...described, accepted, payload: signed, extensions },
      paymentRequirements: offer,
    }
  }

  function noteExtensions(header: string | null): void {
    if (header === null) return
    const [outcome] = [Buffer.from(header, 'base64').toString('utf8')].filter((text) => text.includes('"rejected"'))
    if (outcome) log.warn({ facilitator: url, outcome: outcome.slice(0, 500) }, 'the facilitator rejected an extension')
  }

  return {
    url,
    able: () => (versions === null ? null : versions.size > 0),

    async look() {
      try {
        const response = await fetch(`${url}/supported`, { signal: AbortSignal.timeout(LOOK_SECONDS * 1000) })
        const { kinds } = (await response.json()) as { readonly kinds: readonly Fields[] }
        const ours = kinds.filter(
          (kind) => kind['scheme'] === 'exact' && [network.name, network.caip2].includes(String(kind['network'])),
        )
        versions = new Set(ours.map((kind) => kind['x402Version']))
      } catch (error) {
        versions = null
        throw error
      }
    },

    async settle(payment, requirements) {
      try {
        const response = await fetch(`${url}/settle`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(requestOf(payment, requirements)),
          redirect: 'error',
          signal: AbortSignal.timeout(timeoutSeconds * 1000),
        })
        const { status } = response
        const answer = (await response.json().catch(() => null)) as Fields | null
        noteExtensions(response.headers.get('extension-responses'))
        if (status >= 500 || UNCLEAR_STATUS.has(status)) return { kind: 'unknown' }
        if (typeof answer?.['success'] !== 'boolean') return { kind: status >= 400 ? 'unsent' : 'unknown' }
        const [reason, transaction] = [reasonOf(answer['errorReason']), hashOf(answer['transaction'])]
        return { kind: answer['success'] ? 'success' : 'failure', reason, transaction }
      } catch (error) {
        log.warn({ err: error, facilitator: url }, 'the facilitator gave no answer')
        return { kind: isUnsent(error) ? 'unsent' : 'unknown' }
      }
    },
  }
}

function signedPart({ signature, from, to, value, validAfter, validBefore, nonce }: Transfer): Fields {
  const numbers = { value: String(value), validAfter: String(validAfter), validBefore: String(validBefore) }
  return { signature, authorization: { from, to, ...numbers, nonce } }
}

function resourceOf({ resource }: PaymentEnvelope): string | null {
  const url = resource?.['url']
  return typeof url === 'string' ? url : null
}

/** A word of the protocol; the texts some facilitators put here are not for our callers. */
function reasonOf(reason: unknown): string {
  return typeof reason === 'string' && /^[a-z0-9_]{1,80}$/.test(reason) ? reason : 'unexpected_settle_error'
}

function hashOf(transaction: unknown): Hex | null {
  const isHash = typeof transaction === 'string' && /^0x[0-9a-f]{64}$/i.test(transaction)
  return isHash ? (transaction.toLowerCase() as Hex) : null
}
