/** The settlement response: what the payer learns about the settlement, in both versions (x402 spec v1 and v2). */
import type { Hex, Network } from '../config/networks.ts'

export interface Receipt {
  readonly success: boolean
  /** "" if nothing was sent. */
  readonly transaction: Hex | ''
  readonly network: Network
  readonly payer: Hex
  readonly amount: bigint
  readonly errorReason?: string
  readonly version: 1 | 2
  /** The signed receipt of the extension offer-receipt: a compact JWS. */
  readonly signed?: string
}

/** v1 has a closed list of reasons, and strict v1 clients refuse a response with any other. */
const V1_REASONS = new Set([
  'insufficient_funds',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_payload_authorization_value',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_payload_recipient_mismatch',
  'invalid_network',
  'invalid_payload',
  'invalid_payment_requirements',
  'invalid_scheme',
  'invalid_transaction_state',
  'invalid_x402_version',
  'unexpected_settle_error',
  'unexpected_verify_error',
  'unsupported_scheme',
])

/** The v1 reason for a v2 reason. */
function reasonOfV1(reason: string): string {
  const inV1 = reason.replace(/_value_mismatch$/, '_value')
  return V1_REASONS.has(inV1) ? inV1 : 'invalid_transaction_state'
}

/** The response object, in the version that the payer used. */
export function receiptObject(receipt: Receipt): Readonly<Record<string, unknown>> {
  return receipt.version === 1 ? receiptOfV1(receipt) : receiptOfV2(receipt)
}

/** The response headers: `payment-response` always, and `x-payment-response` for a payer who used v1. */
export function receiptHeaders(receipt: Receipt): Record<string, string> {
  const headers = { 'payment-response': base64(receiptOfV2(receipt)) }
  return receipt.version === 1 ? { ...headers, 'x-payment-response': base64(receiptOfV1(receipt)) } : headers
}

function receiptOfV1({
  success,
  transaction,
  network,
  payer,
  errorReason,
}: Receipt): Readonly<Record<string, unknown>> {
  return {
    success,
    ...(errorReason === undefined ? {} : { errorReason: reasonOfV1(errorReason) }),
    transaction,
    network: network.name,
    payer,
  }
}

function receiptOfV2(receipt: Receipt): Readonly<Record<string, unknown>> {
  const { success, transaction, network, payer, amount, errorReason, signed } = receipt
  return {
    success,
    ...(errorReason === undefined ? {} : { errorReason }),
    transaction,
    network: network.caip2,
    payer,
    amount: String(amount),
    ...(signed === undefined ? {} : { extensions: { 'offer-receipt': extension(signed) } }),
  }
}

/** The signed receipt in a settlement response (extension offer-receipt, section 5.1). */
function extension(signed: string) {
  return { info: { version: 1, receipt: { format: 'jws', signature: signed } } }
}

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}
