/** What a plan promises, in the words of every document and of the answer to its purchase. */
import { type Example, type Plan, type Product, TOKEN_HEADER } from '../plugin/catalog.ts'

const DAY = Date.UTC(2026, 10, 20)

/** The fields that the list of plans and the answer to a purchase share. */
export function termsOf({ plan, label, tier, maxFreshnessSeconds, durationSeconds }: Plan) {
  return { plan, label, tier, max_freshness_seconds: maxFreshnessSeconds, duration_seconds: durationSeconds }
}

/** The example of a purchase route: nothing is sent, and the answer holds a token (shortened) for the plan's window. */
export function purchaseExample(plan: Plan, products: readonly Product[]): Example {
  const routes = new Map(products.flatMap(({ operations }) => operations.map((each) => [each.id, each.displayRoute])))
  return {
    request: {},
    response: {
      token: 'eyJhbGciOiJFZERTQSJ9.eyJwbGFuIjoi4oCmIn0.c2ln',
      header: TOKEN_HEADER,
      ...termsOf(plan),
      issued_at: new Date(DAY).toISOString(),
      expires_at: new Date(DAY + plan.durationSeconds * 1000).toISOString(),
      authorized_routes: plan.authorizes.flatMap((id) => routes.get(id) ?? []).sort(),
    },
  }
}
