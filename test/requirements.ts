/**
 * What docs/interface.md promises, one line each, with its section. A test names the promises it proves by calling
 * `proves` with their ids. `npm test` fails if a promise that binds was proved by no test that ran and passed.
 * `product` names the product a promise belongs to: it binds from the day the catalog sells that product.
 */
export interface Requirement {
  readonly section: string
  readonly promise: string
  readonly product?: string
}

export const REQUIREMENTS = {
  'detail-shape': { section: '2.3', promise: 'a 422 body is a detail list of loc, msg, type, input and ctx' },
  'plan-record': {
    section: '2.6',
    promise: 'a plan record has the nine fields, prices as numbers, routes in display form',
  },
  'plan-table': {
    section: '2.6',
    promise: 'the three plans have the written prices, tiers and windows',
    product: 'potus',
  },
  'plan-catalog': { section: '2.7', promise: 'the plan list says service, model, enabled, header, note and plans' },
  'price-list': { section: '2.8', promise: 'the price list says currency, network, pay_to and prices as numbers' },
  discovery: { section: '2.9', promise: 'the discovery document has the written fields and $ prices' },
  'regime-snapshot': {
    section: '2.4',
    promise: 'a snapshot has regime, confidence and position_scalar',
    product: 'regime',
  },
  'regime-history': { section: '4.3', promise: 'history takes start, end and limit', product: 'regime' },
  'regime-since': { section: '2.4', promise: 'history starts in 2026-02, one snapshot a minute', product: 'regime' },
  'regime-sample': { section: '8', promise: 'the free sample is 24 hours late', product: 'regime' },
  'regime-stats': { section: '4.2', promise: '/v1/stats grades the model', product: 'regime' },
  'cost-estimate': {
    section: '2.5',
    promise: 'an estimate takes symbol, side, notional and order type, answers bps',
    product: 'cost',
  },
  'bars-qc': { section: '4.3', promise: 'bars get a quality report', product: 'qc' },
  'audit-form': {
    section: '2.1',
    promise: 'the audit form takes file, preset, n_trials and extra_bps',
    product: 'audit',
  },
  'audit-price': { section: '4.3', promise: 'the audit costs 5.00 in every document', product: 'audit' },
  preflight: { section: '4.3', promise: 'a preflight check, its demo and its signer', product: 'preflight' },
  founding: { section: '2.2', promise: 'the founding form stores an address once', product: 'founding' },
  calculator: {
    section: '4.1',
    promise: 'the calculator takes sharpe, days, trials, skew and kurt',
    product: 'calculator',
  },
  'feeds-family': { section: '4.3', promise: 'the feed routes at their prices', product: 'potus' },
  'feeds-freshness': {
    section: '3',
    promise: 'the archive tier serves nothing younger than 24 hours',
    product: 'potus',
  },
  'x-family': { section: '4.2', promise: '/v1/x lists the additional datasets' },
  'x-directory': { section: '4.3', promise: 'the agent-economy directory at 0.01', product: 'agent-economy-directory' },
  'x-funding': { section: '4.3', promise: 'perpetual funding rates at 0.005', product: 'perp-funding-rates' },
  pages: { section: '4.1', promise: 'the pages answer 200 text/html' },
  'page-queries': { section: '4.1', promise: 'pages take err and ok, and 422 what is invalid' },
  documents: { section: '4.2', promise: 'pricing.json, openapi.json, docs, health, robots, llms and sitemap are free' },
  'openapi-version': { section: '9', promise: 'the interface description carries version 0.1.0' },
  'free-needs-nothing': { section: '5.1', promise: 'free endpoints need no credentials' },
  'quote-402': { section: '5.3', promise: 'a paid endpoint without payment answers 402 with the requirements' },
  'pay-x-payment': { section: '5.3', promise: 'the same call with X-PAYMENT is answered' },
  'usdc-to-payee': { section: '5.3', promise: 'settlement moves USDC to the payee' },
  'plan-by-route': { section: '4.4.1', promise: 'no body field or query parameter chooses the plan or the price' },
  'plan-token': { section: '4.4.2', promise: 'a purchase returns a signed bearer token valid for the plan' },
  'token-header': { section: '5.4', promise: 'the token travels in the header the plan list names' },
  'token-routes': { section: '5.4', promise: 'a token opens its plan’s routes and no others' },
  'token-window': { section: '3', promise: 'a token is valid for the duration of its plan' },
  'token-freshness': { section: '3', promise: 'the freshness of the tier applies to the data served' },
  'mcp-address': { section: '4.5', promise: '/mcp is a streamable HTTP server' },
  'mcp-tools': { section: '4.5', promise: 'the tools are the ones the catalog offers' },
  'mcp-payment': { section: '4.5', promise: 'paid tools accept payment_signature' },
  'invalid-422': { section: '7', promise: 'an invalid parameter or body answers 422 and costs nothing' },
} as const satisfies Record<string, Requirement>

export type RequirementId = keyof typeof REQUIREMENTS

let claims: RequirementId[] = []

/** Names, inside a test, the promises it proves. They count once the test has passed (test/support/root-hooks.ts). */
export function proves(...ids: readonly RequirementId[]): void {
  claims.push(...ids)
}

/** The promises named since the last call. */
export function takeClaims(): readonly RequirementId[] {
  const taken = claims
  claims = []
  return taken
}

/**
 * The promises that bind and that no test of the run proved.
 *
 * @param proved ids that passing tests named
 * @param sold products the catalog sells: a promise of a product that is not sold does not bind
 */
export function unproved(proved: ReadonlySet<string>, sold: ReadonlySet<string>): readonly string[] {
  return Object.entries<Requirement>(REQUIREMENTS)
    .filter(([id, { product }]) => !proved.has(id) && (product === undefined || sold.has(product)))
    .map(([id, { section, promise }]) => `${id} (section ${section}): ${promise}`)
}
