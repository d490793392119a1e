/** Settled funding rates: fetched once for the past, then one by one, and served beside the rates expected next. */
import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { answerFundingHistory } from '../../../plugins/funding/history-answer.ts'
import { migrations } from '../../../plugins/funding/rate-store.ts'
import { createSettlementSource, storeSettlements } from '../../../plugins/funding/settlement-store.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { PERPETUAL_VENUES } from '../../venues/funding/funding-market.ts'
import { failure } from './online-funding.ts'
import { type KitFunding, openKitFunding } from './kit-funding.ts'

const DAY = 86_400

describe('settled funding rates', function () {
  this.timeout(60_000)
  let service: KitFunding
  beforeEach(async () => {
    service = await openKitFunding()
    await service.run('poll')
  })
  afterEach(() => service.close())

  const load = async (): Promise<void> => {
    for (let n = 0; n < 6; n += 1) await service.run('settlements')
  }
  const seconds = (): number => Math.floor(service.kit.clock.now() / 1000)

  it('are those that every venue paid, extremes included, with the interval of each', async () => {
    await load()
    const [from, to] = [seconds() - 3 * DAY, seconds()]
    for (const symbol of ['BTC', 'ALT']) {
      const { settlements, contracts, expected } = await service.history({ symbol, start: from, end: to, limit: 1000 })
      expect(new Set(contracts.map(({ venue }) => venue))).to.deep.equal(new Set(PERPETUAL_VENUES))
      expect(contracts.every(({ complete }) => complete)).to.equal(true)
      for (const venue of PERPETUAL_VENUES) {
        const paid = service.kit.funding.settled(venue, `${symbol}-USD`, from - 1, to - 1)
        const found = settlements.filter((one) => one.venue === venue)
        expect(
          found.map(({ settled_at: at }) => Date.parse(at) / 1000),
          `${venue} ${symbol}`,
        ).to.deep.equal(paid.map(({ time }) => time))
        for (const [n, { rate, interval_hours: hours }] of found.entries()) {
          expect(rate).to.be.closeTo(paid[n]!.rate, 1e-6)
          expect(hours).to.equal(service.kit.funding.hours(venue, `${symbol}-USD`))
        }
        expect(expected.some((rate) => rate.venue === venue && rate.kind === 'predicted')).to.equal(true)
      }
      if (symbol === 'ALT') expect(Math.min(...settlements.map(({ rate }) => rate))).to.be.below(-0.0195)
    }
  })

  it('are read in pages that miss none and repeat none', async () => {
    await load()
    const all = await service.history({ symbol: 'BTC,ALT', start: seconds() - 2 * DAY, limit: 1000 })
    const pages: string[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const query = { symbol: 'BTC,ALT', start: seconds() - 2 * DAY, limit: 37, ...(cursor ? { cursor } : {}) }
      const page = await service.history(query)
      pages.push(...page.settlements.map((one) => JSON.stringify(one)))
      cursor = page.next_cursor
    }
    expect(pages).to.deep.equal(all.settlements.map((one) => JSON.stringify(one)))
    expect(await failure(service.history({ symbol: 'BTC', cursor: 'x' }))).to.include({ status: 422 })
  })

  it('go on where the load was after a restart, and take up new settlements as they are paid', async () => {
    await service.run('settlements')
    await service.restart()
    await load()
    service.kit.clock.advance(9 * 3600)
    await service.run('poll')
    await service.run('settlements')
    const { settlements } = await service.history({
      symbol: 'BTC',
      start: seconds() - 11 * DAY,
      limit: 1000,
      venue: 'dydx,gate',
    })
    for (const [venue, hours] of [
      ['dydx', 1],
      ['gate', 8],
    ] as const) {
      const times = settlements.filter((one) => one.venue === venue).map(({ settled_at: at }) => Date.parse(at) / 1000)
      expect(times.at(-1)).to.be.above(seconds() - hours * 3600)
      expect(new Set(times.slice(1).map((time, n) => time - times[n]!))).to.deep.equal(new Set([hours * 3600]))
    }
  })

  it('are asked for when one may have come, not every minute, and held up to the present all the time', async () => {
    await load()
    // The rates themselves, whose polls cost most, are not what this looks at.
    const minute = async (n: number): Promise<void> => {
      service.kit.clock.advance(60)
      if (n % 10 === 0) await service.run('poll')
      await service.run('settlements')
    }
    const asked = (venue: string): number =>
      service.kit.requests().filter((one) => one.venue === venue && one.route === 'settled' && one.symbol === 'BTC-USD')
        .length
    const before = { gate: asked('gate'), dydx: asked('dydx') }
    const incomplete: string[] = []
    for (let n = 0; n < 240; n += 1) {
      await minute(n)
      if (n % 10 > 0) continue
      const { contracts } = await service.history({ symbol: 'BTC', venue: 'gate,dydx', start: seconds() - DAY })
      for (const { venue, complete } of contracts) if (!complete) incomplete.push(`${venue} ${n}`)
    }
    expect(incomplete).to.deep.equal([])
    expect(asked('gate') - before.gate, 'of eight hours').to.be.within(4, 6)
    expect(asked('dydx') - before.dydx, 'of one hour').to.be.within(4, 9)
    const { settlements } = await service.history({ symbol: 'BTC', venue: 'gate,dydx', start: seconds() - DAY / 2 })
    const last = (venue: string) => Date.parse(settlements.findLast((one) => one.venue === venue)!.settled_at) / 1000
    for (const venue of ['gate', 'dydx'] as const)
      expect(last(venue)).to.equal(
        service.kit.funding.next(venue, 'BTC-USD', service.kit.clock.now()) - (venue === 'gate' ? 8 : 1) * 3600,
      )
  })

  it('are not sold for a window that holds none: 422, 404 with what is held, or 503 while they are loaded', async () => {
    const ask = (query: object): Promise<Error> => failure(service.history({ symbol: 'BTC', ...query }))
    expect(await ask({})).to.deep.include({ status: 503, fields: { progress: 0 } })
    expect(await ask({ symbol: 'NOPE' })).to.include({ status: 404 })
    expect(await ask({ start: seconds(), end: seconds() })).to.include({ status: 422 })
    expect(await ask({ start: 'yesterday' })).to.include({ status: 422 })
    await load()
    const early = await ask({ start: seconds() - 40 * DAY, end: seconds() - 30 * DAY })
    expect(early).to.include({ status: 404 })
    expect(early.message).to.match(/held from 20\d\d-/)
  })

  it('are not sold before the load has reached their window, and the refusal says how far it is', async () => {
    await service.close()
    // 22 windows of each of two contracts at OKX, of which one run reads 30.
    service = await openKitFunding({ history_days: 90, keep_settled_days: 200 })
    const ask = (query: object = {}): Promise<Error> =>
      failure(service.history({ symbol: 'BTC', venue: 'okx', ...query }))
    expect(await ask(), 'before the first poll').to.deep.include({ status: 503, fields: { progress: 0 } })
    await service.run('poll')
    expect(await ask(), 'before the first load').to.deep.include({ status: 503, fields: { progress: 0 } })
    await service.run('settlements')
    for (const query of [{}, { start: seconds() - DAY / 24 }]) {
      const error = (await ask(query)) as Error & { fields: { progress: number } }
      expect(error).to.include({ status: 503 })
      expect(error.fields.progress).to.be.within(0.6, 0.8)
      expect(error.message).to.match(/have been read up to 20\d\d-/)
    }
    await service.run('settlements')
    expect((await service.history({ symbol: 'BTC', venue: 'okx' })).contracts[0]!.complete).to.equal(true)
    expect(await ask({ start: seconds() - 120 * DAY, end: seconds() - 100 * DAY })).to.include({ code: 'not_held' })
    expect(await ask({ start: seconds() - 60 }), 'of a minute').to.include({ code: 'not_held' })
  })

  it('are not sold up to the present once they are no longer read, only up to what is held', async () => {
    const report = (query: object = {}) => service.historyFreshness({ symbol: 'BTC', venue: 'dydx', ...query })
    const ageOf = async (query: object = {}): Promise<number> =>
      seconds() - (await report(query))!.newest!.getTime() / 1000
    expect(await failure(report())).to.deep.include({ status: 503, fields: { progress: 0 } })
    await load()
    expect(await ageOf()).to.be.within(0, 3 * 3600)
    expect((await report())!.coverage).to.equal(1)
    service.kit.faults.start('maintenance', { venue: 'dydx' })
    service.kit.clock.advance(9 * 3600)
    await service.run('settlements')
    expect(await ageOf()).to.be.within(9 * 3600, 12 * 3600)
    expect(await ageOf({ venue: undefined }), 'at other venues').to.be.within(0, 3 * 3600)
    expect(await ageOf({ end: seconds() - 12 * 3600 }), 'of a window that is held').to.be.within(0, 1)
    expect((await report({ symbol: 'ALT,BTC', venue: 'dydx,gate' }))!.coverage).to.equal(0.5)
    expect(await failure(report({ start: seconds() - 3600 }))).to.include({ status: 503 })
    for (const query of [{ symbol: 'NOPE' }, { symbol: 'NOPE', venue: undefined }])
      expect(await report(query)).to.equal(null)
    expect(await failure(report({ start: 'yesterday' }))).to.include({ status: 422 })
  })

  it('are not complete up to the present once a venue has not been read for hours', async () => {
    await load()
    service.kit.faults.start('maintenance', { venue: 'dydx' })
    service.kit.clock.advance(9 * 3600)
    await service.run('settlements')
    const isComplete = async (end: number): Promise<boolean> => {
      const window = { symbol: 'BTC', venue: 'dydx', start: end - 3 * DAY, end }
      return (await service.history(window)).contracts[0]!.complete
    }
    expect([await isComplete(seconds()), await isComplete(seconds() - 12 * 3600)]).to.deep.equal([false, true])
  })

  it('have no hole where a venue answered without any for days', async () => {
    await load()
    const from = seconds() - 2 * DAY
    const stop = service.kit.faults.start('empty', { venue: 'gate', route: 'settled' })
    service.kit.clock.advance(3 * DAY)
    await service.run('poll')
    await service.run('settlements')
    const read = async () => service.history({ symbol: 'BTC', venue: 'gate', start: from, limit: 1000 })
    const [missing] = (await read()).contracts
    expect(missing).to.include({ complete: false })
    expect(missing!.error).to.match(/answered without a settlement of 7\d hours/)
    stop()
    service.kit.clock.advance(60)
    await service.run('settlements')
    const { settlements, contracts } = await read()
    expect(contracts[0]).to.include({ complete: true, error: null })
    const times = settlements.map(({ settled_at: at }) => Date.parse(at) / 1000)
    expect(new Set(times.slice(1).map((time, n) => time - times[n]!))).to.deep.equal(new Set([8 * 3600]))
  })

  it('are held from the first one that a venue keeps, not from the first day that it was asked for', async () => {
    service.kit.faults.start('empty', { venue: 'okx', route: 'settled', symbol: 'BTC-USD', times: 1 })
    const asked = seconds() - 10 * DAY
    await load()
    const read = async (start: number) =>
      (await service.history({ symbol: 'BTC', venue: 'okx', start, limit: 1000 })).contracts[0]!
    const { held_from: heldFrom, complete } = await read(asked)
    expect([Date.parse(heldFrom) / 1000, complete]).to.deep.equal([asked + 99 * 3600, false])
    expect((await read(asked + 99 * 3600)).complete).to.equal(true)
  })

  it('are not asked of a venue that has refused before a restart, nor are order books', async () => {
    await service.close()
    service = await openKitFunding({ book_symbols: ['BTC'] })
    await service.run('poll')
    await load()
    service.kit.clock.advance(300)
    service.kit.faults.start('restricted', { venue: 'bybit' })
    await service.run('poll')
    service.kit.faults.clear()
    const refused = service.kit.clock.now()
    for (const [job, wait] of [
      ['books', 400],
      ['settlements', 3000],
    ] as const) {
      await service.restart()
      service.kit.clock.advance(wait)
      await service.run(job)
    }
    const asked = service.kit.requests().filter(({ at }) => at > refused)
    const routes = (venue: string) => new Set(asked.filter((one) => one.venue === venue).map(({ route }) => route))
    expect([routes('gate'), routes('bybit')]).to.deep.equal([new Set(['settled', 'book']), new Set()])
  })

  it('say why a venue is not read, and keep what it had paid', async () => {
    await load()
    service.kit.faults.start('maintenance', { venue: 'gate' })
    service.kit.clock.advance(9 * 3600)
    await service.run('settlements')
    const { contracts, settlements } = await service.history({
      symbol: 'BTC',
      venue: 'gate',
      start: seconds() - 5 * DAY,
    })
    expect(settlements.length).to.be.above(10)
    expect(contracts[0]!.error).to.be.a('string')
  })
})

for (const [name, open] of Object.entries(DATABASES))
  describe(`settled funding rates in ${name}`, () => {
    let store: TestDatabase
    before(async function () {
      const opened = await open()
      if (!opened) this.skip()
      store = opened
      await migrate(store.db, 'funding', migrations)
      const contract = { venue: 'gate', instrument: 'BTC_USDT', symbol: 'BTC' } as const
      const rows = [1, 2, 3].map((hours) => ({ ...contract, time: hours * 3600, rate: '0.0001' }))
      await storeSettlements(store.db, rows, { ...contract, held_from: 0, reached: DAY, updated_at: DAY, error: null })
    })
    after(() => store?.drop())

    it('refuse a cursor with a time or a key that the buyer made up', async () => {
      const parts = {
        settled: createSettlementSource(store.db),
        current: { at: async () => [] },
        dataMode: 'online',
      } as const
      const page = (query: object) =>
        answerFundingHistory(parts, { symbol: 'BTC', start: 0, limit: 1, ...query }, new Date(DAY * 1000))
      const cursor = (await page({})).next_cursor!
      expect((await page({ cursor })).settlements).to.have.length(1)
      const [hash, asOf, ...key] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[]
      for (const forged of [
        [hash, -1e15, ...key],
        [hash, asOf, 3600],
        [hash, asOf, 'x', 'gate', 'BTC_USDT'],
        [hash, asOf, 1.5, 'gate', 'BTC_USDT'],
        [hash, asOf, 3600, 'gate', 'BTC\0USDT'],
      ]) {
        const text = Buffer.from(JSON.stringify(forged)).toString('base64url')
        expect(await failure(page({ cursor: text })), JSON.stringify(forged)).to.include({ code: 'validation_failed' })
      }
    })
  })
