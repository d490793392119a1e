/** The predeploy of OP Stack chains that says what the data of a transaction cost, on a test chain. */
import { compile } from '../../scripts/compile.ts'
import { GAS_PRICE_ORACLE } from '../../gateway/methods/exact-evm/chain/settlement-cost.ts'
import type { TestChain } from './chain.ts'

const SOURCE = (body: string): string => `// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
contract Oracle {
  function getL1Fee(bytes calldata data) external pure returns (uint256) { ${body} }
  function isFjord() external pure returns (bool) { return true; }
}`

/** Puts an oracle on a chain that takes this many wei for each byte of an unsigned transaction. Null: it only reverts. */
export async function putGasPriceOracle({ rpc }: TestChain, weiPerByte: bigint | null): Promise<void> {
  // Every unsigned transaction of ours is of the type that EIP-1559 added.
  const body =
    weiPerByte === null
      ? 'require(data.length == 0, "no fee"); return 0;'
      : `require(data[0] == 0x02, "no transaction"); return data.length * ${weiPerByte};`
  await rpc.call('anvil_setCode', GAS_PRICE_ORACLE, compile('Oracle', SOURCE(body)).runtime)
}

export async function removeGasPriceOracle({ rpc }: TestChain): Promise<void> {
  await rpc.call('anvil_setCode', GAS_PRICE_ORACLE, '0x')
}
