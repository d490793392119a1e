/** networks.json of the catalog: EVM networks with an EIP-3009 token beyond the ones built in. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Hex, type Network, NETWORKS } from '../config/networks.ts'
import { isObject, NETWORKS_FILE } from './documents.ts'
import { CatalogError } from './issue.ts'
import { parseJson } from './json.ts'
import { shapeMistakes } from './shape.ts'

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
