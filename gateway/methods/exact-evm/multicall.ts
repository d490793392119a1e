/** Multicall3: several calls in one transaction. It has the same address on every network. */
import { decodeFunctionData, decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem/utils'
import type { Hex } from '../../config/networks.ts'

/** The address of Multicall3. */
export const MULTICALL3: Hex = '0xcA11bde05977b3631167028862bE2a173976CA11'

export interface Part {
  readonly target: Hex
  /** False: if this call fails, the whole transaction fails. */
  readonly allowFailure: boolean
  readonly callData: Hex
}

export interface PartResult {
  readonly success: boolean
  readonly returnData: Hex
}

const ABI = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[])',
])

/** Call data of aggregate3. */
export function aggregateData(parts: readonly Part[]): Hex {
  const calls = parts.map(({ target, ...part }) => ({ ...part, target: target.toLowerCase() as Hex }))
  return encodeFunctionData({ abi: ABI, functionName: 'aggregate3', args: [calls] })
}

/** The calls in call data of aggregate3; null if the data are anything but what `aggregateData` makes. */
export function aggregateParts(data: Hex): readonly Part[] | null {
  try {
    const [parts] = decodeFunctionData({ abi: ABI, data }).args
    return aggregateData(parts) === data.toLowerCase() ? parts : null
  } catch {
    return null
  }
}

/** Decodes the result of aggregate3: what each call returned, in order. */
export function aggregateResults(data: Hex): readonly PartResult[] {
  return decodeFunctionResult({ abi: ABI, functionName: 'aggregate3', data })
}
