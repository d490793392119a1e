/** Client of one x402 facilitator (x402 spec v2, section 7). It classifies each answer by what it proves. */
import type { Logger } from '../../../plugin/plugin.ts'
import { timeoutSignal } from '../../../plugin/timeout-signal.ts'
import { withoutCredentials } from '../../../config/address-credentials.ts'
import type { HeadersFor } from '../../../config/facilitator-auth.ts'
import type { PaymentRequirements } from '../../../x402/payment-requirements.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import type { DecodedPayment, Listing, PaymentMethod } from '../../payment-method.ts'
import { type Transfer, transferOf } from '../eip3009.ts'
import { createExactEvm } from '../exact-evm.ts'
import { isUnsent } from '../nodes/rpc.ts'

/**
 * The answer to a request to settle.
 * - `unsent`: the facilitator did not take the request, so nothing was broadcast.
 * - `unknown`: it may have taken the request.
 * - `success`, `failure`: what it reported, with the transaction if it named one.
 */
export type SettleAnswer =
  | { readonly kind: 'unsent' | 'unknown' }
  | { readonly kind: 'success' | 'failure'; readonly reason: string; readonly transaction: Hex | null }

export interface FacilitatorClient {
  /** Without credentials, because it is logged and written to the journal. */
  readonly url: string
  /** Whether it supports this network, as of the last refresh. Null if it has not answered. */
  isSupported(): boolean | null
  /** Reads /supported. Throws if that fails. */
  refresh(): Promise<void>
  /**
   * @param listing what the facilitator may list. A buyer sends a description too, but could write into it what he likes,
   *   and facilitators show it to others under our address.
   */
  settle(payment: DecodedPayment, requirements: PaymentRequirements, listing?: Listing): Promise<SettleAnswer>
}

export interface FacilitatorClientOptions {
  /** A user name and a password in it are sent as Basic authorization. */
  readonly url: string
  /** Returns what it wants to be shown. Default: nothing beside the credentials in the address. */
  readonly authorize?: HeadersFor
  readonly network: Network
  /** Public address of the gateway: the resource of a v1 request without a listing. */
  readonly baseUrl: string
  readonly timeoutSeconds: number
  readonly log: Logger
}

type Fields = Readonly<Record<string, unknown>>

const SUPPORTED_TIMEOUT_SECONDS = 10
/** Client errors (4xx) that do not prove that the facilitator did nothing. */
const UNCLEAR_STATUS = new Set([408, 409, 425])

/** Creates the client of one facilitator for one network. */
export function createFacilitatorClient({
  url: given,
  authorize,
  network,
  baseUrl,
  timeoutSeconds,
  log,
}: FacilitatorClientOptions): FacilitatorClient {
  const { address, headers: credentials } = withoutCredentials(given)
  const url = address.replace(/\/+$/, '')
  const method = createExactEvm(network)
  let versions: ReadonlySet<unknown> | null = null
  const headersFor = async (verb: 'GET' | 'POST', path: string): Promise<Readonly<Record<string, string>>> => ({
    ...credentials,
    ...(await authorize?.(verb, new URL(url + path))),
  })

  return {
    url,
    isSupported: () => (versions === null ? null : versions.size > 0),

    async refresh() {
      try {
        const response = await fetch(`${url}/supported`, {
          headers: await headersFor('GET', '/supported'),
          signal: timeoutSignal(SUPPORTED_TIMEOUT_SECONDS * 1000),
        })
        const { kinds } = (await jsonOf(response)) as { readonly kinds: readonly Fields[] }
        const own = kinds.filter(
          (kind) => kind['scheme'] === 'exact' && [network.name, network.caip2].includes(String(kind['network'])),
        )
        versions = new Set(own.map((kind) => kind['x402Version']))
      } catch (error) {
        versions = null
        throw error
      }
    },

    async settle(payment, requirements, listing) {
      try {
        const response = await fetch(`${url}/settle`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(await headersFor('POST', '/settle')) },
          body: JSON.stringify(settleRequest({ method, versions, baseUrl }, payment, requirements, listing)),
          redirect: 'error',
          signal: timeoutSignal(timeoutSeconds * 1000),
        })
        const { status } = response
        const answer = (await jsonOf(response).catch(() => null)) as Fields | null
        logRejectedExtensions(log, url, response.headers.get('extension-responses'))
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

/** Answers of facilitators have a few thousand bytes; a list of all that one supports may have more. */
const MAX_ANSWER_BYTES = 4_000_000

/** Reads an answer as JSON. Throws Error if it is too long, or no JSON. */
async function jsonOf({ body }: Response): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > MAX_ANSWER_BYTES) throw new Error(`the facilitator sent more than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

interface RequestParts {
  readonly method: PaymentMethod
  /** That the facilitator supports; null if unknown. */
  readonly versions: ReadonlySet<unknown> | null
  readonly baseUrl: string
}

/**
 * Builds the request in the payer's x402 version, or in the other one if the facilitator only supports that. The
 * signature is valid in both.
 */
function settleRequest(
  { method, versions, baseUrl }: RequestParts,
  { envelope, ...payment }: DecodedPayment,
  requirements: PaymentRequirements,
  { resource, extensions }: Partial<Listing> = {},
): Fields {
  const isSupported = versions === null || versions.size === 0 || versions.has(envelope.version)
  const version = isSupported ? envelope.version : 3 - envelope.version
  const { network } = requirements
  const payload = payloadOf(transferOf(payment))
  if (version === 1)
    return {
      x402Version: 1,
      paymentPayload: { x402Version: 1, scheme: envelope.scheme, network: network.name, payload },
      paymentRequirements: method.acceptsV1(requirements, {
        url: resource?.url ?? baseUrl,
        description: resource?.description ?? '',
      }),
    }
  const requirement = method.acceptsV2(requirements)
  const listed = resource ? { resource } : {}
  return {
    x402Version: 2,
    paymentPayload: { x402Version: 2, ...listed, accepted: requirement, payload, extensions: extensions ?? {} },
    paymentRequirements: requirement,
  }
}

/** Logs the header `extension-responses` (base64 of JSON) if the facilitator rejected an extension. */
function logRejectedExtensions(log: Logger, facilitator: string, header: string | null): void {
  if (header === null) return
  const outcome = Buffer.from(header, 'base64').toString('utf8')
  if (outcome.includes('"rejected"'))
    log.warn({ facilitator, outcome: outcome.slice(0, 500) }, 'the facilitator rejected an extension')
}

function payloadOf({ signature, from, to, value, validAfter, validBefore, nonce }: Transfer): Fields {
  const numbers = { value: String(value), validAfter: String(validAfter), validBefore: String(validBefore) }
  return { signature, authorization: { from, to, ...numbers, nonce } }
}

/** An x402 reason. Some facilitators put internal texts here, which are not passed on. */
function reasonOf(reason: unknown): string {
  return typeof reason === 'string' && /^[a-z0-9_]{1,80}$/.test(reason) ? reason : 'unexpected_settle_error'
}

function hashOf(transaction: unknown): Hex | null {
  const isHash = typeof transaction === 'string' && /^0x[0-9a-f]{64}$/i.test(transaction)
  return isHash ? (transaction.toLowerCase() as Hex) : null
}
