/** Tests of which transactions the signer signs. */
import { expect } from 'chai'
import fc from 'fast-check'
import { encodeFunctionData, erc20Abi } from 'viem'
import { NETWORKS, type Hex } from '../../../gateway/config/networks.ts'
import { recipientOfSettlement, settleData, type Transfer } from '../../../gateway/methods/exact-evm/eip3009.ts'
import { aggregateData, MULTICALL3, type Part } from '../../../gateway/methods/exact-evm/multicall.ts'
import { refusalOfTransaction, type TransactionRules } from '../../../gateway/signer/transaction-policy.ts'

const { asset } = NETWORKS['base']
const PAY_TO: Hex = '0x00000000000000000000000000000000000000A1'
const SENDER: Hex = '0x00000000000000000000000000000000000000B2'
const FACTORY: Hex = '0x00000000000000000000000000000000000000f3'
const rules: TransactionRules = { asset, payTo: PAY_TO, factories: [FACTORY], maxGasPrice: 100n }

const hex = (bytes: { readonly min: number; readonly max: number }): fc.Arbitrary<Hex> =>
  fc
    .uint8Array({ minLength: bytes.min, maxLength: bytes.max })
    .map((array): Hex => `0x${Buffer.from(array).toString('hex')}`)
const address = hex({ min: 20, max: 20 })
const amount = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
/** 65 bytes are the signature of a key, other lengths that of a contract wallet. */
const signature = fc.oneof(hex({ min: 65, max: 65 }), hex({ min: 0, max: 300 }))
const transfer = (to: fc.Arbitrary<Hex>): fc.Arbitrary<Transfer> =>
  fc.record({
    from: address,
    to,
    value: amount,
    validAfter: amount,
    validBefore: amount,
    nonce: hex({ min: 32, max: 32 }),
    signature,
  })
const ours = transfer(fc.constantFrom(PAY_TO, PAY_TO.toLowerCase() as Hex))
const foreign = transfer(address.filter((to) => to !== PAY_TO.toLowerCase()))

const refusal = (to: Hex, data: Hex, change: object = {}): string | null =>
  refusalOfTransaction(
    { to, data, gas: 200_000n, nonce: 1, maxFeePerGas: 100n, maxPriorityFeePerGas: 1n, ...change },
    SENDER,
    rules,
  )
const payment = (data: Hex, target: Hex = asset): Part => ({ target, allowFailure: true, callData: data })

describe('the transactions that the signer signs', () => {
  it('settle any payment to PAY_TO, alone and in a batch', () => {
    fc.assert(
      fc.property(fc.array(ours, { minLength: 1, maxLength: 5 }), (transfers) => {
        for (const each of transfers) expect(refusal(asset, settleData(each))).to.equal(null)
        const batch = aggregateData(transfers.map((each) => payment(settleData(each))))
        expect(refusal(MULTICALL3, batch)).to.equal(null)
      }),
    )
  })

  it('never pay anybody else, alone or in a batch among our own', () => {
    fc.assert(
      fc.property(foreign, fc.array(ours, { maxLength: 4 }), (stranger, transfers) => {
        expect(refusal(asset, settleData(stranger))).not.to.equal(null)
        const parts = [...transfers, stranger].map((each) => payment(settleData(each)))
        expect(refusal(MULTICALL3, aggregateData(parts))).not.to.equal(null)
        expect(refusal(MULTICALL3, aggregateData(parts.reverse()))).not.to.equal(null)
      }),
    )
  })

  it('are read as the token reads them: whatever is accepted encodes a payment to PAY_TO', () => {
    const edited = fc
      .tuple(
        ours.map(settleData),
        fc.nat(),
        fc.nat(15).map((digit) => digit.toString(16)),
      )
      .map(([data, at, digit]): Hex => {
        const place = 2 + (at % (data.length - 2))
        return `${data.slice(0, place)}${digit}${data.slice(place + 1)}` as Hex
      })
    fc.assert(
      fc.property(fc.oneof(edited, hex({ min: 0, max: 400 })), (data) => {
        const recipient = recipientOfSettlement(data)
        if (recipient === null) return
        expect(['0xe3ee160e', '0xcf092995']).to.include(data.slice(0, 10))
        expect(`0x${data.slice(10 + 64 + 24, 10 + 2 * 64)}`).to.equal(recipient)
        expect(refusal(asset, data) === null).to.equal(recipient === PAY_TO.toLowerCase())
      }),
      { numRuns: 2_000 },
    )
  })

  it('have nothing before, behind or beside the payment', () => {
    fc.assert(
      fc.property(ours, hex({ min: 1, max: 64 }), (each, more) => {
        const data = settleData(each)
        expect(refusal(asset, `${data}${more.slice(2)}`)).not.to.equal(null)
        expect(refusal(asset, data.slice(0, -2) as Hex)).not.to.equal(null)
        expect(refusal(FACTORY, data)).not.to.equal(null)
        expect(refusal(MULTICALL3, `${aggregateData([payment(data)])}${more.slice(2)}`)).not.to.equal(null)
        expect(refusal(MULTICALL3, aggregateData([payment(data, FACTORY)]))).not.to.equal(null)
      }),
    )
  })

  it('are no other calls of the token, of Multicall3 or of our own account', () => {
    for (const functionName of ['transfer', 'approve'] as const) {
      const data = encodeFunctionData({ abi: erc20Abi, functionName, args: [PAY_TO, 1n] })
      expect(refusal(asset, data), functionName).not.to.equal(null)
      expect(refusal(MULTICALL3, aggregateData([payment(data)])), functionName).not.to.equal(null)
    }
    expect(refusal(MULTICALL3, '0x')).not.to.equal(null)
    expect(refusal(MULTICALL3, aggregateData([]))).not.to.equal(null)
    expect(refusal(SENDER, '0x00', { gas: 21_000n })).not.to.equal(null)
    expect(refusal(SENDER, '0x')).not.to.equal(null)
  })

  it('fill a gap of nonces with an empty transaction to our own account', () => {
    expect(refusal(SENDER, '0x', { gas: 21_000n })).to.equal(null)
    expect(refusal(SENDER.toLowerCase() as Hex, '0x', { gas: 21_000n })).to.equal(null)
  })

  it('deploy a wallet through a factory that is allowed, and only together with its payment', () => {
    const [each] = fc.sample(ours, 1) as [Transfer]
    const charge = { ...payment(settleData(each)), allowFailure: false }
    const deploy = { target: FACTORY, allowFailure: true, callData: '0x1234' as Hex }
    expect(refusal(MULTICALL3, aggregateData([deploy, charge]), { gas: 1_500_000n })).to.equal(null)
    const wrong = [
      [deploy],
      [deploy, deploy],
      [charge, deploy],
      [deploy, charge, deploy],
      [deploy, payment(charge.callData)],
    ]
    for (const parts of wrong) expect(refusal(MULTICALL3, aggregateData(parts))).not.to.equal(null)
    const other = { ...deploy, target: SENDER }
    expect(refusal(MULTICALL3, aggregateData([other, charge]))).not.to.equal(null)
  })

  it('use no more gas than settlements do, at no more than SETTLE_MAX_GWEI', () => {
    const [each] = fc.sample(ours, 1) as [Transfer]
    const data = settleData(each)
    expect(refusal(asset, data, { gas: 2_000_001n })).to.equal('it may use too much gas')
    expect(refusal(MULTICALL3, aggregateData([payment(data)]), { gas: 2_500_001n })).to.equal('it may use too much gas')
    for (const fee of ['maxFeePerGas', 'maxPriorityFeePerGas'])
      expect(refusal(asset, data, { [fee]: 101n })).to.equal('the gas price is above SETTLE_MAX_GWEI')
  })
})
