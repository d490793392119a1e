/** The networks we can be paid on, as data. A further EVM network with an EIP-3009 token is one more entry. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJson } from '../catalog/json.ts'
import { CatalogError } from '../catalog/issue.ts'
import { isObject, NETWORKS_FILE } from '../catalog/documents.ts'
import { shapeMistakes } from '../catalog/shape.ts'
import type { Hex, Network } from '../payments/payment.ts'

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

/** An entry of networks.json: see its schema. */
interface Entry {
  readonly name: string
  readonly chain_id: number
  readonly asset: Hex
  readonly domain: { readonly name: string; readonly version: string }
  readonly v1: boolean
  readonly test?: boolean
}

/**
 * Base, Base Sepolia, and what networks.json of the catalog adds to them.
 *
 * @throws CatalogError where the file is not what its schema says, or names a network twice
 */
export function readNetworks(catalogDir: string): readonly Network[] {
  const known: Network[] = Object.values(NETWORKS)
  const text = textOf(join(catalogDir, NETWORKS_FILE))
  if (text === null) return known
  const file = NETWORKS_FILE
  const { value, problems } = parseJson(text)
  if (!isObject(value)) throw new CatalogError(problems.map((problem) => ({ file, ...problem })))
  const mistakes = shapeMistakes({ file, kind: 'networks', content: value })
  if (problems.length + mistakes.length > 0)
    throw new CatalogError([...problems.map((problem) => ({ file, ...problem })), ...mistakes])
  for (const [at, entry] of (value['networks'] as readonly Entry[]).entries()) {
    const network = fromEntry(entry)
    if (known.some(({ name, caip2 }) => name === network.name || caip2 === network.caip2)) {
      const message = `${network.name} (${network.caip2}) is there already. Remove one of the two.`
      throw new CatalogError([{ file, pointer: `/networks/${at}`, rule: 'network', message }])
    }
    known.push(network)
  }
  return known
}

function fromEntry({ name, chain_id: chainId, asset, domain, v1, test }: Entry): Network {
  return {
    name,
    caip2: `eip155:${chainId}`,
    chainId,
    asset,
    domain,
    ...(v1 ? {} : { v2Only: true }),
    ...(test === true ? { isTest: true } : {}),
  }
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
