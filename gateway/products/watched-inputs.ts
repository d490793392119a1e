/**
 * Inputs whose data can fail by themselves, such as one per symbol. The product says which they are (`watched`). Here they
 * are completed to whole inputs, get a name, and are found again in the address of a call.
 */
import { andThen, type Awaitable, isPromise } from '../awaitable.ts'
import type { Validators } from '../catalog/operation-validators.ts'
import { Unavailable } from '../errors.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Input, Logger, WatchedInput } from '../plugin/plugin.ts'
import { isObject } from '../validation/json.ts'

/** A watched input, completed with the fields of an ordinary call. */
export interface NamedInput {
  /** The request with what sets it apart: `GET /v1/bars?symbol=ETH-USD`. */
  readonly request: string
  readonly input: Input
  /** The part of an address that names the input. Null if its body does, which is not read before a call is paid for. */
  readonly address: Address | null
}

interface Address {
  readonly path: string
  readonly query: readonly (readonly [name: string, value: string])[]
}

/**
 * Completes a watched input. Null if it is that of an ordinary call, whose state is known already.
 * @param usual the input of an ordinary call
 * @throws InvalidInput if it does not fit the schema of the operation
 */
export function nameInput(
  { method, path }: Pick<Operation, 'method' | 'path'>,
  { params = {}, query = {}, body }: WatchedInput,
  usual: Input,
  validators: Pick<Validators, 'input'>,
): NamedInput | null {
  const whole = isObject(usual.body) ? { ...usual.body, ...body } : (body ?? usual.body)
  const input = validators.input({
    params: { ...usual.params, ...params },
    query: { ...usual.query, ...query },
    body: whole,
  })
  if (JSON.stringify(input) === JSON.stringify(usual)) return null
  const filled = path.replace(/\{([^}]+)\}/g, (braced, name: string) =>
    name in params ? encodeURIComponent(params[name] as string) : braced,
  )
  const fields = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)])
  const search = fields.length === 0 ? '' : `?${new URLSearchParams(fields).toString()}`
  return {
    request: `${method} ${filled}${search}${body ? ` ${JSON.stringify(body)}` : ''}`,
    input,
    address: body ? null : { path: filled, query: fields },
  }
}

/** How long a list of inputs is used before the product is asked again. */
const LISTED_MS = 60_000
/** Anybody may send a query, and reading a long one costs more than the rest of a 402. */
const MAX_QUERY_CHARACTERS = 300

/** The inputs of one operation that are watched, with what is made for each of them. */
export class WatchedInputs<Each> {
  readonly #read: () => Awaitable<readonly NamedInput[]>
  readonly #make: (named: NamedInput) => Each
  readonly #log: Pick<Logger, 'warn'>
  #known: readonly { readonly named: NamedInput; readonly each: Each }[] = []
  #readAt = -Infinity
  #reading: Promise<void> | null = null

  /** @param make is called once for each input, as long as the product lists it */
  constructor(
    read: () => Awaitable<readonly NamedInput[]>,
    make: (named: NamedInput) => Each,
    log: Pick<Logger, 'warn'>,
  ) {
    this.#read = read
    this.#make = make
    this.#log = log
  }

  /** The value made for each input. The product is asked at most once a minute; if it fails, its last list stays. */
  all(): Awaitable<readonly Each[]> {
    const listed = (): readonly Each[] => this.#known.map(({ each }) => each)
    const reading = this.#refresh()
    return reading ? reading.then(listed) : listed()
  }

  /** The value made for the input that an address names, as far as the inputs are known at once. */
  namedBy(url: string): Each | null {
    void this.#refresh()
    const mark = url.indexOf('?')
    const path = mark === -1 ? url : url.slice(0, mark)
    if (mark !== -1 && url.length - mark > MAX_QUERY_CHARACTERS) return null
    let query: URLSearchParams | undefined
    const names = ({ address }: NamedInput): boolean =>
      address !== null &&
      path.endsWith(address.path) &&
      (address.query.length === 0 || mark !== -1) &&
      address.query.every(([name, value]) => (query ??= new URLSearchParams(url.slice(mark))).get(name) === value)
    return this.#known.find(({ named }) => names(named))?.each ?? null
  }

  /** Asks for the list if the last one is old. Never rejects. */
  #refresh(): Promise<void> | null {
    const now = performance.now()
    if (this.#reading || now - this.#readAt < LISTED_MS) return this.#reading
    this.#readAt = now
    const fail = (error: unknown): void => {
      // Its data are still being loaded, which /health says: ask again at the next look.
      if (error instanceof Unavailable) this.#readAt = -Infinity
      else this.#log.warn({ err: error }, 'a product could not say which inputs to watch; the last ones are watched')
    }
    try {
      const read = andThen(this.#read(), (inputs) => this.#keep(inputs))
      if (!isPromise(read)) return null
      this.#reading = read.catch(fail).finally(() => (this.#reading = null))
    } catch (error) {
      fail(error)
    }
    return this.#reading
  }

  #keep(inputs: readonly NamedInput[]): void {
    const before = new Map(this.#known.map((one) => [one.named.request, one]))
    this.#known = inputs.map((named) => before.get(named.request) ?? { named, each: this.#make(named) })
  }
}
