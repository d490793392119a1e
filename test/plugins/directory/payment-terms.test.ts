import { expect } from 'chai'
import { dollarsOf, networkOf, pricesOf, termsOf } from '../../../plugins/directory/payment-terms.ts'
import { sourceTime, textOf } from '../../../plugins/directory/listing-fields.ts'
import { PAYEE, USDC, V1, V2 } from './payment-requirements.ts'

describe('a price', () => {
  it('is converted exactly to dollars, but only for dollar tokens with a known contract', () => {
    expect(pricesOf([{ ...V2, asset: USDC.toLowerCase() }])[0]).to.include({ asset_symbol: 'USDC', amount_usd: 0.01 })
    expect(pricesOf([{ ...V2, asset: PAYEE }])[0]).to.include({ asset_symbol: null, amount_usd: null })
    expect(pricesOf([{ ...V2, network: 'eip155:1' }])[0]).to.include({ amount_usd: null })
    expect(dollarsOf('1', 6)).to.equal(0.000001)
    expect(dollarsOf('123456789012345678', 6)).to.equal(Number('123456789012.345678'))
    expect(dollarsOf('1000000', 6)).to.equal(1)
  })

  it('is omitted if it cannot be read', () => {
    for (const amount of ['0.01', '-5', '1e3', '', ' ', null, {}, 1.5, -1, '9'.repeat(79)])
      expect(pricesOf([{ ...V2, amount }]), JSON.stringify(amount)).to.deep.equal([])
    for (const field of ['scheme', 'network', 'asset', 'payTo'])
      expect(pricesOf([{ ...V2, [field]: '' }]), field).to.deep.equal([])
    for (const junk of [null, 'x', {}, [null, 3, []]]) expect(pricesOf(junk)).to.deep.equal([])
  })

  it('identifies its network by its CAIP-2 id', () => {
    expect(['base', 'Base', 'base-sepolia', 'solana', 'eip155:8453', 'mars'].map(networkOf)).to.deep.equal([
      'eip155:8453',
      'eip155:8453',
      'eip155:84532',
      'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      'eip155:8453',
      'mars',
    ])
  })

  it('is read from the body of a 402 or from its header', () => {
    const header = Buffer.from(JSON.stringify({ accepts: [V2] })).toString('base64')
    expect(termsOf(JSON.stringify({ accepts: [V1] }), null)).to.deep.equal(pricesOf([V2]))
    expect(termsOf('{}', header)).to.deep.equal(pricesOf([V2]))
    expect(termsOf(JSON.stringify({ accepts: [V1] }), '%%%')).to.deep.equal(pricesOf([V2]))
    for (const body of ['', 'Payment required', '[]', '{"accepts":[]}', '{"accepts":[{}]}'])
      expect(termsOf(body, null), body).to.deep.equal([])
  })
})

describe('text from untrusted sources', () => {
  it('loses invisible characters and is cut to a maximum length', () => {
    expect(textOf('  a\u0000b\u202ec\nd  ')).to.equal('a b c d')
    expect(textOf('x'.repeat(5000))).to.have.length(2000)
    expect(textOf(`x${'😀'.repeat(1500)}`)).to.not.match(/\p{Surrogate}/u)
    for (const junk of ['', ' \n', 7, null, []]) expect(textOf(junk)).to.equal(null)
    expect(sourceTime(1, 0)).to.equal(1)
  })
})
