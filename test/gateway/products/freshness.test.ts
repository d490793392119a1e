/** Tests of the decision whether the data behind an operation are fresh enough to be sold. */
import { expect } from 'chai'
import { type FreshnessGateParts, OperationGate } from '../../../gateway/products/freshness.ts'
import { nameInput } from '../../../gateway/products/watched-inputs.ts'
import { InvalidInput, ServiceError, Unavailable } from '../../../gateway/errors.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import type { Freshness, Input, WatchedInput } from '../../../gateway/plugin/plugin.ts'
import { until } from '../../support/until.ts'

const NOW = new Date('2026-06-01T12:00:00Z')
const INPUT = { params: {}, query: {}, body: undefined }
const GOOD: Freshness = { newest: NOW, sources: 2, coverage: 1 }

const operation = {
  id: 'getGold',
  displayRoute: 'GET /v1/gold',
  maxFreshnessSeconds: 0,
  bodyMedia: [],
  fresh: { newestSeconds: 60, sources: 2, coverage: 0.9 },
} as unknown as FreshnessGateParts['operation']

describe('the gate of an operation that is sold only while its data are fresh', () => {
  const gateOf = (report: () => Freshness | null | Promise<Freshness | null>): OperationGate =>
    new OperationGate({
      operation,
      read: report,
      usual: () => INPUT,
      now: () => NOW,
      log: createLog('silent'),
    })

  async function missingOf(gate: OperationGate): Promise<unknown> {
    try {
      await gate.assertFresh(INPUT, 0)
    } catch (error) {
      return error instanceof ServiceError ? error.fields['missing'] : error
    }
    return 'it is fresh'
  }

  it('lets a call through while everything is there', async () => {
    expect(await missingOf(gateOf(() => GOOD))).to.equal('it is fresh')
  })

  const INVALID: Readonly<Record<string, Freshness>> = {
    'an invalid date': { ...GOOD, newest: new Date(Number.NaN) },
    'an invalid number of sources': { ...GOOD, sources: Number.NaN },
    'a coverage of 0 / 0': { ...GOOD, coverage: 0 / 0 },
    'text in place of a date': { ...GOOD, newest: '2026-06-01' as unknown as Date },
  }
  for (const [name, report] of Object.entries(INVALID))
    it(`takes a report with ${name} for none`, async () => {
      for (const gate of [gateOf(() => report), gateOf(async () => report)]) {
        expect(await missingOf(gate)).to.deep.equal(['report'])
        gate.notice()
        await until(() => gate.notice().status === 'stale')
      }
    })

  describe('with inputs that are watched', () => {
    const operation = {
      id: 'getBars',
      method: 'POST',
      path: '/v1/bars/{symbol}',
      displayRoute: 'POST /v1/bars/{symbol}',
      maxFreshnessSeconds: 0,
      bodyMedia: [],
      fresh: { newestSeconds: 60 },
    } as unknown as FreshnessGateParts['operation']
    const usual: Input = { params: { symbol: 'BTC' }, query: { limit: 5 }, body: { side: 'buy', size: 1 } }
    /** Refuses everything without a limit. */
    const validators = {
      input(raw: Input): Input {
        if (typeof raw.query['limit'] !== 'number') throw new InvalidInput('is not valid', ['query', 'limit'])
        return raw
      },
    }
    const gateWith = (
      watched: () => readonly WatchedInput[] | Promise<readonly WatchedInput[]>,
      read: (input: Input) => Freshness = () => GOOD,
    ): OperationGate =>
      new OperationGate({
        operation,
        read,
        usual: () => usual,
        watched: async () => (await watched()).flatMap((each) => nameInput(operation, each, usual, validators) ?? []),
        now: () => NOW,
        log: createLog('silent'),
      })

    it('completes them with the fields of an ordinary call, and names what sets them apart', async () => {
      const read: Input[] = []
      const gate = gateWith(
        () => [
          { params: { symbol: 'E/H' } },
          { query: { limit: 9 } },
          { body: { size: 2 } },
          { params: { symbol: 'BTC' } },
        ],
        (input) => {
          read.push(input)
          return GOOD
        },
      )
      const states = await gate.state()
      expect(states.map(({ request }) => request)).to.deep.equal([
        undefined,
        'POST /v1/bars/E%2FH',
        'POST /v1/bars/{symbol}?limit=9',
        'POST /v1/bars/{symbol} {"size":2}',
      ])
      expect(read).to.deep.equal([
        usual,
        { ...usual, params: { symbol: 'E/H' } },
        { ...usual, query: { limit: 9 } },
        { ...usual, body: { side: 'buy', size: 2 } },
      ])
    })

    it('asks again at the next look while another product is still loading its data', async () => {
      let waits = 1
      const gate = gateWith(() => {
        if (waits-- > 0) throw new Unavailable('7% of the bars are loaded.')
        return [{ params: { symbol: 'ETH' } }]
      })
      await until(async () => (await gate.state()).length === 2)
      expect(waits).to.equal(-1)
    })

    it('says of each address how fresh the input is that it names', async () => {
      const gate = gateWith(
        () => [{ params: { symbol: 'ETH' } }, { body: { size: 2 } }],
        ({ params, body }) => (params['symbol'] === 'ETH' || body !== usual.body ? { ...GOOD, newest: null } : GOOD),
      )
      await gate.state()
      const statuses = ['ETH', 'ETH?limit=1', 'BTC', 'BTC?symbol=ETH', 'BTC?size=2'].map(
        (end) => gate.notice(`https://api.example.com/v1/bars/${end}`).status,
      )
      expect(statuses).to.deep.equal(['stale', 'stale', 'fresh', 'fresh', 'fresh'])
      expect(gate.notice().status).to.equal('fresh')
    })

    it('tells equal states with the same object, so that a 402 is written once for each', async () => {
      const gate = gateWith(
        () => ['ETH', 'SOL'].map((symbol) => ({ params: { symbol } })),
        ({ params }) => (params['symbol'] === 'BTC' ? GOOD : { ...GOOD, newest: null }),
      )
      await gate.state()
      const [eth, sol] = ['ETH', 'SOL'].map((symbol) => gate.notice(`/v1/bars/${symbol}`))
      expect(eth).to.deep.equal({ status: 'stale', missing: ['newest'] })
      expect(eth).to.equal(sol)
    })

    it('looks at the ordinary call all the same while the product cannot list them', async () => {
      for (const fail of [() => Promise.reject(new Error('no list')), () => [{ query: { limit: 'many' } }] as never])
        expect(await gateWith(fail).state()).to.have.length(1)
    })
  })

  describe('whose report takes longer than a report is used for', () => {
    const realNow = performance.now
    let passed = 0
    before(() => {
      performance.now = () => realNow.call(performance) + passed
    })
    after(() => {
      performance.now = realNow
    })

    it('asks for one report at a time, and again only when the last one is a second old', async () => {
      const asked: ((report: Freshness) => void)[] = []
      const gate = gateOf(() => new Promise((resolve) => asked.push(resolve)))
      const calls = [missingOf(gate)]
      passed += 1_500
      calls.push(missingOf(gate))
      expect(asked, 'while the first one is made').to.have.length(1)
      asked[0]?.(GOOD)
      expect(await Promise.all(calls)).to.deep.equal(['it is fresh', 'it is fresh'])
      const next = missingOf(gate)
      expect(asked, 'once that is over a second old').to.have.length(2)
      asked[1]?.(GOOD)
      await next
      passed += 500
      await missingOf(gate)
      expect(asked, 'within the next second').to.have.length(2)
    })
  })
})
