import { expect } from 'chai'
import { createContractWallets } from '../../../../gateway/methods/exact-evm/contract-wallets.ts'
import { transferOf } from '../../../../gateway/methods/exact-evm/eip3009.ts'
import type { Rpc } from '../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { createPayerCheck, type LookAtPayer } from '../../../../gateway/methods/exact-evm/payer-check.ts'
import { startChain, type TestChain } from '../../../support/chain.ts'
import { newBuyer, newPayload, newRequirements, PRICE } from '../../../support/payments.ts'

describe('the look at a payer before a large request is read', function () {
  let chain: TestChain
  let look: LookAtPayer
  let now = 0
  const methods: string[] = []
  before(async function () {
    chain = await startChain(this)
    const rpc: Rpc = {
      ...chain.rpc,
      call: (method, ...parameters) => {
        methods.push(method)
        return chain.rpc.call(method, ...parameters)
      },
    }
    const { asset } = chain.network
    look = createPayerCheck(rpc, asset, createContractWallets(rpc, chain.network, []), () => now)
  })
  after(() => chain?.stop())
  beforeEach(() => {
    methods.length = 0
  })

  const transferFrom = async (balance: bigint) => {
    const buyer = await newBuyer(chain, balance)
    return { buyer, transfer: transferOf(await newPayload(chain, buyer, newRequirements(chain))) }
  }

  it('refuses a payer whose balance is too small, and looks again once it may have grown', async () => {
    const { buyer, transfer } = await transferFrom(PRICE - 1n)
    expect(await look(transfer, true)).to.include({ reason: 'insufficient_funds' })
    await chain.mint(buyer.address, 1n)
    expect(await look(transfer, true)).to.include({ reason: 'insufficient_funds' })
    expect(methods).to.have.length(1)
    now += 3_000
    expect(await look(transfer, true)).to.equal(null)
  })

  it('reads the balance of a payer once in half a minute, however many requests come', async () => {
    const { transfer } = await transferFrom(PRICE)
    expect(await Promise.all(Array.from({ length: 20 }, () => look(transfer, true)))).to.deep.equal(
      Array(20).fill(null),
    )
    now += 29_000
    expect(await look(transfer, true)).to.equal(null)
    expect(methods).to.deep.equal(['eth_call'])
    now += 2_000
    await look(transfer, true)
    expect(methods).to.have.length(2)
  })

  it('refuses a signature that failed offline if the payer has no code, without asking twice', async () => {
    const { transfer } = await transferFrom(PRICE)
    for (let tries = 0; tries < 3; tries += 1)
      expect(await look(transfer, false)).to.include({ reason: 'invalid_exact_evm_payload_signature' })
    expect(methods).to.deep.equal(['eth_getCode'])
  })

  it('reports a node that does not answer, and asks again next time', async () => {
    const { transfer } = await transferFrom(PRICE)
    const { asset } = chain.network
    let isDown = true
    const rpc: Rpc = {
      ...chain.rpc,
      call: (method, ...parameters) =>
        isDown ? Promise.reject(new Error('down')) : chain.rpc.call(method, ...parameters),
    }
    const lookThrough = createPayerCheck(rpc, asset, createContractWallets(rpc, chain.network, []))
    await lookThrough(transfer, true).then(
      () => expect.fail('the look did not report it'),
      (error: Error) => expect(error.message).to.equal('down'),
    )
    isDown = false
    expect(await lookThrough(transfer, true)).to.equal(null)
  })
})
