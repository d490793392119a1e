/** The contracts of the sandbox chain: compiled code (scripts/compile.ts) and the two calls the sandbox makes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { word } from '../methods/exact-evm/eip3009.ts'
import type { Hex } from '../config/networks.ts'

export { MULTICALL3 } from '../methods/exact-evm/multicall.ts'

/** Deployed code of usdc.sol or multicall3.sol. */
export function runtimeOf(name: 'usdc' | 'multicall3'): Hex {
  const artefact = JSON.parse(readFileSync(join(import.meta.dirname, `${name}.json`), 'utf8')) as { runtime: Hex }
  return artefact.runtime
}

/** Call data of balanceOf(address); the answer is atomic units of USDC. */
export function balanceData(account: Hex): Hex {
  return `0x70a08231${word(account)}`
}

/** Call data of mint(address, uint256), which the test token allows anybody. */
export function mintData(to: Hex, value: bigint): Hex {
  return `0x40c10f19${word(to)}${word(value)}`
}
