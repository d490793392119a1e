/** What every product of the catalog keeps, whoever wrote it. Call it inside a `describe`, with an edition built before. */
import { expect } from 'chai'
import type { Operation } from '../../gateway/plugin/catalog.ts'
import { createValidators } from '../../gateway/catalog/validators.ts'
import type { BoundOperation, Edition } from '../../gateway/editions/edition.ts'
import { ServiceError } from '../../gateway/errors.ts'
import { type Access, type Input, Reply } from '../../gateway/plugin/plugin.ts'

export interface ContractOptions {
  /** Where the clock of the edition stands. */
  readonly now: Date
  /** One product; else all. */
  readonly product?: string
}

export interface Asked extends Partial<Input> {
  readonly asOf: Date
  readonly signal?: AbortSignal
}

const PATIENCE_MS = 250
const PAYER = '0x00000000000000000000000000000000000000b2'

/** The body a handler answers with, validated input and all, as a payer or a free caller would get it. */
export async function answerTo(edition: Edition | null, id: string, asked: Asked): Promise<unknown> {
  const bound = edition?.bound.get(id)
  if (!edition || !bound) throw new Error(`the edition has no ${id}`)
  const { params = {}, query = {}, body, asOf, signal = new AbortController().signal } = asked
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

export function keepsTheContract(edition: Edition | null, { now, product }: ContractOptions): void {
  if (!edition) throw new Error('the catalog refuses to be built: npm run check says why')
  const { catalog, bound } = edition
  const validatorsOf = createValidators(catalog.schemas)

  for (const { id, operations, upstream } of catalog.products) {
    if (product !== undefined && id !== product) continue
    for (const operation of operations.filter(isHeld))
      describe(`${id}: ${operation.id}`, () => {
        const asOf = new Date(now.getTime() - operation.maxFreshnessSeconds * 1000)
        const request = operation.example?.request ?? {}
        const needsExample = !accepts(bound.get(operation.id) as BoundOperation, {})
        const answer = async (signal?: AbortSignal) =>
          answerTo(edition, operation.id, { ...request, asOf, ...(signal ? { signal } : {}) })

        /** A product whose data are still being made says so and charges nothing: it is asked again. */
        async function look(check: (body: unknown) => void | Promise<void>): Promise<void> {
          for (;;)
            try {
              return await check(await answer())
            } catch (error) {
              if (!(error instanceof ServiceError && error.code === 'product_suspended')) throw error
              await new Promise((wake) => setTimeout(wake, PATIENCE_MS))
            }
        }

        if (!operation.internal)
          it('has an example where it needs input', () => {
            expect(needsExample && operation.example === null).to.equal(false)
          })

        it('gives up when the caller leaves', async () => {
          const failure = await answer(AbortSignal.abort()).catch((error: unknown) => error)
          expect(failure).to.be.instanceOf(ServiceError)
        })

        // Somebody else's service is asked only where its product is meant.
        if (upstream && (product === undefined || upstream.stream)) return

        // What only products ask for needs no example; without one there is nothing to ask.
        if (needsExample && operation.internal && !operation.example) return

        it('answers in the form of its schema', async () => {
          await look((body) => {
            expect(validatorsOf(operation).answer(body)).to.equal(null)
          })
        })

        // What it answers is its own affair, and of this moment.
        if (upstream) return

        it('gives the same answer to the same call', async () => {
          await look(async (body) => {
            expect(plain(await answer())).to.deep.equal(plain(body))
          })
        })

        it('shows nothing newer than asOf', async () => {
          await look((body) => {
            for (const moment of momentsIn(plain(body))) expect(moment, 'as_of').to.be.at.most(asOf.getTime())
          })
        })
      })
  }
}

/**
 * What is retired is not sold any more; plans, and what only a private link or a wallet's signature opens, have no
 * request that works for everybody: their own suites hold them.
 */
function isHeld({ retired, plan, product, listed, internal, example }: Operation): boolean {
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

/** As it goes over the wire, pre-serialised JSON included; what a view is given may hold amounts in atomic units. */
function plain(body: unknown): unknown {
  if (Buffer.isBuffer(body)) return JSON.parse(body.toString('utf8'))
  const text = JSON.stringify(body, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return text === undefined ? undefined : JSON.parse(text)
}

/** Every `as_of` of an answer, in milliseconds; numbers are seconds. */
function momentsIn(value: unknown): number[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, child]) => {
    if (name !== 'as_of' || typeof child === 'object') return momentsIn(child)
    return [typeof child === 'number' ? child * 1000 : Date.parse(String(child))]
  })
}
