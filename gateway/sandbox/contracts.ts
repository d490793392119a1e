/** The contracts of the sandbox chain: their compiled code (see scripts/compile.ts) and call data for the token. */
import multicall3 from './multicall3.json' with { type: 'json' }
import usdc from './usdc.json' with { type: 'json' }
import { word } from '../methods/exact-evm/eip3009.ts'
import type { Hex } from '../config/networks.ts'

/** Returns the deployed code of usdc.sol or multicall3.sol. */
export function runtimeOf(name: 'usdc' | 'multicall3'): Hex {
  return { usdc, multicall3 }[name].runtime as Hex
}

/** Call data of mint(address, uint256), which anybody may call on the test token. */
export function mintData(to: Hex, value: bigint): Hex {
  return `0x40c10f19${word(to)}${word(value)}`
}
