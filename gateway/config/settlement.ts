/**
 * How payments are settled on each network. A plain variable (RPC_URL) configures the leading network. The same variable
 * with a network's name at its end (RPC_URL_BASE_SEPOLIA) configures that network.
 */
import type { Environment } from './environment.ts'
import { readFacilitatorAuth } from './facilitator-auth.ts'
import type { Hex, Network } from './networks.ts'

/** How payments are settled on one network. */
export interface NetworkConfig {
  /** Name of the network. "sandbox" is a local chain. */
  readonly network: string
  readonly payTo: Hex | null
  readonly facilitatorUrls: readonly string[]
  /** What each facilitator wants to be shown, in the order of the addresses. */
  readonly facilitatorAuth: readonly string[]
  readonly rpcUrl: string | null
  readonly settleRpcUrl: string | null
  readonly settleKey: SettleKey | null
  /** All keys of SETTLE_KEY: each worker process uses one of its own. `settleKey` is the first. */
  readonly settleKeys: readonly SettleKey[]
  /** Which of the keys this process uses, from 0. */
  readonly nth: number
  /** A payment is final once it is this many blocks deep; 1 is the newest block. */
  readonly confirmBlocks: number
  /** The highest gas price to pay, in wei. Null means no limit. */
  readonly maxGasPrice: bigint | null
  /** Price of the coin that pays for gas, in millionths of a USD. Null: the operator has not stated it. */
  readonly gasCoinPrice: bigint | null
}

/** Stands in SETTLE_KEY and TOKEN_KEYS for a key that the signer process holds. */
export const HELD_BY_SIGNER = 'signer'

/** A private key, or that the signer process holds it. */
export type SettleKey = Hex | typeof HELD_BY_SIGNER

/**
 * Variables that a network may override. Other networks do not fall back to those of one chain, because a node serves a
 * single chain and chains have coins of their own.
 */
const SHARED = [
  'PAY_TO',
  'FACILITATOR_URL',
  'FACILITATOR_AUTH',
  'SETTLE_KEY',
  'CONFIRM_BLOCKS',
  'SETTLE_MAX_GWEI',
] as const
const OF_ONE_CHAIN = ['RPC_URL', 'SETTLE_RPC_URL', 'GAS_COIN_USD'] as const
type Variable = (typeof SHARED)[number] | (typeof OF_ONE_CHAIN)[number]

/** How many blocks deep a payment of real money is final by default. The token of a plan waits at least that long. */
export const SAFE_BLOCKS = 5

/** The name in NETWORK of the local chain with test money. It is the default. */
export const SANDBOX = 'sandbox'

/** Lists the network names in NETWORK, the leading one first. */
export function networkNames(text: string | undefined): readonly [string, ...string[]] {
  const [leading = SANDBOX, ...others] = new Set((text ?? '').split(/\s+/).filter(Boolean))
  return [leading, ...others]
}

/** @example ownVariable('RPC_URL', 'base-sepolia') → "RPC_URL_BASE_SEPOLIA" */
function ownVariable(variable: string, network: string): string {
  return `${variable}_${network.replaceAll('-', '_').toUpperCase()}`
}

/** Lists the variables of the named networks, each with the plain variable it overrides. */
export function ownVariables(names: readonly string[]): readonly (readonly [name: string, variable: Variable])[] {
  return names.flatMap((name) =>
    [...SHARED, ...OF_ONE_CHAIN].map((variable) => [ownVariable(variable, name), variable] as const),
  )
}

/**
 * Returns one configuration per network. A shared SETTLE_KEY settles only on networks that also name a node to settle
 * through.
 * @param isTest whether the money of a network is worth nothing
 */
export function networkConfigs(
  names: readonly [string, ...string[]],
  value: (name: string) => string | null,
  isTest: (name: string) => boolean,
): readonly [NetworkConfig, ...NetworkConfig[]] {
  const [leading, ...others] = names
  const configOf = (network: string, isLeading: boolean): NetworkConfig => {
    const own = (variable: Variable): string | null => value(ownVariable(variable, network))
    const shared = (variable: Variable): string | null => own(variable) ?? value(variable)
    const node = isLeading ? shared : own
    const settleRpcUrl = node('SETTLE_RPC_URL')
    const settleKey = isLeading || settleRpcUrl !== null ? shared('SETTLE_KEY') : own('SETTLE_KEY')
    const settleKeys = wordsOf(settleKey) as SettleKey[]
    return {
      network,
      payTo: shared('PAY_TO') as Hex | null,
      facilitatorUrls: wordsOf(shared('FACILITATOR_URL')),
      facilitatorAuth: wordsOf(shared('FACILITATOR_AUTH')),
      rpcUrl: node('RPC_URL') ?? settleRpcUrl,
      settleRpcUrl,
      settleKey: settleKeys[0] ?? null,
      settleKeys,
      nth: 0,
      confirmBlocks: Number(shared('CONFIRM_BLOCKS') ?? (isTest(network) ? 1 : SAFE_BLOCKS)),
      maxGasPrice: weiOf(shared('SETTLE_MAX_GWEI')),
      gasCoinPrice: microUsdOf(node('GAS_COIN_USD')),
    }
  }
  return [configOf(leading, true), ...others.map((name) => configOf(name, false))]
}

const wordsOf = (text: string | null): readonly string[] => (text ?? '').split(/\s+/).filter(Boolean)

/** @example weiOf('0.05') → 50_000_000n */
function weiOf(gwei: string | null): bigint | null {
  return gwei === null ? null : BigInt(Math.round(Number(gwei) * 1e9))
}

/** @example microUsdOf('3000.5') → 3_000_500_000n */
function microUsdOf(usd: string | null): bigint | null {
  return usd === null ? null : BigInt(Math.round(Number(usd) * 1e6))
}

/** Lists what is missing or contradictory. `describe` returns the description of a variable. */
export function networkIssues(
  configs: readonly NetworkConfig[],
  known: readonly Network[],
  describe: (variable: Variable) => string,
): readonly string[] {
  const names = configs.map(({ network }) => network)
  if (names.includes(SANDBOX))
    return configs.length === 1
      ? []
      : ['NETWORK: the sandbox cannot be combined with other networks. Name only the sandbox, or only others.']
  return configs.flatMap((config, index) => {
    const { network, payTo, facilitatorUrls, facilitatorAuth, rpcUrl, settleRpcUrl, settleKey } = config
    const unknown = unknownNetwork(network, known)
    if (unknown.length > 0) return unknown
    const named = (variable: Variable): string => (index === 0 ? variable : ownVariable(variable, network))
    const issues: string[] = []
    const missing = (variable: Variable, why = ''): void =>
      void issues.push(`${named(variable)} is missing${why}. ${describe(variable)}`)
    if (payTo === null) missing('PAY_TO')
    const isAddress = (list: string): boolean => list.split(/[\s,]+/).every((each) => each === '' || URL.canParse(each))
    const nodes = { RPC_URL: rpcUrl === settleRpcUrl ? null : rpcUrl, SETTLE_RPC_URL: settleRpcUrl }
    for (const [variable, list] of Object.entries({ ...nodes, FACILITATOR_URL: facilitatorUrls.join(' ') }))
      // The list may hold a password.
      if (list !== null && !isAddress(list))
        issues.push(
          `${named(variable as Variable)} names something that is not an address. ${describe(variable as Variable)}`,
        )
    if (facilitatorAuth.length > facilitatorUrls.length || !facilitatorAuth.every(isUnderstood))
      issues.push(`${named('FACILITATOR_AUTH')} is not understood. ${describe('FACILITATOR_AUTH')}`)
    if (settleRpcUrl !== null && settleKey === null) missing('SETTLE_KEY', `, and ${named('SETTLE_RPC_URL')} needs it`)
    if (settleKey !== null && settleRpcUrl === null) missing('SETTLE_RPC_URL', `, and ${named('SETTLE_KEY')} needs it`)
    if (facilitatorUrls.length === 0 && settleKey === null && settleRpcUrl === null)
      issues.push(
        `Payments cannot be settled: set ${named('FACILITATOR_URL')}, or ${named('SETTLE_RPC_URL')} and ${named('SETTLE_KEY')}.`,
      )
    if (facilitatorUrls.length > 0 && rpcUrl === null)
      missing('RPC_URL', ': the chain decides when the outcome of a settlement is unknown')
    return issues
  })
}

function isUnderstood(auth: string): boolean {
  try {
    readFacilitatorAuth(auth)
    return true
  } catch {
    return false
  }
}

/** The issue of a network that nobody has described; none if it is known. */
export function unknownNetwork(network: string, known: readonly Network[]): readonly string[] {
  const names = known.map(({ name }) => name)
  return names.includes(network)
    ? []
    : [`NETWORK: ${network} is not a known network. Use ${names.join(', ')}, or add it to the catalog's networks.json.`]
}

/** Lists the networks on which SETTLEMENT=strict cannot work, because facilitators settle there. */
export function strictIssues(configs: readonly NetworkConfig[]): readonly string[] {
  return configs.flatMap(({ network, settleRpcUrl, facilitatorUrls }) =>
    settleRpcUrl !== null || facilitatorUrls.length === 0
      ? []
      : [
          `SETTLEMENT is strict, and ${network} is settled by a facilitator: nobody can tell for whom a facilitator sent a transaction. Set SETTLE_RPC_URL and SETTLE_KEY, or SETTLEMENT=any.`,
        ],
  )
}

/** All nodes of a network to read it from, those of RPC_URL first. Null: there is none. */
export function readingNodes(rpcUrl: string | null, settleRpcUrl: string | null): string | null {
  return [rpcUrl, settleRpcUrl].filter((list) => list !== null).join(',') || null
}

/** The settings of worker `nth`, from 0: it pays gas with a key that no other worker uses. */
export function ofWorker(settings: NetworkConfig, nth: number): NetworkConfig {
  return { ...settings, nth, settleKey: settings.settleKeys[nth] ?? null }
}

/** Lists the networks that have too few keys for this many workers. */
export function workerIssues(configs: readonly NetworkConfig[], workers: number): readonly string[] {
  return configs.flatMap(({ network, settleRpcUrl, settleKeys }, index) => {
    const held = settleKeys.filter((key) => key === HELD_BY_SIGNER).length
    const own = settleKeys.filter((key) => key !== HELD_BY_SIGNER).map((key) => key.toLowerCase())
    const keys = new Set(own).size + held
    if (settleRpcUrl === null || keys >= workers) return []
    const name = index === 0 ? 'SETTLE_KEY' : ownVariable('SETTLE_KEY', network)
    return [
      `${name}: each of ${workers} workers pays gas with a key of its own, and ${keys === 1 ? '1 is' : `${keys} are`} given. List ${workers} keys, separated by spaces, or start fewer workers.`,
    ]
  })
}

/** Lists the variables that have the word "signer" in the place of a key. */
export function heldBySigner(environment: Environment): readonly string[] {
  return Object.entries(environment).flatMap(([name, value = '']) =>
    /^(SETTLE_KEY(_.+)?|TOKEN_KEYS)$/.test(name) && value.split(/\s+/).includes(HELD_BY_SIGNER) ? [name] : [],
  )
}

/**
 * Returns the variables without private keys. The word "signer" takes the place of each key, so that the gateway knows
 * how many there are. A word that is no key stays, and is reported later.
 */
export function withoutKeys(environment: Environment): Environment {
  const rest: Record<string, string | undefined> = { ...environment, TOKEN_KEYS: HELD_BY_SIGNER }
  for (const [name, value = ''] of Object.entries(environment))
    if (name.startsWith('ATTESTATION_KEY_')) delete rest[name]
    else if (/^SETTLE_KEY(_|$)/.test(name)) rest[name] = value.replaceAll(/\b0x[0-9a-f]{64}\b/gi, HELD_BY_SIGNER)
  return rest
}
