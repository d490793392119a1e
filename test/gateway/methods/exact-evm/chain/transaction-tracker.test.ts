import { expect } from 'chai'
import type { Hex } from '../../../../../gateway/config/networks.ts'
import type { TransactionReceipt } from '../../../../../gateway/methods/exact-evm/authorization-outcome.ts'
import { createTracker } from '../../../../../gateway/methods/exact-evm/chain/transaction-tracker.ts'
import { quantity, type Rpc } from '../../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { until } from '../../../../support/until.ts'

const hash: Hex = `0x${'ee'.repeat(32)}`
const MINED_AT = 100
const POLL_MS = 5

describe('the tracker of transactions', () => {
  it('fetches a receipt when it is there, when it is deep enough and when tracking ends, and not at each block', async () => {
    let height = MINED_AT
    let receipts = 0
    let polls = 0
    const answer = (method: string): unknown => {
      if (method === 'eth_getTransactionCount') return '0x8'
      if (method === 'eth_blockNumber') return quantity(height)
      receipts += 1
      return { transactionHash: hash, blockNumber: quantity(MINED_AT), status: '0x1', logs: [] }
    }
    const rpc: Rpc = {
      call: () => Promise.reject(new Error('not asked')),
      batch: async (calls) => calls.map(([method]) => answer(method)),
    }
    const tracker = createTracker({
      rpc,
      address: `0x${'a1'.repeat(20)}`,
      pollMs: POLL_MS,
      depth: 5,
      onPoll: async () => void (polls += 1),
      onError: (error) => expect.fail(String(error)),
    })
    const depths: number[] = []
    let finished: TransactionReceipt | null | undefined
    tracker.add({
      nonce: 7,
      hashes: [hash],
      onMined: (_receipt, depth) => void depths.push(depth),
      onReorganised: () => expect.fail('there was none'),
      onFinished: (receipt) => void (finished = receipt),
    })
    for (; finished === undefined; height++) {
      const before = polls
      await until(() => polls > before + 1 || finished !== undefined)
    }
    expect(depths).to.deep.equal([1, 5, 12])
    expect(receipts).to.equal(3)
    tracker.close()
  })
})
