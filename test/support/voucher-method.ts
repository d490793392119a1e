/**
 * A second payment method, for tests of the interface: vouchers with a serial number and an HMAC of their issuer. They
 * have no nonce, no signing address and no EIP-3009 signature.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Hex, Network } from '../../gateway/config/networks.ts'
import { type DecodedPayment, paymentKey, type PaymentMethod } from '../../gateway/methods/payment-method.ts'
import { fieldsOf, invalid } from '../../gateway/x402/payment-envelope.ts'

export const VOUCHERS: Network = {
  name: 'voucher-test',
  caip2: 'voucher:test',
  chainId: 0,
  asset: '0x00000000000000000000000000000000000000c0',
  domain: { name: 'vouchers', version: '1' },
  v2Only: true,
  isTest: true,
}

const SECRET = 'the issuer of the vouchers'

interface Voucher {
  readonly serial: string
  readonly holder: Hex
  readonly shop: Hex
  readonly worth: number
  readonly endsAt: number
}

const codeOf = ({ serial, holder, shop, worth, endsAt }: Voucher): string =>
  createHmac('sha256', SECRET)
    .update(JSON.stringify([serial, holder, shop, worth, endsAt]))
    .digest('base64')

/** Returns the payload object of a new voucher for one entry of `accepts`. */
export function createVoucher(
  accepted: { readonly amount: string; readonly payTo: Hex },
  holder: Hex,
): Readonly<Record<string, unknown>> {
  const serial = `Voucher No ${randomBytes(6).toString('hex')}`
  const endsAt = Math.floor(Date.now() / 1000) + 300
  const voucher = { serial, holder, shop: accepted.payTo, worth: Number(accepted.amount), endsAt }
  return { x402Version: 2, accepted, payload: { voucher, code: codeOf(voucher) } }
}

export const voucherMethod: PaymentMethod = {
  scheme: 'exact',
  network: VOUCHERS,
  expiredReason: 'voucher_ended',
  acceptsV1: ({ scheme, amount, payTo, maxTimeoutSeconds }, { url, description }) => ({
    scheme,
    network: VOUCHERS.name,
    maxAmountRequired: String(amount),
    resource: url,
    description,
    mimeType: 'application/json',
    payTo,
    maxTimeoutSeconds,
    asset: VOUCHERS.asset,
  }),
  acceptsV2: ({ scheme, amount, payTo, maxTimeoutSeconds }) => ({
    scheme,
    network: VOUCHERS.caip2,
    amount: String(amount),
    asset: VOUCHERS.asset,
    payTo,
    maxTimeoutSeconds,
    extra: { issuer: 'test' },
  }),
  decode(envelope): DecodedPayment {
    const { serial, holder, shop, worth, endsAt } = fieldsOf(envelope.payload['voucher'], 'payload.voucher')
    if (typeof serial !== 'string' || typeof worth !== 'number') throw invalid('payload.voucher cannot be read.')
    return {
      key: paymentKey(VOUCHERS, String(holder), serial),
      network: VOUCHERS.caip2,
      payer: holder as Hex,
      payTo: shop as Hex,
      amount: BigInt(worth),
      identity: serial,
      startsAt: 0n,
      expiresAt: BigInt(Number(endsAt)),
      proof: String(envelope.payload['code']),
      envelope,
    }
  },
  verify({ identity, payer, payTo, amount, expiresAt, proof }, requirements, nowSeconds) {
    const voucher = { serial: identity, holder: payer, shop: payTo, worth: Number(amount), endsAt: Number(expiresAt) }
    if (proof !== codeOf(voucher)) return { reason: 'voucher_forged', message: 'The issuer did not make this voucher.' }
    if (payTo !== requirements.payTo || amount !== requirements.amount)
      return { reason: 'voucher_mismatch', message: 'The voucher is for another price or another shop.' }
    return nowSeconds < Number(expiresAt) ? null : { reason: 'voucher_ended', message: 'The voucher has ended.' }
  },
}
