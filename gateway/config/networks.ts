/** Networks that payments are taken on, and the USDC contract on each. */

export type Hex = `0x${string}`

/** A chain and the USDC contract on it. */
export interface Network {
  /** Name in our documents, e.g. "base-sepolia"; the x402 v1 name too, unless `v2Only`. */
  readonly name: string
  /** CAIP-2, e.g. "eip155:84532". */
  readonly caip2: string
  readonly chainId: number
  readonly asset: Hex
  /** EIP-712 domain of the asset: "USDC" on Base Sepolia, "USD Coin" on Base. */
  readonly domain: { readonly name: string; readonly version: string }
  /** x402 v1 has no name for it, and v1 clients refuse a quote that holds one they do not know. */
  readonly v2Only?: boolean
  /** Its money is worth nothing. */
  readonly isTest?: boolean
}

/** USDC of Base and Base Sepolia. The EIP-712 names differ: mixing them up makes every signature wrong. */
export const NETWORKS = {
  base: {
    name: 'base',
    caip2: 'eip155:8453',
    chainId: 8453,
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    domain: { name: 'USD Coin', version: '2' },
  },
  'base-sepolia': {
    name: 'base-sepolia',
    caip2: 'eip155:84532',
    chainId: 84532,
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    domain: { name: 'USDC', version: '2' },
    isTest: true,
  },
} as const satisfies Readonly<Record<'base' | 'base-sepolia', Network>>

/** The network called `id`, either by its x402 v1 name ("base") or by its CAIP-2 id ("eip155:8453"). */
export function findNetwork(networks: readonly Network[], id: unknown): Network | undefined {
  return networks.find(({ name, caip2 }) => id === name || id === caip2)
}

/** The network of a payment that was decoded against these. Throws where it is none of them. */
export function networkOf(networks: readonly Network[], caip2: string): Network {
  const network = networks.find((each) => each.caip2 === caip2)
  if (!network) throw new Error(`No payments are taken on ${caip2}.`)
  return network
}
