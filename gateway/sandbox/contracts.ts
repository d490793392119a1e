/** The contracts of the sandbox chain: their compiled code (see scripts/compile.ts) and call data for the token. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { word } from '../methods/exact-evm/eip3009.ts'
import type { Hex } from '../config/networks.ts'

/** Returns the deployed code of usdc.sol or multicall3.sol. */
export function runtimeOf(name: 'usdc' | 'multicall3'): Hex {
  const artefact = JSON.parse(readFileSync(join(import.meta.dirname, `${name}.json`), 'utf8')) as { runtime: Hex }
  return artefact.runtime
}

/** Call data of mint(address, uint256), which anybody may call on the test token. */
export function mintData(to: Hex, value: bigint): Hex {
  return `0x40c10f19${word(to)}${word(value)}`
}
