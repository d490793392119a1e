/** Inputs whose large body is still the text that was sent, so that a worker thread can parse it. */

/** A body that was checked, and has not been parsed on the event loop. */
export interface UnreadBody {
  /** Its bytes, in memory that threads share. */
  readonly bytes: Uint8Array
  /** What a thread needs to apply defaults, as the gateway does it. */
  readonly rules: unknown
}

interface Sent {
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
}

const unread = new WeakMap<object, UnreadBody>()

/** Creates an input whose body is parsed when it is first read. */
export function inputWithUnread(
  { params, query }: Sent,
  body: UnreadBody,
  parse: () => unknown,
): Sent & { readonly body: unknown } {
  const input = { params, query }
  let read: { readonly value: unknown } | null = null
  const keep = (value: unknown): unknown => {
    unread.delete(input)
    read = { value }
    return value
  }
  Object.defineProperty(input, 'body', {
    get: () => (read ? read.value : keep(parse())),
    set: keep,
    enumerable: true,
    configurable: true,
  })
  unread.set(input, body)
  return input as Sent & { readonly body: unknown }
}

/**
 * True if the body of an input is large and was not parsed yet. Reading `input.body` parses it on the event loop, which
 * delays other calls. To parse it in the thread, pass `input` to `context.work`, as it is or as a property of an object.
 */
export function hasUnreadBody(input: object): boolean {
  return unread.has(input)
}

/** Returns the body that `hasUnreadBody` reports. */
export function unreadBodyOf(input: unknown): UnreadBody | undefined {
  return typeof input === 'object' && input !== null ? unread.get(input) : undefined
}
