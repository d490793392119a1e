import { expect } from 'chai'
import { NETWORKS, type Hex } from '../../../../../gateway/config/networks.ts'
import {
  type OutcomeParts,
  outcomeOfTransaction,
  type SentPayment,
} from '../../../../../gateway/methods/exact-evm/chain/transaction-outcome.ts'
import type { Nodes } from '../../../../../gateway/methods/exact-evm/nodes/nodes.ts'
import type { Outcome } from '../../../../../gateway/methods/payment-method.ts'
import { createLog } from '../../../../../gateway/observe/log.ts'

const log = createLog('silent')
const HASH: Hex = `0x${'ee'.repeat(32)}`
/** A transaction that used 1,000 gas at 3 wei each, and 600 wei for its data. */
const RECEIPT = {
  status: '0x1',
  transactionHash: HASH,
  blockHash: `0x${'b0'.repeat(32)}`,
  blockNumber: '0x64',
  logs: [],
  gasUsed: '0x3e8',
  effectiveGasPrice: '0x3',
  l1Fee: '0x258',
}
const transfer = {
  from: `0x${'a1'.repeat(20)}`,
  to: `0x${'b2'.repeat(20)}`,
  value: 5000n,
  validAfter: 0n,
  validBefore: 1_000n,
  nonce: `0x${'01'.repeat(32)}`,
  signature: `0x${'33'.repeat(65)}`,
} as const

/** The outcome of a payment whose transaction is in a block, if the logs show this and the token would refuse it. */
function outcomeOf(sent: Pick<SentPayment, 'isShared' | 'payments'>, logs: Outcome): Promise<Outcome> {
  const rpc = { batch: async () => [RECEIPT, '0x64'] } as unknown as Nodes
  const parts: OutcomeParts = {
    rpc,
    network: NETWORKS['base-sepolia'],
    agreement: { from: null, nodes: rpc, log },
    readOutcome: async () => logs,
    simulate: async () => ({ reason: 'insufficient_funds', message: 'Too little.' }),
    depth: 1,
    confirmSeconds: 1,
    log,
    sendAlone: async () => null,
  }
  return outcomeOfTransaction(parts, { transfer, fromBlock: 1, minBlocks: 1, ...sent }, HASH)
}

describe('the cost of a payment that failed on the chain', () => {
  const PENDING: Outcome = { state: 'pending', transaction: null }
  const CANCELLED: Outcome = { state: 'refused', reason: 'invalid_transaction_state', message: 'Cancelled.' }

  it('is that of its transaction if it was sent alone', async () => {
    for (const logs of [PENDING, CANCELLED])
      expect(await outcomeOf({ isShared: false, payments: 1 }, logs)).to.include({ state: 'refused', burnt: 3_600n })
  })

  it('is an equal part of it if it was sent in a batch', async () => {
    for (const logs of [PENDING, CANCELLED])
      for (const isShared of [true, false])
        expect(await outcomeOf({ isShared, payments: 50 }, logs)).to.include({ state: 'refused', burnt: 72n })
  })
})
