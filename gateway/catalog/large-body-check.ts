/** Parses and checks a large body in a worker thread, as the event loop does it with small ones. */
import { parseJson } from '../validation/json-body.ts'
import type { BodyRules } from './large-body.ts'
import { type Check, type Checked, createBodyCheck } from './operation-validators.ts'

/** Compiled checks by the key of their rules. */
const checks = new Map<string, Check>()
const MAX_CHECKS = 100

/** Returns the body as it was sent and as it was checked, with defaults. Throws InvalidInput if it is not JSON. */
export function checkLargeBody(
  bytes: Uint8Array,
  rules: BodyRules,
): { readonly sent: unknown; readonly checked: Checked } {
  const sent = parseJson(bytes)
  return { sent, checked: checkBody(sent, rules) }
}

/** Checks a body that was parsed. */
export function checkBody(body: unknown, rules: BodyRules): Checked {
  return checkOf(rules)(body)
}

function checkOf({ key, operation, schemas }: BodyRules): Check {
  const known = checks.get(key)
  if (known) return known
  if (checks.size >= MAX_CHECKS) checks.clear()
  const check = createBodyCheck(new Map(schemas), operation)
  checks.set(key, check)
  return check
}
