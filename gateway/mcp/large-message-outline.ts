import { parseMeasuredJson } from '../validation/json-body.ts'
import { isObject } from '../validation/json.ts'
import type { Outline } from './large-messages.ts'

/** An argument whose JSON is longer is left for the second reading. */
const SHORT = 1_024
const MAX_ARGUMENTS = 200
/** A message may have this much besides its arguments: the payment and other metadata. */
const MAX_REST = 65_536

/** Reads a message without its large arguments, in a worker thread. Throws InvalidInput if it is not JSON. */
export default function outlineMessage(bytes: Uint8Array): Outline {
  const message = parseMeasuredJson(bytes)
  if (Array.isArray(message)) return { refusal: 'A batch this large is not accepted; send its messages one by one.' }
  const params = isObject(message) ? message['params'] : null
  if (!isObject(message) || message['method'] !== 'tools/call' || !isObject(params) || !isObject(params['arguments']))
    return { refusal: 'Only a call of a tool may be this large.' }
  const { arguments: args, ...others } = params
  const short = Object.entries(args)
    .filter(([, value]) => isShort(value))
    .slice(0, MAX_ARGUMENTS)
  const outline = { ...message, params: { ...others, arguments: Object.fromEntries(short) } }
  // The payment is an argument too, and longer than other short ones.
  const payment = args['payment_signature']
  if (payment !== undefined) Object.assign(outline.params.arguments, { payment_signature: payment })
  if (JSON.stringify(outline).length > MAX_REST + MAX_ARGUMENTS * SHORT)
    return { refusal: 'Only the arguments of a tool may be this large.' }
  return { message: outline }
}

function isShort(value: unknown): boolean {
  return typeof value === 'string' ? value.length < SHORT : JSON.stringify(value).length < SHORT
}
