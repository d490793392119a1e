/** What a 402 asks for: x402 v2 in the PAYMENT-REQUIRED header, v1 in the body. */
import { findNetwork, NETWORKS, type Hex, type Network } from '../../gateway/config/networks.ts'
import { PayError } from './arguments.ts'

type Fields = Readonly<Record<string, unknown>>

export interface Offer {
  readonly version: 1 | 2
  readonly network: Network
  readonly amount: bigint
  readonly payTo: Hex
  readonly maxTimeoutSeconds: number
  readonly description: string
  /** The entry of `accepts` as it came: a v2 payment says it again. */
  readonly accepted: Fields
  readonly resource: unknown
  readonly extensions: Fields | null
}

/**
 * The first entry this client can pay: scheme exact, in USDC by EIP-3009, on Base or Base Sepolia. `v1` prefers the
 * body's version. Throws PayError where there is none.
 */
export function readOffer(header: string | null, body: string, v1: boolean): Offer {
  const both = { 1: objectOf(body), 2: header === null ? null : objectOf(Buffer.from(header, 'base64').toString()) }
  const order = v1 ? ([1, 2] as const) : ([2, 1] as const)
  const reasons: string[] = []
  for (const version of order) {
    const { accepts } = both[version] ?? {}
    for (const entry of Array.isArray(accepts) ? (accepts as Fields[]) : []) {
      const offer = offerOf(version, entry, both[version] as Fields)
      if (typeof offer !== 'string') return offer
      reasons.push(offer)
    }
  }
  throw new PayError(
    reasons.length === 0
      ? 'The 402 holds no x402 offer, neither in the PAYMENT-REQUIRED header nor in the body.'
      : `No offer of the 402 can be paid: ${[...new Set(reasons)].join('; ')}.`,
  )
}

/** The offer, or why it is not one for us. */
function offerOf(version: 1 | 2, entry: Fields, whole: Fields): Offer | string {
  const network = findNetwork(Object.values(NETWORKS), entry['network'])
  if (entry['scheme'] !== 'exact') return `scheme ${String(entry['scheme'])} is not known here`
  if (!network) return `network ${String(entry['network'])} is not known here`
  const { asset, payTo, extra, maxTimeoutSeconds } = entry
  if (String(asset).toLowerCase() !== network.asset.toLowerCase())
    return `${String(asset)} is not USDC on ${network.name}`
  const method = (extra as Fields | undefined)?.['assetTransferMethod'] ?? 'eip3009'
  if (method !== 'eip3009') return `transfer by ${JSON.stringify(method)} is not known here`
  const amount = String(version === 2 ? entry['amount'] : entry['maxAmountRequired'])
  if (!/^\d+$/.test(amount)) return `the amount ${amount} is not a whole number`
  if (!/^0x[0-9a-f]{40}$/i.test(String(payTo))) return `the payee ${String(payTo)} is not an address`
  const resource = version === 2 ? whole['resource'] : entry['resource']
  const { description } = version === 2 ? ((resource ?? {}) as Fields) : entry
  return {
    version,
    network,
    amount: BigInt(amount),
    payTo: payTo as Hex,
    maxTimeoutSeconds: Number(maxTimeoutSeconds) > 0 ? Number(maxTimeoutSeconds) : 60,
    description: typeof description === 'string' ? description : '',
    accepted: entry,
    resource,
    extensions: (whole['extensions'] as Fields | undefined) ?? null,
  }
}

function objectOf(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Fields) : null
  } catch {
    return null
  }
}
