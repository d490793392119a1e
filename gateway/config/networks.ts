/** The networks that the gateway knows: two built in, and those that networks.json of the catalog adds. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import type { JsonSchema } from '../plugin/plugin.ts'
import { CatalogError, lineOf, type Issue } from '../validation/issue.ts'
import { isObject, parseJson } from '../validation/json.ts'
import { compileOwn, schemaIssues } from '../validation/json-schema.ts'
import { PROJECT_ROOT } from './project-root.ts'

export type Hex = `0x${string}`

/** A chain and the USDC contract on it. */
export interface Network {
  /** The name in our documents, e.g. "base-sepolia". It is also the x402 v1 name, unless `v2Only` is set. */
  readonly name: string
  /** CAIP-2, e.g. "eip155:84532". */
  readonly caip2: string
  readonly chainId: number
  readonly asset: Hex
  /** EIP-712 domain of the asset: "USDC" on Base Sepolia, "USD Coin" on Base. */
  readonly domain: { readonly name: string; readonly version: string }
  /** x402 v1 has no name for this network. v1 clients refuse a quote with a network they do not know. */
  readonly v2Only?: boolean
  /** A test network: its money has no value. */
  readonly isTest?: boolean
  /** What a browser wallet needs to add the network (EIP-3085). Without it, buyers add the network themselves. */
  readonly wallet?: {
    readonly title: string
    readonly rpcUrl: string
    readonly explorerUrl: string
    /** Ether if absent. */
    readonly nativeCurrency?: { readonly name: string; readonly symbol: string }
  }
}

/** USDC on Base and Base Sepolia. The EIP-712 names differ, and a wrong name invalidates every signature. */
export const NETWORKS = {
  base: {
    name: 'base',
    caip2: 'eip155:8453',
    chainId: 8453,
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    domain: { name: 'USD Coin', version: '2' },
    wallet: { title: 'Base', rpcUrl: 'https://mainnet.base.org', explorerUrl: 'https://basescan.org' },
  },
  'base-sepolia': {
    name: 'base-sepolia',
    caip2: 'eip155:84532',
    chainId: 84532,
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    domain: { name: 'USDC', version: '2' },
    isTest: true,
    wallet: {
      title: 'Base Sepolia',
      rpcUrl: 'https://sepolia.base.org',
      explorerUrl: 'https://sepolia.basescan.org',
    },
  },
} as const satisfies Readonly<Record<'base' | 'base-sepolia', Network>>

/** Finds a network by its name ("base") or its CAIP-2 id ("eip155:8453"). */
export function findNetwork(networks: readonly Network[], id: unknown): Network | undefined {
  return networks.find(({ name, caip2 }) => id === name || id === caip2)
}

/** The file of the catalog folder that adds networks. It is read once, when the process starts. */
export const NETWORKS_FILE = 'networks.json'

/** An entry of networks.json. schemas/catalog/networks.json describes the fields. */
interface Entry {
  readonly name: string
  readonly chain_id: number
  readonly asset: Hex
  readonly domain: { readonly name: string; readonly version: string }
  readonly v1: boolean
  readonly test?: boolean
  readonly wallet?: {
    readonly title: string
    readonly rpc_url: string
    readonly explorer_url: string
    readonly currency?: { readonly name: string; readonly symbol: string }
  }
}

let compiledSchema: ValidateFunction | undefined

/** Checks the content of networks.json against its schema. */
export function networksFileIssues(content: unknown): Issue[] {
  if (!compiledSchema) {
    const path = join(PROJECT_ROOT, 'schemas', 'catalog', 'networks.json')
    const schema = JSON.parse(readFileSync(path, 'utf8')) as JsonSchema
    compiledSchema = compileOwn(schema)
  }
  return schemaIssues(compiledSchema, NETWORKS_FILE, content)
}

/**
 * Reads the networks the gateway knows: Base, Base Sepolia, and the ones in networks.json of the catalog folder.
 *
 * @throws CatalogError if networks.json breaks its schema or repeats a network
 */
export function readNetworks(catalogDir: string): readonly Network[] {
  const known: Network[] = Object.values(NETWORKS)
  const text = readIfPresent(join(catalogDir, NETWORKS_FILE))
  if (text === null) return known
  const file = NETWORKS_FILE
  const { value, issues: found } = parseJson(text)
  const issues: Issue[] = found.map((issue) => ({ file, ...issue }))
  if (!isObject(value)) throw new CatalogError(issues)
  issues.push(...networksFileIssues(value))
  if (issues.length > 0) throw new CatalogError(issues)
  for (const [index, entry] of (value['networks'] as readonly Entry[]).entries()) {
    const network = fromEntry(entry)
    if (known.some(({ name, caip2 }) => name === network.name || caip2 === network.caip2)) {
      const message = `${network.name} (${network.caip2}) is already known. Remove this entry.`
      throw new CatalogError([{ file, pointer: `/networks/${index}`, rule: 'network', message }])
    }
    known.push(network)
  }
  return known
}

/** The same, with the issues of networks.json as one line each instead of an exception. */
export function knownNetworks(catalogDir: string): { readonly known: readonly Network[]; readonly issues: string[] } {
  try {
    return { known: readNetworks(catalogDir), issues: [] }
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error
    return { known: [], issues: error.issues.map(lineOf) }
  }
}

function fromEntry({ name, chain_id: chainId, asset, domain, v1, test, wallet }: Entry): Network {
  return {
    name,
    caip2: `eip155:${chainId}`,
    chainId,
    asset,
    domain,
    ...(v1 ? {} : { v2Only: true }),
    ...(test === true ? { isTest: true } : {}),
    ...(wallet === undefined
      ? {}
      : {
          wallet: {
            title: wallet.title,
            rpcUrl: wallet.rpc_url,
            explorerUrl: wallet.explorer_url,
            ...(wallet.currency ? { nativeCurrency: wallet.currency } : {}),
          },
        }),
  }
}

function readIfPresent(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // A CATALOG_DIR that is no folder is reported when the whole catalog is read.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
    throw error
  }
}
