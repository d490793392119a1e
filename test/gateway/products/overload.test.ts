/** Circuit breakers count faults of a product, never overload: each kind of it, with a product that is to blame beside it. */
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Edition } from '../../../gateway/products/edition.ts'
import { callerOf, RUNNING, type RunningCall, withTimeout } from '../../../gateway/workers/timeout.ts'
import { createWorkerPool, type WorkerPool } from '../../../gateway/workers/pool.ts'
import type { ServiceError } from '../../../gateway/errors.ts'
import { callOperation } from '../../../gateway/testing/testing.ts'
import { slow } from '../../fixtures/plugins/slow/index.ts'
import { openCatalog, openEditionBuilder, type TestCatalog, thing } from '../../support/catalog.ts'

const TIMEOUT_SECONDS = 0.25
/** Failures that open a breaker. */
const FAILURES = 5
const asOf = new Date('2026-05-01T00:00:00Z')

const operation = (product: string, handler: string) => ({
  ...thing('slow').operations.getThing,
  route: `GET /v1/${product}/${handler}`,
  response: { type: 'object' },
  timeout_seconds: TIMEOUT_SECONDS,
  handler,
})
const productOf = (name: string, handlers: readonly string[]) => ({
  ...thing('slow', {}, { product: name }),
  operations: Object.fromEntries(
    ['steps', 'query', 'hold', 'hang'].map((handler) => [
      `${name}${handler}`,
      { ...operation(name, handler), timeout_seconds: handlers.includes(handler) ? TIMEOUT_SECONDS : 60 },
    ]),
  ),
})

describe('overload', () => {
  let catalog: TestCatalog
  let builder: Awaited<ReturnType<typeof openEditionBuilder>>
  let edition: Edition

  beforeEach(async () => {
    catalog = openCatalog({
      'patient.json': productOf('patient', ['steps', 'query', 'hang']),
      'greedy.json': productOf('greedy', ['query']),
    })
    builder = await openEditionBuilder(catalog)
    edition = (await builder.build()).edition
  })

  afterEach(async () => {
    await edition.stop()
    await builder.close()
    catalog.close()
  })

  const isOpen = (id: string): boolean => {
    try {
      edition.bound.get(id)?.assertAvailable()
      return false
    } catch {
      return true
    }
  }
  const outcomes = (id: string, calls: number): Promise<readonly string[]> =>
    Promise.all(
      Array.from({ length: calls }, () =>
        callOperation(edition, id, { asOf }).then(
          () => 'answered',
          (error: unknown) => (error as ServiceError).code,
        ),
      ),
    )

  /** Keeps the event loop busy with something else until the function that is returned is called. */
  function occupyLoop(): () => void {
    const busy = setInterval(() => {
      const end = performance.now() + 100
      while (performance.now() < end);
    }, 1)
    return () => clearInterval(busy)
  }

  it('of the event loop opens no breaker: what a call loses is given back', async () => {
    const release = occupyLoop()
    try {
      expect(await outcomes('patientsteps', FAILURES)).to.deep.equal(Array(FAILURES).fill('answered'))
    } finally {
      release()
    }
    expect(isOpen('patientsteps')).to.equal(false)
  })

  it('that ends does not excuse a product that hangs', async () => {
    const release = occupyLoop()
    const hanging = outcomes('patienthang', FAILURES)
    await outcomes('patientsteps', 1)
    release()
    expect(await hanging).to.deep.equal(Array(FAILURES).fill('product_timeout'))
    expect(isOpen('patienthang')).to.equal(true)
  })

  it('of the database opens no breaker of a product that waits behind another', async () => {
    let release = (): void => {}
    slow.released = new Promise((resolve) => {
      release = resolve
    })
    const holding = outcomes('greedyhold', 1)
    const asking = outcomes('patientquery', FAILURES)
    // Twice as long as the calls may take.
    await sleep(2_000 * TIMEOUT_SECONDS)
    expect(isOpen('patientquery')).to.equal(false)
    release()
    expect([await asking, await holding]).to.deep.equal([Array(FAILURES).fill('answered'), ['answered']])
  })

  it('of the database is the fault of the product whose own queries hold the connection', async () => {
    let release = (): void => {}
    slow.released = new Promise((resolve) => {
      release = resolve
    })
    const holding = outcomes('greedyhold', 1)
    expect(await outcomes('greedyquery', FAILURES)).to.deep.equal(Array(FAILURES).fill('product_timeout'))
    expect(isOpen('greedyquery')).to.equal(true)
    release()
    await holding
    // After the queries whose calls have ended.
    await outcomes('patientquery', 1)
  })

  it('that goes on refuses the call with a time to come back, and blames nobody', async () => {
    const options = { timeoutSeconds: 0.01, queue: 'paid', maxLostSeconds: 0.05 } as const
    const caller = callerOf(new AbortController().signal)
    // It loses a minute whenever anyone looks.
    let lostMs = 0
    const lost = () => (lostMs += 60_000)
    const call = withTimeout({ ...options, lost }, caller, () => new Promise(() => {}))
    const error = await (call as Promise<never>).catch((thrown: unknown) => thrown)
    expect(error).to.include({ code: 'product_suspended' })
    expect((error as ServiceError).headers).to.have.property('retry-after')
  })

  it('of the cores is told to the calls whose functions had none', async function () {
    if (!existsSync('/proc/thread-self/schedstat')) return this.skip()
    const threads = 2 * availableParallelism() + 1
    const pool = createWorkerPool({ threads })
    const computeInAll = () => Promise.all(Array.from({ length: threads }, () => lostIn(pool)))
    try {
      await computeInAll()
      // More threads than cores: some of them must wait, however long that takes to show.
      let lostMs = 0
      while (lostMs < 1) for (const lost of await computeInAll()) lostMs += lost
      expect(lostMs).to.be.at.least(1)
    } finally {
      await pool.close()
    }
  })

  it('does not make a call pay for the start of its thread', async () => {
    const pool = createWorkerPool({ threads: 1 })
    try {
      const began = performance.now()
      const lostMs = await lostIn(pool)
      const tookMs = performance.now() - began
      // The start takes most of it by far.
      expect(lostMs).to.be.within(tookMs / 3, tookMs)
    } finally {
      await pool.close()
    }
  })

  /** Computes for 50 ms in a thread and returns how much time the call was told to have lost, in milliseconds. */
  async function lostIn(pool: WorkerPool): Promise<number> {
    let lostMs = 0
    const running: RunningCall = {
      queue: 'paid',
      client: 'test',
      wait: () => () => {},
      loses(meter) {
        const before = meter()
        return () => {
          lostMs += meter() - before
        }
      },
    }
    const { signal } = new AbortController()
    const call = { id: 'call', signal, ask: () => Promise.reject(new Error('unused')), [RUNNING]: running }
    await pool.work(new URL('../../fixtures/pure-functions/compute.ts', import.meta.url), 50, { call })
    return lostMs
  }
})
