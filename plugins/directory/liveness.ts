/** Judges whether a service is alive, from one visit and from several. */
import type { Kind, Price } from './listing.ts'
import { termsOf } from './payment-terms.ts'
import type { Visit } from './visits.ts'

export type Status = 'alive' | 'auth_gated' | 'missing' | 'dead' | 'unknown'

export interface Health {
  readonly status: Status
  readonly http_status: number | null
  /** Epoch seconds. */
  readonly last_checked: number | null
  readonly last_alive: number | null
  /** Successful and failed visits in a row. */
  readonly good: number
  readonly bad: number
  /** The payment terms of the service's own 402 when it was last alive. */
  readonly terms: readonly Price[]
  /** Why the service was not visited; null if it was. */
  readonly refusal: string | null
}

/** The health of a service before its first visit. */
export const UNVISITED: Health = {
  status: 'unknown',
  http_status: null,
  last_checked: null,
  last_alive: null,
  good: 0,
  bad: 0,
  terms: [],
  refusal: null,
}

const GOOD_TO_PROMOTE = 2
const BAD_TO_HIDE = 3

export interface Finding {
  readonly status: Status
  readonly terms: readonly Price[]
}

/**
 * Judges one visit. A paid endpoint is alive if it asks for a readable payment or is too busy (429). A server of another
 * protocol is alive unless it is missing, failing or asks for a login.
 */
export function judgeVisit(visit: Visit, kind: Kind): Finding {
  const found = (status: Status, terms: readonly Price[] = []): Finding => ({ status, terms })
  if (visit.failure !== null) return found('dead')
  const { status, body, paymentRequired } = visit
  if (status === 402) {
    const terms = termsOf(body, paymentRequired)
    return found(terms.length > 0 ? 'alive' : 'dead', terms)
  }
  if (status === 429) return found('alive')
  if (status === 404 || status === 410) return found('missing')
  if (status >= 500) return found('dead')
  if (status === 401 || status === 403) return found('auth_gated')
  const isPaid = kind === 'http_endpoint' || kind === 'mcp_tool'
  if (!isPaid) return found(status < 300 || status >= 400 ? 'alive' : 'unknown')
  return found(status === 405 || status === 415 ? 'auth_gated' : 'unknown')
}

/**
 * Health after one more visit at `at`, epoch seconds. Two successful visits in a row promote a service, three failed ones
 * hide it. An unclear answer counts as neither.
 */
export function healthAfter(health: Health, visit: Visit, { status, terms }: Finding, at: number): Health {
  const isGood = status === 'alive' || status === 'auth_gated'
  const isBad = status === 'missing' || status === 'dead'
  const good = isGood ? health.good + 1 : isBad ? 0 : health.good
  const bad = isBad ? health.bad + 1 : isGood ? 0 : health.bad
  const proven = (isGood && good >= GOOD_TO_PROMOTE) || (isBad && bad >= BAD_TO_HIDE)
  return {
    status: proven ? status : health.status,
    http_status: visit.failure === null ? visit.status : null,
    last_checked: at,
    last_alive: status === 'alive' ? at : health.last_alive,
    good,
    bad,
    terms: terms.length > 0 ? terms : health.terms,
    refusal: visit.failure === 'refused' ? visit.reason : null,
  }
}

/** True for services that a query must ask for explicitly. */
export function isHidden(status: Status): boolean {
  return status === 'dead' || status === 'missing'
}
