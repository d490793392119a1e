import { expect } from 'chai'
import * as fc from 'fast-check'
import { hashTypedData } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import {
  createDigest,
  SETTLE_SECONDS,
  SLACK_SECONDS,
} from '../../../../gateway/methods/exact-evm/authorization-check.ts'
import { createExactEvm } from '../../../../gateway/methods/exact-evm/exact-evm.ts'
import { decodePayment, type DecodedPayment } from '../../../../gateway/methods/payment-method.ts'
import { NETWORKS, type Hex } from '../../../../gateway/config/networks.ts'
import type { PaymentRequirements } from '../../../../gateway/x402/payment-requirements.ts'
import { createPayment, type PaymentOptions, type Requirement, typedData } from '../../../support/wallet.ts'

const network = NETWORKS['base-sepolia']
const method = createExactEvm(network)
const payTo: Hex = '0x00000000000000000000000000000000000000A1'
const requirements: PaymentRequirements = { scheme: 'exact', network, amount: 5000n, payTo, maxTimeoutSeconds: 300 }
const account = privateKeyToAccount(`0x${'22'.repeat(32)}`)
const NOW = 1_800_000_000
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

async function sign(change: Partial<PaymentOptions> = {}): Promise<DecodedPayment> {
  const version = change.version ?? 2
  const entry =
    version === 2
      ? method.acceptsV2(requirements)
      : method.acceptsV1(requirements, { url: 'https://a.example', description: '' })
  const requirement = entry as unknown as Requirement
  return decodePayment(await createPayment({ account, requirement, version, nowSeconds: NOW, ...change }), [method])
}

describe('the offline check of the exact scheme', () => {
  const { verify } = method
  const reason = (payload: DecodedPayment, now = NOW, required = requirements): string | undefined =>
    verify(payload, required, now)?.reason

  for (const version of [1, 2] as const)
    it(`accepts an x402 v${version} payment as a wallet signs it`, async () => {
      expect(verify(await sign({ version }), requirements, NOW)).to.equal(null)
    })

  it('computes the same EIP-712 digest as viem on every network', () => {
    const address = fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes) => hex(bytes))
    const number = fc.bigInt({ min: 0n, max: (1n << 256n) - 1n })
    const nonce = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => hex(bytes))
    for (const network of Object.values(NETWORKS)) {
      const digestOf = createDigest(network)
      const requirement = createExactEvm(network).acceptsV2(requirements) as unknown as Requirement
      fc.assert(
        fc.property(
          address,
          address,
          number,
          number,
          number,
          nonce,
          (from, to, value, validAfter, validBefore, nonce) => {
            const authorization = { from, to, value, validAfter, validBefore, nonce }
            const texts = { value: `${value}`, validAfter: `${validAfter}`, validBefore: `${validBefore}` }
            const expected = hashTypedData(typedData(requirement, { from, to, nonce, ...texts }))
            expect(hex(digestOf(authorization))).to.equal(expected)
          },
        ),
        { numRuns: 50 },
      )
    }
  })

  it('refuses another recipient, another amount and another network, and says what to change', async () => {
    const toAnother = await sign({ signed: { to: account.address } })
    expect(reason(toAnother)).to.equal('invalid_exact_evm_payload_recipient_mismatch')
    for (const [value, amount, side] of [
      ['4000', '0.004', 'below'],
      ['5001', '0.005001', 'above'],
    ] as const) {
      const refusal = verify(await sign({ signed: { value } }), requirements, NOW)
      expect(refusal?.reason).to.equal('invalid_exact_evm_payload_authorization_value_mismatch')
      expect(refusal?.message).to.equal(
        `The amount of ${amount} USDC is ${side} the price of 0.005 USDC; request a new quote.`,
      )
    }
    expect(reason(await sign(), NOW, { ...requirements, network: NETWORKS.base })).to.equal('invalid_network')
  })

  it('refuses a v2 payment whose `accepted` entry differs from the offer, whatever was signed', async () => {
    const payload = await sign()
    const accepting = (change: Record<string, unknown>): DecodedPayment => ({
      ...payload,
      envelope: { ...payload.envelope, accepted: { ...payload.envelope.accepted, ...change } },
    })
    for (const change of [
      { scheme: 'upto' },
      { network: 'eip155:8453' },
      { amount: '4999' },
      { amount: 5000 },
      { asset: NETWORKS.base.asset },
      { payTo: account.address },
      { payTo: null },
    ])
      expect(reason(accepting(change))).to.equal('invalid_payment_requirements')
    const lower = { asset: network.asset.toLowerCase(), payTo: payTo.toLowerCase(), network: 'base-sepolia' }
    expect(
      reason(accepting({ ...lower, maxTimeoutSeconds: 60, extra: { name: 'USDC', version: '2', note: 1 } })),
    ).to.equal(undefined)
  })

  it('names times as people read them, also those that no calendar has', async () => {
    const message = async (signed: object, now = NOW) => verify(await sign({ signed }), requirements, now)?.message
    expect(await message({ validAfter: String(NOW + 60) })).to.equal(
      'The payment is valid only after 2027-01-15T08:01:00Z; it is 2027-01-15T08:00:00Z.',
    )
    expect(await message({ validBefore: String(NOW + 1) })).to.equal(
      'The payment ends at 2027-01-15T08:00:01Z and it is 2027-01-15T08:00:00Z: too late to settle. Sign a fresh one.',
    )
    expect(await message({ validBefore: String(NOW + 86_400) })).to.equal(
      'The payment ends at 2027-01-16T08:00:00Z, too far ahead; sign until 2027-01-15T08:05:00Z.',
    )
    const endless = String((1n << 256n) - 1n)
    expect(await message({ validBefore: endless })).to.equal(
      'The payment ends after the year 9999, too far ahead; sign until 2027-01-15T08:05:00Z.',
    )
    expect(await message({ validAfter: endless, validBefore: endless })).to.equal(
      'The payment is valid only after the year 9999; it is 2027-01-15T08:00:00Z.',
    )
  })

  it('refuses payments that start too late, end too soon or stay valid too long', async () => {
    const payload = await sign({ signed: { validAfter: String(NOW - 10), validBefore: String(NOW + 100) } })
    expect(reason(payload, NOW - 16)).to.equal('invalid_exact_evm_payload_authorization_valid_after')
    expect(reason(payload, NOW - 15)).to.equal(undefined)
    expect(reason(payload, NOW + 100 - SETTLE_SECONDS)).to.equal(undefined)
    expect(reason(payload, NOW + 101 - SETTLE_SECONDS)).to.equal('invalid_exact_evm_payload_authorization_valid_before')
    const most = NOW + requirements.maxTimeoutSeconds + SLACK_SECONDS
    expect(reason(await sign({ signed: { validBefore: `${most}` } }))).to.equal(undefined)
    const tooLate = [`${most + 1}`, String((1n << 256n) - 1n)]
    for (const validBefore of tooLate)
      expect(reason(await sign({ signed: { validBefore } }))).to.equal(
        'invalid_exact_evm_payload_authorization_valid_before',
      )
  })

  it('refuses payments changed after signing, signed by another key or signed for another domain', async () => {
    const stranger = privateKeyToAccount(`0x${'33'.repeat(32)}`)
    const extra = NETWORKS.base.domain
    for (const payload of [
      await sign({ signed: { value: '1' }, claimed: { value: '5000' } }),
      await sign({ claimed: { nonce: `0x${'0'.repeat(64)}` } }),
      await sign({ claimed: { validAfter: '1' } }),
      await sign({ account: stranger, signed: { from: account.address } }),
      await sign({ requirement: { ...method.acceptsV2(requirements), extra } as unknown as Requirement }),
    ])
      expect(reason(payload)).to.equal('invalid_exact_evm_payload_signature')
  })

  it('refuses signatures that the token would refuse: wrong length, wrong v, high s, or not on the curve', async () => {
    const payload = await sign()
    const [r, s, v] = [payload.proof.slice(2, 66), payload.proof.slice(66, 130), payload.proof.slice(130)]
    const highS = (ORDER - BigInt(`0x${s}`)).toString(16).padStart(64, '0')
    const otherV = v === '1b' ? '1c' : '1b'
    const wrong = [
      ['short', `${r}${s}`],
      ['long', `${r}${s}${v}00`],
      ['v 0', `${r}${s}00`],
      ['v 29', `${r}${s}1d`],
      ['other v', `${r}${s}${otherV}`],
      ['high s', `${r}${highS}${otherV}`],
      ['zero', '0'.repeat(128) + v],
      ['r beyond the order', `${'f'.repeat(64)}${s}${v}`],
    ] as const
    for (const [name, signature] of wrong)
      expect(reason({ ...payload, proof: `0x${signature}` }), name).to.equal('invalid_exact_evm_payload_signature')
  })

  it('leaves signatures to the chain that only a contract wallet could accept, such as those of a Safe', async () => {
    const payload = await sign()
    const [rs, v] = [payload.proof.slice(2, 130), payload.proof.slice(130)]
    const otherV = v === '1b' ? '1c' : '1b'
    const owner = account.address.slice(2).toLowerCase().padStart(64, '0')
    const askable = [`${rs}${otherV}`, `${rs}1f`, `${rs}20`, `${owner}${'0'.repeat(64)}01`, `${rs}${v}${rs}${v}`]
    const check = (signature: string) => verify({ ...payload, proof: `0x${signature}` }, requirements, NOW)
    for (const signature of askable) expect(check(signature), signature).to.include({ needsSettler: true })
    for (const signature of [rs, `${rs}00`, `${rs}1d`, '0'.repeat(128) + v])
      expect(check(signature), signature).to.not.have.property('needsSettler')
  })

  it('refuses every signature with one changed byte', async () => {
    const payload = await sign()
    const bytes = Buffer.from(payload.proof.slice(2), 'hex')
    fc.assert(
      fc.property(fc.nat(64), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const changed = Buffer.from(bytes)
        changed[at] = (changed[at] as number) ^ flip
        expect(reason({ ...payload, proof: `0x${changed.toString('hex')}` })).to.be.a('string')
      }),
    )
  })
})

function hex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
