import { expect } from 'chai'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { type Receipt, receiptHeaders, receiptObject } from '../../../gateway/x402/settlement-response.ts'

const decode = (text: string | undefined): unknown => JSON.parse(Buffer.from(text ?? '', 'base64').toString())

describe('the settlement response', () => {
  const settled: Receipt = {
    success: true,
    transaction: `0x${'ab'.repeat(32)}`,
    network: NETWORKS.base,
    payer: `0x${'12'.repeat(20)}`,
    amount: 5000n,
    version: 2,
  }
  const failed: Receipt = { ...settled, success: false, transaction: '', errorReason: 'insufficient_funds' }

  it('is one header for a v2 payer, with the CAIP-2 network and the amount', () => {
    const headers = receiptHeaders(settled)
    expect(Object.keys(headers)).to.deep.equal(['payment-response'])
    expect(decode(headers['payment-response'])).to.deep.equal({
      success: true,
      transaction: settled.transaction,
      network: 'eip155:8453',
      payer: settled.payer,
      amount: '5000',
    })
    expect(receiptObject(settled)).to.deep.equal(decode(headers['payment-response']))
  })

  it('is two headers for a v1 payer, the second with the v1 network name', () => {
    const headers = receiptHeaders({ ...settled, version: 1 })
    expect(decode(headers['payment-response'])).to.include({ network: 'eip155:8453' })
    expect(decode(headers['x-payment-response'])).to.deep.equal({
      success: true,
      transaction: settled.transaction,
      network: 'base',
      payer: settled.payer,
    })
    expect(receiptObject({ ...settled, version: 1 })).to.deep.equal(decode(headers['x-payment-response']))
  })

  it('gives the reason why nothing was settled, as each version spells it', () => {
    expect(receiptObject(failed)).to.include({ success: false, transaction: '', errorReason: 'insufficient_funds' })
    const reasons = [
      ['invalid_exact_evm_payload_authorization_value_mismatch', 'invalid_exact_evm_payload_authorization_value'],
      ['settlement_pending', 'invalid_transaction_state'],
      ['insufficient_funds', 'insufficient_funds'],
    ] as const
    for (const [errorReason, former] of reasons) {
      expect(receiptObject({ ...failed, errorReason })).to.include({ errorReason })
      expect(receiptObject({ ...failed, errorReason, version: 1 })).to.include({ errorReason: former })
    }
  })
})
