import { fingerprintOf } from '../calls/fingerprint.ts'
import { checkBody } from '../catalog/large-body-check.ts'
import type { ValidationItem } from '../errors.ts'
import { parseMeasuredJson } from '../validation/json-body.ts'
import type { LargeArguments, LargeArgumentsWork } from './large-messages.ts'

type Fields = Readonly<Record<string, unknown>>

/** Reads the arguments of a large tool call as the body of a request, in a worker thread, and checks and digests it. */
export default async function readArguments({
  bytes,
  places,
  rules,
  operation,
  params,
  query,
  isPaid,
}: LargeArgumentsWork): Promise<LargeArguments> {
  const { params: call } = parseMeasuredJson(bytes) as { readonly params: { readonly arguments: Fields } }
  const outside = new Set(places.outside)
  const own = Object.entries(call.arguments).filter(([name]) => !outside.has(name))
  const body = places.isWhole ? call.arguments['body'] : Object.fromEntries(own)
  const items = [...missing(call.arguments, outside, { ...params, ...query }), ...checkBody(body, rules).items]
  const fingerprint = isPaid ? await fingerprintOf(operation, { params, query, body }) : null
  return { bytes: inSharedMemory(JSON.stringify(body) ?? 'null'), items, fingerprint }
}

/** The arguments that belong into path or query, and are too long for them. */
function missing(args: Fields, outside: ReadonlySet<string>, present: Fields): ValidationItem[] {
  const names = Object.keys(args).filter(
    (name) => outside.has(name) && name !== 'payment_signature' && args[name] !== null && !(name in present),
  )
  return names.map((name) => ({ loc: ['query', name], msg: 'Is too long.', type: 'too_long' }))
}

function inSharedMemory(text: string): Uint8Array {
  const encoded = Buffer.from(text)
  const shared = new Uint8Array(new SharedArrayBuffer(encoded.length))
  shared.set(encoded)
  return shared
}
