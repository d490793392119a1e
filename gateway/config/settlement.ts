/**
 * Networks payments are taken on, and how they come in on each: a plain variable (RPC_URL) is the leading network's,
 * the same with a network's name behind it (RPC_URL_BASE_SEPOLIA) that network's own.
 */
import { CatalogError, lineOf } from '../catalog/issue.ts'
import type { Hex, Network } from './networks.ts'
import { readNetworks } from '../catalog/networks-file.ts'

/** How payments on one network come in. */
export interface Lane {
  /** Name of the network; "sandbox" is a local chain. */
  readonly network: string
  readonly payTo: Hex | null
  readonly facilitatorUrls: readonly string[]
  readonly rpcUrl: string | null
  readonly settleRpcUrl: string | null
  readonly settleKey: Hex | null
  /** How many blocks deep a payment is certain; 1: in the newest. */
  readonly confirmBlocks: number
  /** The most a unit of gas may cost, in wei; null: whatever it costs. */
  readonly mostForGas: bigint | null
}

/** Variables a network may have of its own. The address of a node is of one chain: the others do not fall back to it. */
const SHARED = ['PAY_TO', 'FACILITATOR_URL', 'SETTLE_KEY', 'CONFIRM_BLOCKS', 'SETTLE_MAX_GWEI'] as const
const OF_ONE_CHAIN = ['RPC_URL', 'SETTLE_RPC_URL'] as const
type Variable = (typeof SHARED)[number] | (typeof OF_ONE_CHAIN)[number]

export const SANDBOX = 'sandbox'

/** The names in NETWORK, the leading one first. */
export function networksOf(text: string | undefined): readonly [string, ...string[]] {
  const [leading = SANDBOX, ...further] = new Set((text ?? '').split(/\s+/).filter(Boolean))
  return [leading, ...further]
}

/** @example ownVariable('RPC_URL', 'base-sepolia') → "RPC_URL_BASE_SEPOLIA" */
export function ownVariable(variable: string, network: string): string {
  return `${variable}_${network.replaceAll('-', '_').toUpperCase()}`
}

/** Every variable the networks named may have of their own, with the one it stands for. */
export function ownVariables(names: readonly string[]): readonly (readonly [name: string, variable: Variable])[] {
  return names.flatMap((name) =>
    [...SHARED, ...OF_ONE_CHAIN].map((variable) => [ownVariable(variable, name), variable] as const),
  )
}

/** One lane per network. A key shared by all settles only where a node to settle through is named too. */
export function lanesOf(
  names: readonly [string, ...string[]],
  value: (name: string) => string | null,
): readonly [Lane, ...Lane[]] {
  const [leading, ...further] = names
  const laneOf = (network: string, isLeading: boolean): Lane => {
    const own = (variable: Variable): string | null => value(ownVariable(variable, network))
    const shared = (variable: Variable): string | null => own(variable) ?? value(variable)
    const node = isLeading ? shared : own
    const settleRpcUrl = node('SETTLE_RPC_URL')
    const settleKey = isLeading || settleRpcUrl !== null ? shared('SETTLE_KEY') : own('SETTLE_KEY')
    return {
      network,
      payTo: shared('PAY_TO') as Hex | null,
      facilitatorUrls: (shared('FACILITATOR_URL') ?? '').split(/\s+/).filter(Boolean),
      rpcUrl: node('RPC_URL') ?? settleRpcUrl,
      settleRpcUrl,
      settleKey: settleKey as Hex | null,
      confirmBlocks: Number(shared('CONFIRM_BLOCKS') ?? 1),
      mostForGas: weiOf(shared('SETTLE_MAX_GWEI')),
    }
  }
  return [laneOf(leading, true), ...further.map((name) => laneOf(name, false))]
}

/** @example weiOf('0.05') → 50_000_000n */
function weiOf(gwei: string | null): bigint | null {
  return gwei === null ? null : BigInt(Math.round(Number(gwei) * 1e9))
}

/** What is missing or contradictory, one sentence each. `says` tells what a variable is for. */
export function laneMistakes(
  lanes: readonly Lane[],
  known: readonly Network[],
  says: (variable: Variable) => string,
): readonly string[] {
  const names = lanes.map(({ network }) => network)
  if (names.includes(SANDBOX))
    return lanes.length === 1 ? [] : ['NETWORK: the sandbox stands alone. Name it, or others.']
  return lanes.flatMap((lane, index) => {
    const { network, payTo, facilitatorUrls, rpcUrl, settleRpcUrl, settleKey } = lane
    if (!known.some(({ name }) => name === network))
      return [
        `NETWORK: ${network} is not known. Write ${known.map(({ name }) => name).join(', ')}, or add it to the catalog's networks.json.`,
      ]
    const named = (variable: Variable): string => (index === 0 ? variable : ownVariable(variable, network))
    const mistakes: string[] = []
    const missing = (variable: Variable, why = ''): void =>
      void mistakes.push(`${named(variable)} is missing${why}. ${says(variable)}`)
    if (payTo === null) missing('PAY_TO')
    if (settleRpcUrl !== null && settleKey === null) missing('SETTLE_KEY', `, and ${named('SETTLE_RPC_URL')} needs it`)
    if (settleKey !== null && settleRpcUrl === null) missing('SETTLE_RPC_URL', `, and ${named('SETTLE_KEY')} needs it`)
    if (facilitatorUrls.length === 0 && settleKey === null && settleRpcUrl === null)
      mistakes.push(
        `No settler: set ${named('FACILITATOR_URL')}, or ${named('SETTLE_RPC_URL')} and ${named('SETTLE_KEY')}.`,
      )
    if (facilitatorUrls.length > 0 && rpcUrl === null)
      missing('RPC_URL', ': an unclear settlement is judged by the chain, not the facilitator')
    return mistakes
  })
}

/** The networks known, or what is wrong with the file that names them, as sentences. */
export function knownNetworks(catalogDir: string): { readonly known: readonly Network[]; readonly mistakes: string[] } {
  try {
    return { known: readNetworks(catalogDir), mistakes: [] }
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error
    return { known: [], mistakes: error.mistakes.map(lineOf) }
  }
}
