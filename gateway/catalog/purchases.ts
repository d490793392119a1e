/** What a buyer of a plan gets, as an example for the documents. */
import { type Example, type Plan, type Product, TOKEN_HEADER } from './catalog.ts'

const DAY = Date.UTC(2026, 10, 20)

/** The example of a purchase route: nothing is sent, and the answer holds a token (shortened) for the plan's window. */
export function purchaseExample(plan: Plan, products: readonly Product[]): Example {
  const routes = new Map(products.flatMap(({ operations }) => operations.map((each) => [each.id, each.displayRoute])))
  return {
    request: {},
    response: {
      token: 'eyJhbGciOiJFZERTQSJ9.eyJwbGFuIjoi4oCmIn0.c2ln',
      header: TOKEN_HEADER,
      plan: plan.plan,
      label: plan.label,
      tier: plan.tier,
      max_freshness_seconds: plan.maxFreshnessSeconds,
      duration_seconds: plan.durationSeconds,
      issued_at: new Date(DAY).toISOString(),
      expires_at: new Date(DAY + plan.durationSeconds * 1000).toISOString(),
      authorized_routes: plan.authorizes.flatMap((id) => routes.get(id) ?? []).sort(),
    },
  }
}
