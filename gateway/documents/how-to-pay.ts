/** Explains how to pay, with the same text in every document. */
import { typescript } from '../../views/assets/snippets.js'
import { type Catalog, type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import { type Recipient, type Recipients, recipientsOf } from '../config/pay-to.ts'
import { offeredOn } from '../x402/payment-requirements.ts'
import { dollars } from '../dollars.ts'
import { priced, type PricedOperation } from './listed-operations.ts'
import type { Deployment } from './document.ts'

/** The token that prices are paid in. */
export const CURRENCY = 'USDC'
/** Where MCP clients find the tools that the catalog names, and all that is sold. */
export const MCP_PATHS = { named: '/mcp', all: '/mcp/all' } as const

/** Default spending limits of common clients, in atomic units. */
const CLIENT_LIMITS = { '@x402/fetch': 1_000_000n, 'x402-fetch': 100_000n } as const

/** Joins the names of the networks: "base or base-sepolia". */
export function networkNames(recipients: readonly Recipient[]): string {
  return recipients.map(({ network }) => network.name).join(' or ')
}

/** Returns the networks and addresses at which an operation can be paid. */
export function recipientsFor(operation: Operation, context: Recipients): readonly [Recipient, ...Recipient[]] {
  return offeredOn(operation, recipientsOf(context))
}

/** Returns the field `networks` if payments are accepted on more than one network, otherwise nothing. */
export function networkList(context: Deployment): { readonly networks?: readonly object[] } {
  const recipients = recipientsOf(context)
  if (recipients.length === 1) return {}
  return {
    networks: recipients.map(({ network: { name, caip2, asset }, payTo }) => ({
      network: name,
      caip2,
      asset,
      pay_to: payTo,
    })),
  }
}

/** Describes in one paragraph how a call is paid. */
export function howToPay(context: Deployment): string {
  return (
    'Call the route. It answers 402 with the price: an x402 v2 object in the PAYMENT-REQUIRED header and a v1 object ' +
    `in the body. Sign one of the payments in accepts (scheme exact, an EIP-3009 authorization of ${CURRENCY} on ` +
    `${networkNames(recipientsOf(context))}) and repeat the same request with the payment in PAYMENT-SIGNATURE (v2) or X-PAYMENT (v1). ` +
    'The answer has the receipt in PAYMENT-RESPONSE. Only a successful answer is charged. Repeating the same request ' +
    'with the same payment returns the same answer without a second charge, if you prove that the purchase is yours. ' +
    GETTING_IT_AGAIN
  )
}

/** How a buyer proves that a purchase is his. */
const GETTING_IT_AGAIN =
  'Send a random Idempotency-Key (or an id in the extension payment-identifier) with the purchase, keep it secret, and send ' +
  'it again with the repetition. Without it, the wallet that paid can sign in: the refusal, a 402 with the code ' +
  'sign_in_required, has a challenge in the extension sign-in-with-x. Sign it and repeat the request with the signature ' +
  'in SIGN-IN-WITH-X. A purchase without an identifier is also answered again to the address it came from, until 60 ' +
  'seconds after its first delivery; a plan is not.'

/** Names the routes that common clients refuse by default and the option that allows them. Empty if there are none. */
export function capNotes(catalog: Catalog): readonly string[] {
  const above = (limit: bigint): readonly PricedOperation[] => priced(catalog).filter(({ price }) => price > limit)
  const aboveV2Limit = above(CLIENT_LIMITS['@x402/fetch'])
  const aboveV1Limit = above(CLIENT_LIMITS['x402-fetch'])
  return [
    ...(aboveV2Limit.length > 0
      ? [
          `@x402/fetch pays at most $1 a call until you set spendControls.maxAmountPerPayment (or spendControls: false). ` +
            `Above that limit: ${listPrices(aboveV2Limit)}.`,
        ]
      : []),
    ...(aboveV1Limit.length > 0
      ? [
          `x402-fetch (v1) pays at most $0.10 a call until you pass maxValue, its third argument, in atomic units. ` +
            `Above that limit: ${listPrices(aboveV1Limit)}.`,
        ]
      : []),
  ]
}

function listPrices(operations: readonly PricedOperation[]): string {
  return operations.map(({ displayRoute, price }) => `${displayRoute} $${dollars(price)}`).join(', ')
}

/** Explains how the access tokens of plans are used. Empty if no plan is sold. */
export function tokenNotes({ plans }: Catalog): readonly string[] {
  if (plans.plans.length === 0) return []
  return [
    `Buy a plan with one payment on its own route. The answer has a signed token. Send it in ${TOKEN_HEADER}, ` +
      'and the routes of the plan are unmetered until the token expires. Other routes ignore the token and answer 402.',
  ]
}

/** Explains how tools are paid over MCP. */
export const MCP_NOTE =
  'Paid MCP tools accept the payment in the argument payment_signature (base64, as in the header) or in ' +
  '_meta["x402/payment"]. An unpaid call returns the requirements as a tool error. To get a paid answer again, send the ' +
  'payment with the payment-identifier of the purchase, or sign the challenge of the refusal and send it in ' +
  '_meta["x402/sign-in-with-x"].'

/** Returns a program that pays for one URL of a priced operation with @x402/fetch. */
export function buyerProgram(url: string, operation: PricedOperation, context: Recipients): string {
  const networks = recipientsFor(operation, context).map(({ network }) => network.caip2)
  return typescript({ method: 'GET', url }, { networks, price: operation.priceText })
}
