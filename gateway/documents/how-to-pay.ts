/** How to pay, in the words every document uses. */
import { type Catalog, type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import { type Recipient, recipientsOf } from '../config/pay-to.ts'
import { offeredOn } from '../x402/payment-requirements.ts'
import { dollars, priced, type PricedOperation } from './listed-operations.ts'
import type { Deployment } from './document.ts'

export const CURRENCY = 'USDC'
export const MCP_PATH = '/mcp'

/** What stock clients refuse to pay until their owner raises the limit, in atomic units. */
const CAPS = { '@x402/fetch': 1_000_000n, 'x402-fetch': 100_000n } as const

/** @example namesOf of Base and Base Sepolia → "base or base-sepolia" */
export function namesOf(payees: readonly Recipient[]): string {
  return payees.map(({ network }) => network.name).join(' or ')
}

/** Where one operation can be paid. */
export function payeesFor(operation: Operation, place: Deployment): readonly [Recipient, ...Recipient[]] {
  return offeredOn(operation, recipientsOf(place))
}

/** Beside the leading network: all of them, where there is more than one. */
export function networkList(place: Deployment): { readonly networks?: readonly object[] } {
  const payees = recipientsOf(place)
  if (payees.length === 1) return {}
  return {
    networks: payees.map(({ network: { name, caip2, asset }, payTo }) => ({
      network: name,
      caip2,
      asset,
      pay_to: payTo,
    })),
  }
}

/** The 402-then-retry flow in one paragraph. */
export function howToPay(place: Deployment): string {
  return (
    'Call the route. It answers 402 with the price: an x402 v2 object in the PAYMENT-REQUIRED header and a v1 object ' +
    `in the body. Sign one of the payments in accepts (scheme exact, an EIP-3009 authorization of ${CURRENCY} on ` +
    `${namesOf(recipientsOf(place))}) and repeat the same request with the payment in PAYMENT-SIGNATURE (v2) or X-PAYMENT (v1). ` +
    'The answer carries the receipt in PAYMENT-RESPONSE. Only a successful answer is charged, and repeating the same ' +
    'request with the same payment gives the same answer again without a second charge. Name a purchase with the header ' +
    'Idempotency-Key (or the extension payment-identifier) where you may repeat it from another address.'
  )
}

/** Which routes a stock client refuses by default, and what to set. Empty where every price is below the limits. */
export function capNotes(catalog: Catalog): readonly string[] {
  const above = (cap: bigint): readonly PricedOperation[] => priced(catalog).filter(({ price }) => price > cap)
  const dear = above(CAPS['@x402/fetch'])
  const dearer = above(CAPS['x402-fetch'])
  return [
    ...(dear.length > 0
      ? [
          `@x402/fetch pays at most $1 a call until you set spendControls.maxAmountPerPayment (or spendControls: false). ` +
            `Above that limit: ${listPrices(dear)}.`,
        ]
      : []),
    ...(dearer.length > 0
      ? [
          `x402-fetch (v1) pays at most $0.10 a call until you pass maxValue, its third argument, in atomic units. ` +
            `Above that limit: ${listPrices(dearer)}.`,
        ]
      : []),
  ]
}

function listPrices(operations: readonly PricedOperation[]): string {
  return operations.map(({ displayRoute, price }) => `${displayRoute} $${dollars(price)}`).join(', ')
}

/** How access tokens of plans are used. Empty where no plan is sold. */
export function tokenNotes({ plans }: Catalog): readonly string[] {
  if (plans.plans.length === 0) return []
  return [
    `A plan is bought with one payment on its own route. The answer holds a signed token; send it in ${TOKEN_HEADER}, ` +
      'and the routes the plan names are unmetered until it ends. Any other route answers 402 as if no token were there.',
  ]
}

/** How paid tools are paid over MCP. */
export const MCP_NOTE =
  'Paid MCP tools take the payment in the argument payment_signature (base64, as in the header) or in ' +
  '_meta["x402/payment"]. An unpaid call returns the requirements as a tool error.'

/** A program that pays for one address with @x402/fetch. */
export function buyerProgram(address: string, payees: readonly Recipient[]): string {
  const schemes = payees.map(({ network }) => `{ network: '${network.caip2}', client: new ExactEvmScheme(account) }`)
  return `import { env } from 'node:process'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { ExactEvmScheme } from '@x402/evm'
import { privateKeyToAccount } from 'viem/accounts'

const account = privateKeyToAccount(env.BUYER_KEY)
const payingFetch = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [${schemes.join(', ')}],
  spendControls: { maxAmountPerPayment: '$1' }, // raise it for dearer routes
})
const answer = await payingFetch('${address}')
console.log(await answer.json())`
}
