import { checkLargeBody } from '../catalog/large-body-check.ts'
import type { LargeBody } from '../catalog/large-body.ts'
import { fingerprintOf } from './fingerprint.ts'
import type { LargeBodyWork } from './large-bodies.ts'

/** Parses and checks a large body, and digests its request, in a worker thread. Throws InvalidInput if it is not JSON. */
export default async function readLargeBody({
  bytes,
  rules,
  operation,
  params,
  query,
  isPaid,
}: LargeBodyWork): Promise<Pick<LargeBody, 'items' | 'fingerprint'>> {
  const { sent, checked } = checkLargeBody(bytes, rules)
  const fingerprint = isPaid ? await fingerprintOf(operation, { params, query, body: sent }) : null
  return { items: checked.items, fingerprint }
}
