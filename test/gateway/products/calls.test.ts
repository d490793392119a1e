import { expect } from 'chai'
import type { Edition } from '../../../gateway/products/edition.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { callOperation } from '../../../gateway/testing/testing.ts'
import { signals } from '../../fixtures/plugins/hangs/index.ts'
import { state } from '../../fixtures/plugins/throws/index.ts'
import { gold, openCatalog, openEditionBuilder, TELLER, type TestCatalog, thing } from '../../support/catalog.ts'

const asOf = new Date('2026-05-01T00:00:00Z')

describe('a call of a product', () => {
  let catalog: TestCatalog
  let builder: Awaited<ReturnType<typeof openEditionBuilder>>
  let edition: Edition

  async function open(documents: Readonly<Record<string, unknown>>): Promise<void> {
    catalog = openCatalog(documents)
    builder = await openEditionBuilder(catalog)
    edition = (await builder.build()).edition
    state.broken = true
  }

  afterEach(async () => {
    await edition.stop()
    await builder.close()
    catalog.close()
  })

  async function failure(
    id: string,
    asked: { query?: Record<string, unknown>; signal?: AbortSignal } = {},
  ): Promise<ServiceError> {
    const error = await callOperation(edition, id, { asOf, ...asked }).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).to.be.instanceOf(ServiceError)
    return error as ServiceError
  }

  const unavailability = (id: string): unknown => {
    try {
      edition.bound.get(id)?.assertAvailable()
      return null
    } catch (error) {
      return error
    }
  }

  it('is answered with product_failed if the handler throws, and only the log has the cause', async () => {
    await open({ 'throws.json': thing('throws') })
    const error = await failure('getThing')
    expect(error).to.include({ code: 'product_failed', status: 502 })
    expect(error.message).not.to.contain('a detail nobody outside may read')
    expect((error.cause as Error).message).to.equal('a detail nobody outside may read')
  })

  it('is answered with product_failed if the answer breaks its schema', async () => {
    await open({ 'wrong-answer.json': thing('wrong-answer') })
    const error = await failure('getThing')
    expect(error.code).to.equal('product_failed')
    expect((error.cause as Error).message).to.equal(
      'the answer of getThing breaks its schema: price: Must be a number.',
    )
  })

  it('has an answer that the handler has written as JSON checked like any other', async () => {
    await open({
      'written-json.json': thing('written-json', { response: { properties: { price: { maximum: 1899 } } } }),
    })
    const error = await failure('getThing')
    expect((error.cause as Error).message).to.equal(
      'the answer of getThing breaks its schema: price: Must be at most 1899.',
    )
  })

  it('has its answer checked once in a hundred calls if not every answer is checked', async () => {
    await open({ 'wrong-answer.json': thing('wrong-answer') })
    const sampled = (await builder.build({ checkAnswers: false })).edition
    const outcomes: string[] = []
    for (let call = 0; call < 102; call += 1)
      outcomes.push(
        await callOperation(sampled, 'getThing', { asOf }).then(
          () => 'sent',
          () => 'refused',
        ),
      )
    expect(outcomes.flatMap((outcome, call) => (outcome === 'refused' ? [call] : []))).to.deep.equal([0, 100])
    await sampled.stop()
  })

  it('is answered with product_timeout if the handler hangs, and its signal aborts', async () => {
    await open({ 'hangs.json': thing('hangs', { timeout_seconds: 0.02 }) })
    const error = await failure('getThing')
    expect(error).to.include({ code: 'product_timeout', status: 504 })
    expect(signals.at(-1)?.aborted).to.equal(true)
  })

  it('ends when the caller leaves, and its signal aborts', async () => {
    await open({ 'hangs.json': thing('hangs') })
    const caller = new AbortController()
    const failed = failure('getThing', { signal: caller.signal })
    const callsBefore = signals.length
    caller.abort()
    await failed
    expect(signals.length).to.be.at.least(callsBefore)
    expect(signals.every(({ aborted }) => aborted)).to.equal(true)
  })

  it('is answered with the ServiceError that the handler throws', async () => {
    await open({
      'throws.json': thing('throws', { query: { type: 'object', properties: { missing: { type: 'boolean' } } } }),
    })
    expect(await failure('getThing', { query: { missing: 'true' } })).to.include({
      code: 'not_found',
      message: 'No such thing.',
    })
  })

  describe('and its circuit breaker', () => {
    const failTimes = async (times: number): Promise<void> => {
      for (let call = 0; call < times; call += 1) await failure('getThing')
    }

    it('opens for a minute after five failures in a row', async () => {
      await open({ 'throws.json': thing('throws') })
      await failTimes(4)
      expect(unavailability('getThing')).to.equal(null)
      await failTimes(1)
      builder.advance(15)
      expect(unavailability('getThing')).to.include({ code: 'product_suspended', status: 503 })
      expect((unavailability('getThing') as ServiceError).headers['retry-after']).to.match(/^4[56]$/)
      expect(edition.status()).to.deep.equal([
        { product: 'throws', status: 'suspended', reason: 'getThing failed five times in a row' },
      ])
      builder.advance(46)
      expect(unavailability('getThing')).to.equal(null)
      expect(edition.status()).to.deep.equal([{ product: 'throws', status: 'ok' }])
    })

    it('opens again at the first failure after that minute, and closes after a success', async () => {
      await open({ 'throws.json': thing('throws') })
      await failTimes(5)
      builder.advance(61)
      await failTimes(1)
      expect(unavailability('getThing')).not.to.equal(null)
      builder.advance(61)
      state.broken = false
      await callOperation(edition, 'getThing', { asOf })
      state.broken = true
      await failTimes(4)
      expect(unavailability('getThing')).to.equal(null)
    })

    it('counts timeouts, but not refusals of the handler or callers who leave', async () => {
      await open({
        'throws.json': thing('throws', { query: { type: 'object', properties: { missing: { type: 'boolean' } } } }),
        'hangs.json': {
          ...thing('hangs'),
          operations: { hang: { ...thing('hangs').operations.getThing, timeout_seconds: 0.01, handler: 'getThing' } },
        },
      })
      for (let call = 0; call < 6; call += 1) await failure('getThing', { query: { missing: true } })
      expect(unavailability('getThing')).to.equal(null)
      for (let call = 0; call < 6; call += 1) await failure('hang', { signal: AbortSignal.abort() })
      expect(unavailability('hang')).to.equal(null)
      for (let call = 0; call < 5; call += 1) await failure('hang')
      expect(unavailability('hang')).not.to.equal(null)
    })

    it('stays open in a new edition that keeps the product', async () => {
      await open({ 'throws.json': thing('throws') })
      await failTimes(5)
      const next = (await builder.build({ previous: edition })).edition
      expect(() => next.bound.get('getThing')?.assertAvailable()).to.throw(/is paused/)
      await next.stop()
    })
  })

  describe('that uses another product', () => {
    const ask = async (operation: string) => callOperation(edition, 'askFor', { query: { operation }, asOf })

    it('gets its answer for the same asOf, with defaults applied to the input', async () => {
      await open({ 'gold.json': gold(), 'teller.json': TELLER })
      const { answer } = (await ask('getGold')) as { answer: object }
      expect(answer).to.include({ as_of: asOf.toISOString(), price: 1900, days: 7 })
    })

    it('gets nothing newer than the delay of the other product allows', async () => {
      await open({ 'gold.json': gold({ max_freshness_seconds: 3600 }), 'teller.json': TELLER })
      const response = await callOperation(edition, 'askFor', { query: { operation: 'getGold' }, asOf: builder.now() })
      expect((response as { answer: object }).answer).to.include({ as_of: '2026-06-01T11:00:00.000Z' })
    })

    it('gets typed arrays of internal operations unchanged', async () => {
      await open({ 'gold.json': gold(), 'teller.json': TELLER })
      expect(await ask('getGoldColumns')).to.include({ isTyped: true })
    })

    it('gets the value of an answer that the other product has written as JSON', async () => {
      await open({ 'written-json.json': thing('written-json'), 'teller.json': { ...TELLER, uses: ['getThing'] } })
      expect(await ask('getThing')).to.deep.include({ answer: { price: 1900 } })
    })

    it('fails if its document does not name the operation in uses', async () => {
      await open({ 'gold.json': gold(), 'teller.json': { ...TELLER, uses: ['getGold'] } })
      const error = await ask('getGoldColumns').catch((thrown: unknown) => thrown)
      expect((error as ServiceError).code).to.equal('product_failed')
      expect(((error as ServiceError).cause as Error).message).to.contain(
        'teller asks getGoldColumns; add it to "uses"',
      )
    })

    it('is unavailable, before any payment, while the other product is disabled', async () => {
      await open({ 'gold.json': gold({}, { plugin: 'throws-in-setup' }), 'teller.json': TELLER })
      expect(unavailability('askFor')).to.include({ code: 'product_suspended' })
      expect((unavailability('askFor') as Error).message).to.contain('teller needs getGold')
      expect(edition.status()).to.deep.include({
        product: 'teller',
        status: 'suspended',
        reason: (unavailability('askFor') as Error).message,
      })
      expect(await failure('askFor', { query: { operation: 'getGold' } })).to.include({ code: 'product_suspended' })
    })

    it('is unavailable while the circuit breaker of the other product is open', async () => {
      const teller = { ...TELLER, uses: ['getThing'] }
      await open({ 'throws.json': thing('throws'), 'teller.json': teller })
      for (let call = 0; call < 5; call += 1) await ask('getThing').catch(() => {})
      expect(unavailability('askFor')).to.include({ code: 'product_suspended' })
    })

    it('still serves its free page while the other product is disabled', async () => {
      const free = { ...TELLER, operations: { askFor: { ...TELLER.operations.askFor, price: 'free' } } }
      await open({ 'gold.json': gold({}, { plugin: 'throws-in-setup' }), 'teller.json': free })
      expect(unavailability('askFor')).to.equal(null)
    })
  })
})
