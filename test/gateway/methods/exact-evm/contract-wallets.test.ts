import { expect } from 'chai'
import { keccak256 } from 'viem'
import { NETWORKS, type Hex } from '../../../../gateway/config/networks.ts'
import { createContractWallets } from '../../../../gateway/methods/exact-evm/contract-wallets.ts'
import type { Rpc } from '../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { until } from '../../../support/until.ts'

const PAYER: Hex = '0x00000000000000000000000000000000000000b1'
const CODE: Hex = '0xfe'

describe('the code of a payer', () => {
  it('is still known to its reservation if the minute for which it is remembered ends after its check', async () => {
    let reads = 0
    const call = async (): Promise<Hex> => {
      reads += 1
      return CODE
    }
    const wallets = createContractWallets({ call, batch: async () => [] } as Rpc, NETWORKS['base-sepolia'], [], 20)
    await wallets.lookUp(PAYER)
    await until(() => !wallets.isKnown(PAYER))
    const transfer = {
      from: PAYER,
      to: PAYER,
      value: 1n,
      validAfter: 0n,
      validBefore: 9n,
      nonce: CODE,
      signature: CODE,
    }
    expect(await wallets.settlementOf(transfer)).to.include({ mayShare: false })
    expect(wallets.codeHashOf(PAYER)).to.equal(keccak256(CODE))
    await wallets.lookUp(PAYER)
    expect(reads, 'it is read again').to.equal(2)
  })
})
