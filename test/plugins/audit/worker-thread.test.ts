import { expect } from 'chai'
import { createWorkerPool } from '../../../gateway/workers/pool.ts'
import { InvalidInput, ServiceError } from '../../../gateway/errors.ts'
import type { Audit } from '../../../plugins/audit/audit.ts'
import type { WorkInput } from '../../../plugins/audit/audit-work.ts'
import { ask } from './audit-figures.ts'
import { auditOf, barsText, makeDays, makeTrades, NOW, ROUND_TRIPS, tradeLine } from './audit-fixtures.ts'

describe('an audit in a worker thread', () => {
  const pool = createWorkerPool({ threads: 1 })
  after(() => pool.close())

  function auditInThread(file: string, bars?: string): Promise<Audit> {
    const assumed = { preset: 'large_cap', n_trials: 10, extra_bps: 0 } as const
    const upload = (text: string) => ({ filename: 'file.csv', mediaType: 'text/csv', bytes: Buffer.from(text) })
    const body = { ...assumed, file: upload(file), ...(bars === undefined ? {} : { bars: upload(bars) }) }
    const input: WorkInput = { input: { body }, asOf: NOW, unusableReason: null }
    const call = { id: 'call', signal: new AbortController().signal, ask }
    return pool.work<Audit>(new URL('../../../plugins/audit/audit-work.ts', import.meta.url), input, { call })
  }
  const caught = (error: unknown): unknown => error

  it('gives the same report as on the event loop, with splits that the bar-quality product finds', async () => {
    const whole = makeDays(400)
    const split = whole.map((day, i) =>
      i < 200
        ? day
        : { ...day, open: day.open / 4, high: day.high / 4, low: day.low / 4, close: day.close / 4, volume: 4_000_000 },
    )
    const bars = barsText(split)
    const file = [ROUND_TRIPS, ...makeTrades(whole).map(tradeLine), ''].join('\n')
    const report = await auditInThread(file, bars)
    expect(JSON.stringify(report)).to.equal(JSON.stringify(await auditOf(file, { bars })))
    expect(report.fills.by_code).to.have.property('outside_range')
    expect(report.fills.checks.find(({ check }) => check === 'split')).to.include({ status: 'checked' })
  })

  it('refuses a ledger with the same error as on the event loop', async () => {
    const row = 'ACME,long,1,2024-01-02,100,2024-01-03,101'
    for (const file of [
      `${ROUND_TRIPS}\n${row}\n${row.replace('100', 'NaN')}\n`,
      'a,b\n1,2\n',
      `${ROUND_TRIPS}\n${`${row}\n`.repeat(200_001)}`,
    ]) {
      const error = await auditInThread(file).catch(caught)
      const expected = await auditOf(file).catch(caught)
      expect(error).to.be.instanceOf(ServiceError)
      const { code, message, fields } = error as ServiceError
      expect({ code, message, fields }).to.deep.equal({
        code: (expected as ServiceError).code,
        message: (expected as ServiceError).message,
        fields: (expected as ServiceError).fields,
      })
      if (expected instanceof InvalidInput) expect((error as InvalidInput).detail).to.deep.equal(expected.detail)
    }
  })
})
