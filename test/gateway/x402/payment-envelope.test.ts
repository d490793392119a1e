import { expect } from 'chai'
import * as fc from 'fast-check'
import { privateKeyToAccount } from 'viem/accounts'
import { ServiceError } from '../../../gateway/errors.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { decodePayment } from '../../../gateway/methods/payment-method.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { createRequirements } from '../../../gateway/x402/payment-requirements.ts'
import { base64, createPayment, type Requirement } from '../../support/wallet.ts'

const network = NETWORKS['base-sepolia']
const method = createExactEvm(network)
const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
const requirements = createRequirements(
  { price: 5000n, id: 'x' } as never,
  method,
  '0x00000000000000000000000000000000000000A1',
)
const offers = {
  1: method.acceptsV1(requirements, { url: 'https://a.example/v1/x', description: 'x' }),
  2: method.acceptsV2(requirements),
} as unknown as Record<1 | 2, Requirement>

type Json = Record<string, unknown>

function refusalOf(presented: string | object): ServiceError {
  try {
    decodePayment(presented, [method])
  } catch (error) {
    expect(error).to.be.instanceOf(ServiceError)
    return error as ServiceError
  }
  throw new Error('accepted')
}

describe('a presented payment', () => {
  const payments = {} as Record<1 | 2, Json>
  before(async () => {
    for (const version of [1, 2] as const)
      payments[version] = await createPayment({ account, requirement: offers[version], version })
  })

  for (const version of [1, 2] as const)
    it(`is decoded in x402 version ${version}, from base64 and from an object`, () => {
      const read = decodePayment(base64(payments[version]), [method])
      expect(read).to.deep.equal(decodePayment(payments[version], [method]))
      expect(read).to.include({ network: 'eip155:84532', amount: 5000n })
      expect(read.envelope).to.include({ version, scheme: 'exact', network: 'eip155:84532' })
      expect(read.payer).to.equal(account.address.toLowerCase())
      expect(read.identity).to.match(/^0x[0-9a-f]{64}$/)
      expect(read.envelope.accepted).to.deep.equal(version === 1 ? null : offers[2])
    })

  it('keeps the extensions and the resource of a v2 client, and treats null as absent', () => {
    const resource = { url: 'https://a.example/v1/x' }
    const extensions = { bazaar: { info: {} } }
    expect(decodePayment({ ...payments[2], resource, extensions }, [method]).envelope).to.deep.include({
      resource,
      extensions,
    })
    expect(
      decodePayment({ ...payments[2], resource: null, extensions: null }, [method]).envelope.extensions,
    ).to.deep.equal({})
  })

  it('is accepted without base64 padding', () => {
    const padded = [0, 1, 2].map(
      (spaces) => base64(payments[1]) && btoa(JSON.stringify(payments[1]) + ' '.repeat(spaces)),
    )
    for (const text of padded)
      expect(decodePayment(text.replace(/=+$/, ''), [method]).identity).to.equal(decodePayment(text, [method]).identity)
  })

  const change = (version: 1 | 2, edit: (payment: Json, authorization: Json) => void): Json => {
    const copy = structuredClone(payments[version])
    edit(copy, (copy['payload'] as Json)['authorization'] as Json)
    return copy
  }

  it('is refused if it is not base64 of a JSON object', () => {
    for (const text of ['', '   ', 'garbage!', '{"x402Version":1}', base64([1]), base64(null), base64('x'), 'AAAA'])
      expect(refusalOf(text)).to.include({ code: 'payment_invalid', reason: 'invalid_payload' })
    expect(refusalOf(btoa('not a payment')).message).to.equal('The payment is base64, but it does not contain JSON.')
    expect(refusalOf(base64([1])).message).to.equal('The payment must be a JSON object.')
    const urlSafe = Buffer.from(JSON.stringify({ ...payments[1], note: '???>>>' })).toString('base64url')
    expect(urlSafe).to.match(/[-_]/)
    expect(refusalOf(urlSafe).reason).to.equal('invalid_payload')
  })

  it('is refused if its header came twice, which Node joins with a comma', () => {
    const message = 'There are several payments here, separated by commas. Send one payment.'
    expect(refusalOf(`${base64(payments[1])}, ${base64(payments[1])}`)).to.include({
      reason: 'invalid_payload',
      message,
    })
    expect(refusalOf(JSON.stringify(payments[1])).message).to.match(/^The payment must be base64/)
  })

  it('is refused with the x402 reason for its error', () => {
    for (const version of [undefined, 0, 3, '1', null, 1.5])
      expect(refusalOf(change(1, (payment) => (payment['x402Version'] = version))).reason).to.equal(
        'invalid_x402_version',
      )
    expect(refusalOf(change(1, (payment) => (payment['scheme'] = 'upto'))).reason).to.equal('unsupported_scheme')
    expect(refusalOf(change(1, (payment) => (payment['network'] = 'base'))).reason).to.equal('invalid_network')
    expect(refusalOf(change(2, (payment) => delete payment['accepted'])).reason).to.equal('invalid_payload')
    expect(refusalOf(change(2, (payment) => (payment['payload'] = {}))).reason).to.equal('invalid_payload')
    const unsigned = change(1, (payment) => ((payment['payload'] as Json)['signature'] = '0x1'))
    expect(refusalOf(unsigned).reason).to.equal('invalid_exact_evm_payload_signature')
  })

  it('is refused if its signature is longer than any wallet needs, because we pay for its bytes', () => {
    const signed = (bytes: number): Json =>
      change(1, (payment) => ((payment['payload'] as Json)['signature'] = `0x${'ab'.repeat(bytes)}`))
    expect(decodePayment(signed(4_096), [method]).proof).to.have.length(2 + 2 * 4_096)
    const { reason, message } = refusalOf(signed(4_097))
    expect(reason).to.equal('invalid_exact_evm_payload_signature')
    expect(message).to.equal('payload.signature has 4097 bytes; at most 4096 are accepted.')
  })

  it('accepts numbers only as decimal text', () => {
    const wrong = [5000, '0x1388', '5e3', '-1', '+1', ' 1', '01', '', '1.0', '١', null, {}, ['1'], `1${'0'.repeat(78)}`]
    for (const field of ['value', 'validAfter', 'validBefore'])
      for (const value of [...wrong, String(1n << 256n)]) {
        const { reason, message } = refusalOf(change(1, (_, authorization) => (authorization[field] = value)))
        expect(reason).to.equal('invalid_payload')
        expect(message).to.contain(field)
      }
    const most = (1n << 256n) - 1n
    expect(
      decodePayment(
        change(1, (_, a) => (a['value'] = String(most))),
        [method],
      ).amount,
    ).to.equal(most)
  })

  it('requires addresses of 20 bytes and a nonce of 32 bytes', () => {
    for (const [field, wrong] of [
      ['from', `0x${'1'.repeat(39)}`],
      ['to', `0x${'1'.repeat(42)}`],
      ['to', '1'.repeat(42)],
      ['nonce', `0x${'g'.repeat(64)}`],
      ['nonce', `0x${'1'.repeat(63)}`],
      ['nonce', 7],
    ] as const)
      expect(refusalOf(change(1, (_, authorization) => (authorization[field] = wrong))).message).to.contain(field)
  })

  it('is refused if it is too long, as text and as an object', () => {
    const long = { ...payments[2], extensions: { filler: 'x'.repeat(20_000) } }
    expect(refusalOf(base64(long)).message).to.contain('16384')
    expect(refusalOf(long).message).to.contain('16384')
  })

  it('is decoded or refused with one of our messages, whatever the input is', () => {
    const ours = /^[A-Z0-9x][^\n]*\.$|^(payload|accepted|x402Version)[^\n]*\.$/
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.jsonValue().map(base64), fc.object()), (presented) => {
        expect(refusalOf(presented).message).to.match(ours)
      }),
    )
    const paths = ['scheme', 'network', 'x402Version', 'payload'] as const
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, value) => {
        try {
          decodePayment({ ...payments[1], [path]: value }, [method])
        } catch (error) {
          expect((error as ServiceError).code).to.equal('payment_invalid')
          expect((error as ServiceError).message).to.match(ours)
        }
      }),
    )
  })
})
