/** Shared by the tests of settlers: funded buyers, their payments, and journal records of sent payments. */
import { AnswerBody } from '../../gateway/plugin/answer-body.ts'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { PaymentRecord } from '../../gateway/payments/journal/journal.ts'
import { decodePayment, type DecodedPayment, type Intent } from '../../gateway/methods/payment-method.ts'
import type { PaymentRequirements } from '../../gateway/x402/payment-requirements.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import type { TestChain } from './chain.ts'
import { createPayment, type PaymentOptions, type Requirement } from './wallet.ts'

export const PRICE = 5000n

/** Requirements with a new recipient, whose balance then counts the settlements of one suite. */
export function newRequirements({ network }: TestChain): PaymentRequirements {
  const payTo = privateKeyToAccount(generatePrivateKey()).address
  return { scheme: 'exact', network, amount: PRICE, payTo, maxTimeoutSeconds: 300 }
}

export async function newBuyer(chain: TestChain, balance = 1_000_000n): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(generatePrivateKey())
  if (balance > 0n) await chain.mint(account.address, balance)
  return account
}

/** A new key with ETH to pay gas. */
export async function newSettleKey(chain: TestChain, wei?: bigint): Promise<Hex> {
  const key = generatePrivateKey()
  await chain.fund(privateKeyToAccount(key).address, wei)
  return key
}

/** A decoded payment. Its validity follows the chain's clock, which tests move forward. */
export async function newPayload(
  chain: TestChain,
  account: PrivateKeyAccount,
  requirements: PaymentRequirements,
  options: Partial<PaymentOptions> = {},
): Promise<DecodedPayment> {
  const version = options.version ?? 2
  const method = createExactEvm(requirements.network)
  const entry =
    version === 2
      ? method.acceptsV2(requirements)
      : method.acceptsV1(requirements, { url: 'https://shop.example/v1/x', description: 'x' })
  const nowSeconds = Math.max(Math.floor(Date.now() / 1000), await chain.time())
  const requirement = entry as unknown as Requirement
  const payment = await createPayment({ account, requirement, version, nowSeconds, ...options })
  return decodePayment(payment, [method])
}

/** The journal record of a payment whose intent was recorded. */
export function submittedRecord(
  payment: DecodedPayment,
  requirements: PaymentRequirements,
  intent: Intent,
): PaymentRecord {
  const { network, amount, payTo } = requirements
  const now = Date.now()
  const { envelope, ...signed } = payment
  return {
    ...signed,
    state: 'submitted',
    attempt: 1,
    fingerprint: 'f',
    operation: 'getX',
    route: 'GET /v1/x',
    asset: network.asset,
    payTo,
    amount,
    version: envelope.version,
    priceVersion: 'p',
    callId: 'c',
    identifier: null,
    place: null,
    answer: { status: 200, headers: {}, body: AnswerBody.of('{}') },
    intent,
    transaction: null,
    reason: null,
    cause: null,
    ending: null,
    payerCode: null,
    revertedAt: null,
    createdAt: now,
    updatedAt: now,
    settledAt: null,
    repaidAt: null,
    deliveredAt: null,
  }
}
