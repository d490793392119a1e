import { spawnSync } from 'node:child_process'
import { getPriority } from 'node:os'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { createWorkerPool, type WorkerPool, type WorkerPoolOptions } from '../../../gateway/workers/pool.ts'
import {
  type Ask,
  InvalidInput,
  NotFound,
  ServiceError,
  Unavailable,
  type WorkOptions,
} from '../../../gateway/plugin/plugin.ts'

const FUNCTIONS = new URL('../../fixtures/pure-functions/', import.meta.url)
const root = resolve(import.meta.dirname, '../../..')

describe('the worker pool', () => {
  let pool: WorkerPool
  const open = (options: WorkerPoolOptions = { threads: 1 }): void => {
    pool = createWorkerPool(options)
  }
  const work = (file: string, input: unknown, options?: WorkOptions): Promise<unknown> =>
    pool.work(new URL(file, FUNCTIONS), input, options)
  const failure = (file: string, input: unknown, options?: WorkOptions): Promise<unknown> =>
    work(file, input, options).then(
      (value) => expect.fail(`it returned ${String(value)}`),
      (error: unknown) => error,
    )
  const callOf = (ask: Ask, id = 'call', signal = new AbortController().signal) => ({ id, ask, signal })

  describe('with a thread that has run other functions', () => {
    before(() => open())
    after(() => pool.close())

    it('lets timers fire while a function computes', async () => {
      const flag = new Int32Array(new SharedArrayBuffer(4))
      const computing = work('wait.ts', { flag, milliseconds: 30_000 })
      await sleep(5)
      // Nobody else ends the wait.
      Atomics.store(flag, 0, 1)
      Atomics.notify(flag, 0)
      expect(await computing).to.be.oneOf(['ok', 'not-equal'])
    })

    it('has a lower priority than the event loop, which keeps its own', async function () {
      if (process.platform !== 'linux') return this.skip()
      const own = getPriority()
      expect(await work('priority.ts', null)).to.equal(5)
      expect(getPriority()).to.equal(own)
    })

    it('keeps the class and the fields of a ServiceError', async () => {
      const wrong = await failure('refuse.ts', 'InvalidInput')
      expect(wrong).to.be.instanceOf(InvalidInput)
      expect((wrong as InvalidInput).detail).to.deep.equal([
        { loc: ['body', 'rows', 7], msg: 'Is not a number.', type: 'number', input: 'x' },
      ])
      expect(await failure('refuse.ts', 'NotFound'))
        .to.be.instanceOf(NotFound)
        .and.include({ message: 'There is no such star.' })
      const later = await failure('refuse.ts', 'Unavailable')
      expect(later).to.be.instanceOf(Unavailable).and.include({ message: 'Not yet.' })
      expect((later as Unavailable).headers).to.deep.equal({ 'retry-after': '7' })
      const large = (await failure('refuse.ts', 'ServiceError')) as ServiceError
      expect(large).to.be.instanceOf(ServiceError).and.include({ code: 'body_too_large', reason: 'rows', status: 413 })
      expect(large.fields).to.deep.equal({ max_rows: 3 })
      expect(large.stack).to.contain('refuse.ts')
    })

    it('keeps the class of other errors, and the message of an error that cannot be copied', async () => {
      expect(await failure('refuse.ts', 'RangeError')).to.be.instanceOf(RangeError)
      expect(await failure('refuse.ts', 'other'))
        .to.be.instanceOf(Error)
        .and.include({ message: 'body: It cannot be copied.' })
      expect(await failure('missing.ts', null))
        .to.have.property('message')
        .that.contains('missing.ts')
    })

    it('moves the buffers of a result that are marked with transfer, and copies the others', async () => {
      const result = (await work('rows.ts', 3)) as { moved: Float64Array; copied: Float64Array }
      expect([...result.moved, ...result.copied]).to.deep.equal([1, 1, 1, 2, 2, 2])
    })

    it('copies the input at once, so that the caller may change it while the function waits', async () => {
      const [values, first] = [new Float64Array([1, 2]), work('compute.ts', 20)]
      const sum = work('sum.ts', values)
      values.fill(7)
      await first
      expect(await sum).to.equal(3)
    })

    it('rejects an input that cannot be copied', async () => {
      expect(await failure('compute.ts', () => 1)).to.have.property('name', 'DataCloneError')
    })

    it('lets modules take turns, so that many calls of one product do not hold up another', async () => {
      const ended: string[] = []
      const note = (name: string, input: unknown) => work(name, input).then(() => ended.push(name))
      await Promise.all([
        ...Array.from({ length: 4 }, () => note('compute.ts', 1)),
        note('sum.ts', new Float64Array([1])),
      ])
      expect(ended.slice(0, 2)).to.deep.equal(['compute.ts', 'sum.ts'])
    })

    it('shows a function no environment variables, which may be secrets', async () => {
      expect(await work('secrets.ts', null)).to.deep.equal([])
    })

    it('asks other products on the event loop, and passes on their answers and refusals', async () => {
      const ask = ((operation: string, input: { symbol: string }) => {
        if (operation === 'getPrice') return Promise.resolve({ ...input, price: 7 })
        return Promise.reject(new NotFound('There is no such product.'))
      }) as never
      const price = { operation: 'getPrice', input: { symbol: 'X' } }
      expect(await work('question.ts', price, { call: callOf(ask) })).to.deep.equal({ symbol: 'X', price: 7 })
      const other = { operation: 'getOther', input: {} }
      expect(await work('question.ts', other, { call: callOf(ask) })).to.deep.equal({
        name: 'NotFound',
        status: 404,
        message: 'There is no such product.',
      })
      expect(await work('question.ts', price)).to.equal('failed')
    })
  })

  describe('with threads of its own', () => {
    beforeEach(() => open())
    afterEach(() => pool.close())

    it('starts no thread before the first function, and reuses it afterwards', async () => {
      open({ threads: 2 })
      expect(pool.threadCount).to.equal(0)
      await work('compute.ts', 1)
      await work('compute.ts', 1)
      expect(pool.threadCount).to.equal(1)
    })

    it('ends a function that never ends at its timeout, and runs the next one in a new thread', async () => {
      const hanging = failure('hang.ts', null, { timeoutSeconds: 0.2 })
      const next = work('compute.ts', 1)
      const error = await hanging
      expect(error).to.be.instanceOf(ServiceError)
      expect(error).to.include({
        code: 'product_timeout',
        message: 'The computation took longer than 0.2 seconds; nothing was charged.',
      })
      expect(await next).to.be.greaterThan(0)
    })

    it('ends a function whose caller leaves', async () => {
      const [leaving, reason] = [new AbortController(), new Error('the caller left')]
      const hanging = failure('hang.ts', null, { signal: leaving.signal })
      const ofCall = failure('compute.ts', 1, { call: callOf(() => expect.fail(), 'call', leaving.signal) })
      const next = work('compute.ts', 1)
      leaving.abort(reason)
      expect(await hanging).to.equal(reason)
      expect(await ofCall).to.equal(reason)
      expect(await next).to.be.greaterThan(0)
      expect(pool.threadCount).to.equal(1)
    })

    it('answers with an error that names the memory limit if a function allocates without bound', async () => {
      open({ threads: 1, heapMegabytes: 64 })
      const hoarding = failure('hoard.ts', null)
      const next = work('compute.ts', 1)
      expect(await hoarding)
        .to.have.property('message')
        .that.matches(/^The worker thread that ran .*hoard\.ts has ended: it needs more than 64 MB of memory\.$/)
      expect(await next).to.be.greaterThan(0)
    })

    it('answers with an error if a function ends its thread, and fails no other function', async () => {
      open({ threads: 2 })
      const other = work('compute.ts', 200)
      const error = (await failure('leave.ts', null)) as Error
      expect(error.message).to.match(/leave\.ts has ended: it called process\.exit\.$/)
      expect(await other).to.be.greaterThan(0)
    })

    it('refuses with 503 when too many functions wait', async () => {
      open({ threads: 1, maxWaiting: 1 })
      const [running, waiting] = [work('compute.ts', 1), work('compute.ts', 1)]
      const error = await failure('compute.ts', 1)
      expect(error).to.be.instanceOf(Unavailable).and.include({ status: 503 })
      await Promise.all([running, waiting])
    })

    it('never gives free work the last thread, and gives a free thread to paid work first', async () => {
      open({ threads: 2 })
      const ended: string[] = []
      const run = (queue: 'paid' | 'free', name: string) =>
        pool.workIn(queue, new URL('compute.ts', FUNCTIONS), 1).then(() => ended.push(name))
      const hang = (queue: 'paid' | 'free') => {
        const leaving = new AbortController()
        const hanging = pool.workIn(queue, new URL('hang.ts', FUNCTIONS), null, { signal: leaving.signal })
        return { end: () => leaving.abort(), ended: hanging.catch(() => {}) }
      }
      const hangingFree = hang('free')
      const free = run('free', 'free')
      await Promise.all([run('paid', 'paid 1'), run('paid', 'paid 2')])
      expect(ended).to.deep.equal(['paid 1', 'paid 2'])
      const hangingPaid = hang('paid')
      const paid = run('paid', 'paid 3')
      hangingFree.end()
      await Promise.all([free, paid])
      expect(ended).to.deep.equal(['paid 1', 'paid 2', 'paid 3', 'free'])
      hangingPaid.end()
      await Promise.all([hangingFree.ended, hangingPaid.ended])
    })

    it('refuses with 503 what has waited too long, without running it', async () => {
      open({ threads: 1, maxWaitSeconds: 0.05 })
      const running = work('compute.ts', 300)
      const error = await failure('compute.ts', 1)
      expect(error).to.be.instanceOf(Unavailable).and.include({ status: 503 })
      expect((error as Unavailable).headers).to.have.property('retry-after')
      await running
      expect(await work('compute.ts', 1)).to.be.greaterThan(0)
    })

    it('runs what an asked product needs for the same call, even if no thread is free', async () => {
      const ask = (() => work('sum.ts', new Float64Array([1, 2]), { call: callOf(ask, 'first') })) as unknown as Ask
      const question = { operation: 'getSum', input: {} }
      const [first, other] = [
        work('question.ts', question, { call: callOf(ask, 'first') }),
        work('compute.ts', 1, { call: callOf(ask, 'other') }),
      ]
      expect(await first).to.equal(3)
      expect(await other).to.be.greaterThan(0)
      expect(pool.threadCount).to.equal(1)
    })

    it('rejects what runs and what waits when it is closed, and everything after that', async () => {
      const running = [failure('hang.ts', null), failure('compute.ts', 1)]
      await pool.close()
      for (const error of await Promise.all(running)) expect(error).to.include({ message: 'The gateway is closing.' })
      expect(await failure('compute.ts', 1)).to.include({ message: 'The gateway is closing.' })
      expect(pool.threadCount).to.equal(0)
    })

    it('does not keep the process alive once its functions have ended', () => {
      const source = `import { createWorkerPool } from './gateway/workers/pool.ts'
      const { work } = createWorkerPool({ threads: 1 })
      work(new URL('compute.ts', '${FUNCTIONS.href}'), 1).then(() => console.log('done'))`
      const args = ['--import', 'tsx/esm', '--input-type=module', '--eval', source]
      const { stdout, status } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', timeout: 30_000 })
      expect([stdout, status]).to.deep.equal(['done\n', 0])
    })
  })
})
