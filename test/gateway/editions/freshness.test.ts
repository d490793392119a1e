/** Tests of the decision whether the data behind an operation are fresh enough to be sold. */
import { expect } from 'chai'
import { type FreshnessGateParts, OperationGate } from '../../../gateway/editions/freshness.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import type { Freshness } from '../../../gateway/plugin/plugin.ts'
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
