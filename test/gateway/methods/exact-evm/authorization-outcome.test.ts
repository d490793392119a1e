import { expect } from 'chai'
import { NETWORKS, type Hex } from '../../../../gateway/config/networks.ts'
import {
  costOf,
  createOutcomeReader,
  hasTransfer,
  type Log,
  readReceipt,
  type TransactionReceipt,
} from '../../../../gateway/methods/exact-evm/authorization-outcome.ts'
import { type Rpc, RpcError } from '../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { TOPICS, word } from '../../../../gateway/methods/exact-evm/eip3009.ts'

const network = NETWORKS['base-sepolia']
const address = (byte: string): Hex => `0x${byte.repeat(20)}`
const nonceOf = (byte: string): Hex => `0x${byte.repeat(32)}`
const hash = nonceOf('ee')
const [payer, payTo, stranger] = [address('a1'), address('b2'), address('c3')]
const [nonce, otherNonce] = [nonceOf('01'), nonceOf('02')]
const sent = { from: payer, to: payTo, value: 5000n, nonce, validBefore: 1_000n, fromBlock: 100 }

const log = (topics: readonly string[], data = '0x', contract: Hex = network.asset): Log => ({
  address: contract,
  topics: topics as readonly Hex[],
  data: data as Hex,
  transactionHash: hash,
  blockNumber: '0x64',
})
const used = (of = nonce, by = payer): Log => log([TOPICS.used, `0x${word(by)}`, of])
const transfer = (to = payTo, amount = 5000n, contract?: Hex): Log =>
  log([TOPICS.transfer, `0x${word(payer)}`, `0x${word(to)}`], `0x${word(amount)}`, contract)
const receipt = (logs: readonly Log[], status: Hex = '0x1'): TransactionReceipt => ({
  status,
  transactionHash: hash,
  blockHash: nonceOf('b0'),
  blockNumber: '0x64',
  logs,
})

const proves = (...logs: readonly Log[]): boolean => hasTransfer(receipt(logs), network, sent)

describe('the receipt of a settlement', () => {
  it('says what it cost, also if the node writes null for what the chain does not charge', () => {
    expect(costOf({ gasUsed: '0x64', effectiveGasPrice: '0x2', l1Fee: '0x7' })).to.equal(207n)
    expect(costOf({ gasUsed: '0x64', effectiveGasPrice: '0x2', l1Fee: null })).to.equal(200n)
    expect(costOf({ gasUsed: '0x64', effectiveGasPrice: null })).to.equal(0n)
  })

  it('is read once from a node for the payments of a batch that ask at the same moment, and again later', async () => {
    const batches: unknown[] = []
    const node: Rpc = {
      call: () => Promise.reject(new Error('not asked')),
      async batch(calls) {
        batches.push(calls)
        return [receipt([used(), transfer()]), '0x64']
      },
    }
    const read = (): Promise<unknown> => readReceipt(node, network, hash, sent)
    const [one, other] = await Promise.all([read(), read()])
    expect(one).to.deep.equal(other)
    expect(batches).to.have.length(1)
    await read()
    expect(batches).to.have.length(2)
  })

  it('proves the payment if the authorization is followed by its transfer', () => {
    expect(proves(used(), transfer())).to.equal(true)
    expect(proves(used(otherNonce), transfer(stranger), used(), transfer())).to.equal(true)
    const upperCase = { ...transfer(), address: network.asset.toUpperCase().replace('0X', '0x') as Hex }
    expect(proves(used(), upperCase)).to.equal(true)
  })

  it('does not count one transfer for two authorizations of a batch', () => {
    const batch = [used(), transfer(stranger, 1n), used(otherNonce), transfer()]
    expect(proves(...batch)).to.equal(false)
    expect(hasTransfer(receipt(batch), network, { ...sent, nonce: otherNonce })).to.equal(true)
  })

  it('proves nothing about another recipient, amount, payer or token, or in a failed transaction', () => {
    expect(proves(used(), transfer(stranger))).to.equal(false)
    expect(proves(used(), transfer(payTo, 4999n))).to.equal(false)
    expect(proves(used(nonce, stranger), transfer())).to.equal(false)
    expect(proves(used(), transfer(payTo, 5000n, stranger))).to.equal(false)
    expect(proves({ ...used(), address: stranger }, transfer())).to.equal(false)
    expect(proves(transfer())).to.equal(false)
    expect(proves(used())).to.equal(false)
    expect(hasTransfer(receipt([used(), transfer()], '0x0'), network, sent)).to.equal(false)
  })
})

/** A simulated node, because a real chain cannot be brought into these states. */
function nodeOf(facts: {
  readonly height: number
  readonly time: number
  readonly logs?: (from: number, to: number) => Log[]
  readonly state?: (block: number) => boolean
}): { readonly rpc: Rpc; readonly ranges: (readonly [number, number])[] } {
  const ranges: (readonly [number, number])[] = []
  const { height, time, logs = () => [], state = () => false } = facts
  const answer = (method: string, params: readonly unknown[]): unknown => {
    switch (method) {
      case 'eth_getBlockByNumber':
        return { number: `0x${height.toString(16)}`, timestamp: `0x${time.toString(16)}` }
      case 'eth_getLogs': {
        const { fromBlock, toBlock } = params[0] as { fromBlock: Hex; toBlock: Hex }
        ranges.push([Number(fromBlock), Number(toBlock)])
        return logs(Number(fromBlock), Number(toBlock))
      }
      case 'eth_call':
        return `0x${word(state(Number(params[1])) ? 1n : 0n)}`
      default:
        return receipt([used(), transfer()])
    }
  }
  const rpc: Rpc = {
    call: async <Result>(method: string, ...params: readonly unknown[]) => answer(method, params) as Result,
    batch: async () => [],
  }
  return { rpc, ranges }
}

const outcomeWith = (facts: Parameters<typeof nodeOf>[0]) => createOutcomeReader(nodeOf(facts).rpc, network)(sent)
const since = (block: number) => (at: number) => at >= block

describe('the outcome of an authorization', () => {
  it('is found in block ranges that public nodes allow', async () => {
    const { rpc, ranges } = nodeOf({ height: 5_000, time: 0, logs: (_, to) => (to === 4_099 ? [used()] : []) })
    expect(await createOutcomeReader(rpc, network)(sent)).to.deep.equal({ state: 'settled', transaction: hash })
    expect(ranges).to.deep.equal([
      [100, 2_099],
      [2_100, 4_099],
    ])
  })

  it('is pending until the authorization has expired and a reorganisation can no longer change that', async () => {
    for (const time of [0, 999, 1_000, 1_009])
      expect(await outcomeWith({ height: 200, time })).to.include({ state: 'pending' })
    expect(await outcomeWith({ height: 200, time: 1_010 })).to.include({
      state: 'refused',
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
    })
  })

  it('is pending if the authorization was used and its log is not found', async () => {
    expect(await outcomeWith({ height: 200, time: 5_000, state: since(150) })).to.include({ state: 'pending' })
    expect(await outcomeWith({ height: 200, time: 5_000, state: since(99) })).to.include({
      state: 'refused',
      reason: 'invalid_transaction_state',
    })
  })

  describe('on a node that does not keep the state of old blocks', () => {
    const pruned = (block: number): boolean => {
      if (block < 60_000) throw new RpcError('refused', 'missing trie node')
      return true
    }
    const facts = { height: 60_000, time: 5_000, state: pruned }

    it('is a use before anything was sent, if the log says so', async () => {
      const { rpc, ranges } = nodeOf({
        ...facts,
        logs: (from, to) => (from <= 30_000 && to >= 30_000 ? [used()] : []),
      })
      const reader = createOutcomeReader(rpc, network)
      expect(await reader({ ...sent, fromBlock: 50_000 })).to.include({
        state: 'refused',
        reason: 'invalid_transaction_state',
      })
      const earlier = ranges.filter(([, to]) => to < 50_000)
      expect(earlier[0], 'the newest blocks first').to.deep.equal([48_000, 49_999])
      expect(earlier.at(-1)).to.deep.equal([30_000, 31_999])
    })

    it('is pending if no log shows the use, which may be our own', async () => {
      const { rpc, ranges } = nodeOf(facts)
      expect(await createOutcomeReader(rpc, network)({ ...sent, fromBlock: 50_000 })).to.include({ state: 'pending' })
      expect(Math.min(...ranges.map(([from]) => from)), 'one day back').to.equal(50_000 - 43_200)
    })

    it('is pending if the state before could not be read for another reason', async () => {
      const unreachable = (block: number): boolean => {
        if (block < 60_000) throw new RpcError('unknown', 'no answer')
        return true
      }
      const { rpc, ranges } = nodeOf({ ...facts, state: unreachable, logs: (_, to) => (to < 50_000 ? [used()] : []) })
      expect(await createOutcomeReader(rpc, network)({ ...sent, fromBlock: 50_000 })).to.include({ state: 'pending' })
      expect(ranges.every(([from]) => from >= 50_000)).to.equal(true)
    })
  })

  it('is pending if the height before sending is unknown and the authorization was used earlier than one day ago', async () => {
    const { rpc } = nodeOf({ height: 100_000, time: 5_000, state: since(10) })
    expect(await createOutcomeReader(rpc, network)({ ...sent, fromBlock: null })).to.include({ state: 'pending' })
  })

  it('is searched for one day back if the height before sending is unknown', async () => {
    const { rpc, ranges } = nodeOf({ height: 100_000, time: 0 })
    await createOutcomeReader(rpc, network)({ ...sent, fromBlock: null })
    expect(ranges[0]?.[0]).to.equal(100_000 - 43_200)
    expect(ranges.at(-1)?.[1]).to.equal(100_000)
  })
})
