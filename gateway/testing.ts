/**
 * The contract test kit for plugins, imported as `tollgate/testing`. It opens the catalog of the configuration in
 * memory, calls operations as a buyer would, and tests what every product must keep.
 *
 * @example
 * const { edition, close } = await openTestCatalog({ now })
 * describe('gold', () => {
 *   after(close)
 *   testContract(edition, { now, product: 'gold' })
 *   it('answers with a price', async () => {
 *     const answer = await callOperation(edition, 'getGold', { asOf: now })
 *   })
 * })
 */
import assert from 'node:assert/strict'
import { createValidators } from './catalog/operation-validators.ts'
import { openCatalog } from './compose.ts'
import { readConfig } from './config/config.ts'
import type { BoundOperation, Edition } from './editions/edition.ts'
import { ServiceError } from './errors.ts'
import { type Access, type Input, type Operation, Reply } from './plugin/plugin.ts'
import { type Issue, lineOf } from './validation/issue.ts'

export type { Edition, Issue }

export interface TestCatalogOptions {
  /** Where the clock of the data stands. The default is the present. */
  readonly now?: Date
  /** Environment variables. The default is the environment of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

export interface TestCatalog {
  readonly edition: Edition
  /** What is wrong with the catalog. Products with an issue are not in the edition. */
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
    now === undefined ? undefined : () => now,
  )
  if (edition) return { edition, issues, close }
  await close()
  throw new Error(`The catalog cannot be built:\n${issues.map(lineOf).join('\n')}`)
}

export interface TestRequest extends Partial<Input> {
  /** The newest moment of data that the caller may see. */
  readonly asOf: Date
  readonly signal?: AbortSignal
}

const RETRY_MS = 250
const PAYER = '0x00000000000000000000000000000000000000b2'

/**
 * Calls an operation as a buyer would, or as a free caller if it has no price: validates the input, runs the handler and
 * checks the answer. Returns the body. Throws ServiceError as the gateway would answer it.
 */
export async function callOperation(edition: Edition, id: string, request: TestRequest): Promise<unknown> {
  const bound = edition.bound.get(id)
  if (!bound) throw new Error(`The edition has no operation ${id}.`)
  const { params = {}, query = {}, body, asOf, signal = new AbortController().signal } = request
  const answer = await bound.handle({
    id: 'contract',
    operation: bound.operation,
    catalog: edition.catalog,
    input: bound.validate({ params, query, body }),
    access: accessTo(bound.operation),
    asOf,
    signal,
  })
  return answer instanceof Reply ? answer.body : answer
}

function accessTo({ price }: Operation): Access {
  return price === null ? { kind: 'free' } : { kind: 'payment', payer: PAYER, amount: price }
}

export interface ContractOptions {
  /** Where the clock of the edition stands. */
  readonly now: Date
  /** Tests only this product. The default is every product of the edition. */
  readonly product?: string
}

/**
 * Tests what every product must keep: an example, a prompt end when the caller leaves, answers that match their schema,
 * equal answers to equal calls, and nothing newer than asOf. Call it inside a `describe`; it uses the global `describe`
 * and `it` of the test runner.
 */
export function testContract(edition: Edition, { now, product }: ContractOptions): void {
  const { catalog, bound } = edition
  const validatorsOf = createValidators(catalog.schemas)

  for (const { id, operations, upstream } of catalog.products) {
    if (product !== undefined && id !== product) continue
    for (const operation of operations.filter(isCallable))
      describe(`${id}: ${operation.id}`, () => {
        const asOf = new Date(now.getTime() - operation.maxFreshnessSeconds * 1000)
        const request = operation.example?.request ?? {}
        const needsInput = !accepts(bound.get(operation.id) as BoundOperation, {})
        const call = async (signal?: AbortSignal) =>
          callOperation(edition, operation.id, { ...request, asOf, ...(signal ? { signal } : {}) })

        if (!operation.internal)
          it('has an example if it needs input', () => {
            assert.ok(!needsInput || operation.example !== null, 'add an example to the catalog document')
          })

        it('gives up when the caller leaves', async () => {
          const failure = await call(AbortSignal.abort()).catch((error: unknown) => error)
          assert.ok(failure instanceof ServiceError, `expected a ServiceError, got ${String(failure)}`)
        })

        // An upstream belongs to somebody else, so it is called only when its product is named.
        if (upstream && (product === undefined || upstream.stream)) return

        // An internal operation needs no example, and without one there is no input to call it with.
        if (needsInput && operation.internal && !operation.example) return

        it('answers in the form of its schema', async () => {
          assert.equal(validatorsOf(operation).answer(await whenReady(call)), null)
        })

        // The answers of an upstream may change from call to call.
        if (upstream) return

        it('gives equal answers to equal calls', async () => {
          const first = await whenReady(call)
          assert.deepEqual(overTheWire(await whenReady(call)), overTheWire(first))
        })

        it('shows nothing newer than asOf', async () => {
          for (const moment of asOfMoments(overTheWire(await whenReady(call))))
            assert.ok(moment <= asOf.getTime(), `as_of ${new Date(moment).toISOString()} is newer than the call's asOf`)
        })
      })
  }
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
