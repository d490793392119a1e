/**
 * The test kit for plugins, imported as `tollgate/testing`. It opens one product, or the catalog of the configuration, in
 * memory, calls operations as a buyer would, and tests what every product must keep.
 */
import assert from 'node:assert/strict'
import { createValidators } from '../catalog/operation-validators.ts'
import { isEventStream } from '../catalog/validate.ts'
import { openCatalog } from '../compose.ts'
import { readConfig } from '../config/config.ts'
import type { BoundOperation, Edition } from '../products/edition.ts'
import { ServiceError } from '../errors.ts'
import type { Input, Operation, OperationId, ServerEvent } from '../plugin/plugin.ts'
import { callOperation, type CallOptions } from './call-operation.ts'
import { type Issue, lineOf } from '../validation/issue.ts'

export { callOperation, type CallOptions } from './call-operation.ts'
export { openTestProduct, TestClock, type TestProduct, type TestProductOptions } from './test-product.ts'
export type { Edition, Issue }

export interface TestCatalogOptions {
  /** Where the clock of the data stands. The default is the present. */
  readonly now?: Date
  /** Environment variables. The default is the environment of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

export interface TestCatalog {
  readonly edition: Edition
  /** Issues of the catalog. Products with an issue are not in the edition. */
  readonly issues: readonly Issue[]
  close(): Promise<void>
}

/**
 * Opens the catalog of the configuration. Everything is in memory: no chain, no listening socket, no job until
 * `edition.start()`. Throws with all issues if the catalog cannot be built at all.
 */
export async function openTestCatalog({ now, environment }: TestCatalogOptions = {}): Promise<TestCatalog> {
  const { edition, issues, close } = await openCatalog(
    environment === undefined ? readConfig() : readConfig(environment),
    { checksViews: true, ...(now === undefined ? {} : { now: () => now }) },
  )
  if (edition) return { edition, issues, close }
  await close()
  throw new Error(`The catalog cannot be built:\n${issues.map(lineOf).join('\n')}`)
}

interface TestRunner {
  describe(title: string, body: () => void): unknown
  it(title: string, body: () => void | Promise<void>): unknown
}

/** The globals of the test runner, such as Mocha's, or else the runner that comes with Node. */
const { describe, it }: TestRunner = 'describe' in globalThis ? globalThis : await import('node:test')

const RETRY_MS = 250
/** How long to wait for the first event of a stream. There may be none for hours. */
const FIRST_EVENT_MS = 500
/** How long a stream may take to end after the caller has left. */
const END_MS = 1_000

export interface ContractOptions {
  /** Where the clock of the edition stands. */
  readonly now: Date
  /** Tests only this product. The default is every product of the edition. */
  readonly product?: string
}

/**
 * Tests what every product must keep: an example, a prompt end when the caller leaves, answers that match their schema,
 * equal answers to equal calls, and nothing newer than asOf. An operation whose `response` has the media type
 * text/event-stream is tested as a stream. Call it inside a `describe`: that of the test runner's globals, or of node:test
 * if there are none.
 */
export function testContract(edition: Edition, { now, product }: ContractOptions): void {
  if (product !== undefined)
    it('is in the catalog', () => {
      const reason = edition.disabled.find((disabled) => disabled.product === product)?.reason
      const isThere = edition.catalog.products.some(({ id }) => id === product)
      assert.ok(isThere, `${product} is disabled or missing: ${reason ?? 'no catalog file has this product'}`)
    })
  for (const { id, operations, upstream } of edition.catalog.products) {
    if (product !== undefined && id !== product) continue
    for (const operation of operations.filter(isCallable))
      describe(`${id}: ${operation.id}`, () => {
        const call = callerOf(edition, operation, now)
        if (!operation.internal)
          it('has an example if it needs input', () => {
            assert.ok(!call.needsInput || operation.example !== null, 'add an example to the catalog document')
          })

        it('gives up when the caller leaves', async () => {
          assertRefusal(await call.once({ signal: AbortSignal.abort() }).catch((error: unknown) => error))
        })

        // An upstream belongs to somebody else, so it is called only when its product is named.
        if (upstream && (product === undefined || upstream.stream)) return

        // An internal operation needs no example, and without one there is no input to call it with.
        if (call.needsInput && operation.internal && !operation.example) return

        if (isEventStream(operation.response) && !upstream) testStream(call)
        else testAnswers(edition, operation, call, upstream !== null)
      })
  }
}

/** Calls one operation with the input of its example. */
interface Caller {
  readonly id: OperationId
  readonly asOf: Date
  readonly needsInput: boolean
  once(more?: Pick<CallOptions, 'signal' | 'stream'>): Promise<unknown>
  /** Calls again while the product reports that its data are not ready. */
  ready(more?: Pick<CallOptions, 'signal' | 'stream'>): Promise<unknown>
}

function callerOf(edition: Edition, operation: Operation, now: Date): Caller {
  const asOf = new Date(now.getTime() - operation.maxFreshnessSeconds * 1000)
  const request = operation.example?.request ?? {}
  const once: Caller['once'] = async (more = {}): Promise<unknown> =>
    callOperation(edition, operation.id, { ...request, asOf, ...more })
  return {
    id: operation.id,
    asOf,
    needsInput: !accepts(edition.bound.get(operation.id) as BoundOperation, {}),
    once,
    ready: async (more) => whenReady(async () => once(more)),
  }
}

function testAnswers(edition: Edition, operation: Operation, call: Caller, isUpstream: boolean): void {
  const validators = createValidators(edition.catalog.schemas)(operation)

  it('answers in the form of its schema', async () => {
    const answer = await call.ready().catch((error: unknown) => explainStream(call, error))
    assert.equal(validators.answer(answer), null)
  })

  // The answers of an upstream may change from call to call.
  if (isUpstream) return

  it('gives equal answers to equal calls', async () => {
    const first = await call.ready()
    assert.deepEqual(overTheWire(await call.ready()), overTheWire(first))
  })

  it('shows nothing newer than asOf', async () => assertNothingNewer(await call.ready(), call.asOf))
}

/** Throws the error, or what to write in the catalog if it refused a caller who does not accept a stream. */
async function explainStream(call: Caller, error: unknown): Promise<never> {
  const streamed = await call.once({ stream: { lastEventId: null } }).catch(() => null)
  if (isIterable(streamed))
    assert.fail(
      `${call.id} answers with a stream only. Say so in the catalog document: ` +
        '"response": { "type": "string", "contentMediaType": "text/event-stream" }',
    )
  throw error
}

function testStream(call: Caller): void {
  it('refuses a caller who does not accept server-sent events', async () => {
    assertRefusal(await call.ready().catch((error: unknown) => error))
  })

  it('sends events with an id and JSON data', async () => {
    const event = await firstEvent(call, null)
    if (!event) return
    assert.match(
      event.id ?? '',
      /^[^\r\n\0]+$/,
      'an event needs an id in one line, so that a caller can go on after it',
    )
    assert.notEqual(overTheWire(event.data), undefined, 'an event needs data that JSON can hold')
  })

  it('goes on after the event that the caller received last', async () => {
    const first = await firstEvent(call, null)
    if (!first) return
    const next = await firstEvent(call, first.id ?? null)
    assert.notEqual(next?.id, first.id, 'the event named by stream.lastEventId was sent again')
  })

  it('shows nothing newer than asOf', async () => {
    assertNothingNewer((await firstEvent(call, null))?.data, call.asOf)
  })

  it('ends when the caller leaves', async () => {
    const caller = new AbortController()
    const source = await call.ready({ signal: caller.signal, stream: { lastEventId: null } })
    assert.ok(isIterable(source), 'expected Reply.events')
    const events = source[Symbol.asyncIterator]()
    const first = await Promise.race([events.next(), after(FIRST_EVENT_MS, 'no event')])
    caller.abort()
    // An event that was under way may still come.
    const rest = async () => {
      while (first !== 'no event' && !(await events.next()).done);
    }
    const end = Promise.all([rest(), events.return?.()]).catch(() => {})
    const isOpen = (await Promise.race([end, after(END_MS, 'open')])) === 'open'
    assert.ok(!isOpen, `the stream is still open ${END_MS} ms after call.signal aborted: let the signal end every wait`)
  })
}

/** The first event after `lastEventId` that has no name of its own, or undefined if none comes soon. Closes the stream. */
async function firstEvent(call: Caller, lastEventId: string | null): Promise<ServerEvent | undefined> {
  const caller = new AbortController()
  const source = await call.ready({ signal: caller.signal, stream: { lastEventId } })
  assert.ok(isIterable(source), 'expected Reply.events')
  const events = source[Symbol.asyncIterator]()
  try {
    const late = after(FIRST_EVENT_MS, undefined)
    let next = await Promise.race([events.next(), late])
    while (next?.done === false && next.value.event !== undefined) next = await Promise.race([events.next(), late])
    return next?.done === false ? next.value : undefined
  } finally {
    caller.abort()
    void events.return?.()?.catch(() => {})
  }
}

function isIterable(answer: unknown): answer is AsyncIterable<ServerEvent> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
}

const after = async <Value>(ms: number, value: Value): Promise<Value> =>
  new Promise((resolve) => setTimeout(() => resolve(value), ms))

function assertRefusal(outcome: unknown): void {
  assert.ok(outcome instanceof ServiceError, `expected a ServiceError, got ${String(outcome)}`)
}

function assertNothingNewer(answer: unknown, asOf: Date): void {
  for (const moment of asOfMoments(overTheWire(answer)))
    assert.ok(moment <= asOf.getTime(), `as_of ${new Date(moment).toISOString()} is newer than the call's asOf`)
}

/** Calls again while the product reports that its data are not ready. The timeout of the test ends it. */
async function whenReady(call: () => Promise<unknown>): Promise<unknown> {
  for (;;)
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'product_suspended')) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
}

/**
 * Leaves out operations that no generic request can call: retired ones, plans, and operations that need a private link
 * or a wallet's signature. Their own test suites cover them.
 */
function isCallable({ retired, plan, product, listed, internal, example }: Operation): boolean {
  return !retired && !plan && product !== 'plans' && (listed || internal || example !== null)
}

function accepts(bound: BoundOperation, input: Partial<Input>): boolean {
  try {
    bound.validate({ params: {}, query: {}, body: undefined, ...input })
    return true
  } catch {
    return false
  }
}

/** Returns the body as a client parses it. The data of a view may hold amounts in atomic units, as bigint. */
function overTheWire(body: unknown): unknown {
  if (Buffer.isBuffer(body)) return JSON.parse(body.toString('utf8'))
  const text = JSON.stringify(body, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return text === undefined ? undefined : JSON.parse(text)
}

/** Lists every `as_of` in an answer, in milliseconds. Numbers are seconds. */
function asOfMoments(value: unknown): number[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, child]) => {
    if (name !== 'as_of' || typeof child === 'object') return asOfMoments(child)
    return [typeof child === 'number' ? child * 1000 : Date.parse(String(child))]
  })
}
