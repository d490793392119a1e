import { expect } from 'chai'
import { ServiceError } from '../../../gateway/errors.ts'
import { EXTENSION, identifierOf } from '../../../gateway/x402/payment-identifier.ts'
import type { PaymentEnvelope } from '../../../gateway/x402/payment-envelope.ts'

const ID = 'order-2026-11-20-0001'
const paying = (extension?: unknown): PaymentEnvelope =>
  ({ extensions: extension === undefined ? {} : { [EXTENSION]: extension } }) as unknown as PaymentEnvelope
const codeOf = (work: () => unknown): string => {
  try {
    return String(work())
  } catch (error) {
    return (error as ServiceError).code
  }
}

describe('the identifier of a payment', () => {
  it('is the id in the extension, or the header, or null', () => {
    expect(identifierOf(paying(), undefined)).to.equal(null)
    expect(identifierOf(paying({ info: { required: false } }), undefined)).to.equal(null)
    expect(identifierOf(paying({ info: { required: false, id: ID }, schema: {} }), undefined)).to.equal(ID)
    expect(identifierOf(paying(), ID)).to.equal(ID)
    expect(identifierOf(paying(), `"${ID}"`)).to.equal(ID)
    expect(identifierOf(paying({ info: { id: ID } }), ID)).to.equal(ID)
  })

  it('is null if the extension is not an object', () => {
    for (const extension of [null, 'text', 7, {}, { info: null }, { info: 'x' }])
      expect(identifierOf(paying(extension), undefined)).to.equal(null)
  })

  it('is refused if the id breaks the rules of the extension, the header is not visible ASCII, or the two differ', () => {
    for (const id of ['short', 'a'.repeat(129), 'has space in it -', 7, {}])
      expect(codeOf(() => identifierOf(paying({ info: { id } }), undefined))).to.equal('payment_invalid')
    for (const header of ['', 'two words', 'ü', 'a'.repeat(256), '""'])
      expect(codeOf(() => identifierOf(paying(), header))).to.equal('validation_failed')
    expect(codeOf(() => identifierOf(paying({ info: { id: ID } }), `${ID}x`))).to.equal('validation_failed')
  })
})
