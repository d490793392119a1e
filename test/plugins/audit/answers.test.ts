import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { InvalidInput } from '../../../gateway/plugin/plugin.ts'
import { auditOf, barsText, makeDays } from './audit-fixtures.ts'

const { $defs } = JSON.parse(readFileSync('schemas/audit.json', 'utf8')) as { $defs: Record<string, object> }
const { required, ...report } = $defs['AuditReport'] as { required: string[] }
// The store adds where a report is kept.
const schema = { $defs, ...report, required: required.filter((name) => !/^(?:rid|report_url|summary)/.test(name)) }
const isReport = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)

const days = makeDays(40)

/** Trades with few different moves, so that sums are often zero and returns often equal. */
const trade = fc.record({
  symbol: fc.constantFrom('AAA', 'BBB'),
  side: fc.constantFrom('long', 'short'),
  qty: fc.constantFrom(1, 2, 100),
  first: fc.nat(20),
  held: fc.nat(3),
  move: fc.constantFrom(-0.02, -0.01, 0, 0.01, 0.02),
  fee: fc.constantFrom(0, 1, -0.5),
  trial: fc.constantFrom('a', 'b', 'c'),
  isOpen: fc.constantFrom(false, false, false, true),
})

describe('the report of an audit', () => {
  it('fits its schema, with a number wherever one is promised, however few and alike the trades are', async function () {
    this.timeout(60_000)
    const cases = fc.record({
      trades: fc.array(trade, { minLength: 1, maxLength: 8 }),
      columns: fc.subarray(['qty', 'fee', 'trial'] as const),
      isOfOneTrial: fc.boolean(),
      hasBars: fc.boolean(),
      trials: fc.constantFrom(1, 2, 100),
    })
    await fc.assert(
      fc.asyncProperty(cases, async ({ trades, columns, isOfOneTrial, hasBars, trials }) => {
        const header = ['symbol', 'side', 'entry_time', 'entry_price', 'exit_time', 'exit_price', ...columns]
        const lines = trades.map(({ symbol, side, first, held, move, isOpen, ...rest }) => {
          const exit = isOpen ? ['', ''] : [days[first + held]!.day, 100 * (1 + move)]
          const cells = { ...rest, trial: isOfOneTrial ? 'a' : rest.trial }
          return [symbol, side, days[first]!.day, 100, ...exit, ...columns.map((name) => cells[name])].join(',')
        })
        const bars = [barsText(days, 'AAA'), ...barsText(days, 'BBB').split('\n').slice(1)].join('\n')
        try {
          const answer = await auditOf([header.join(','), ...lines], {
            preset: 'zero',
            trials,
            ...(hasBars && { bars }),
          })
          // As the gateway sends it: a figure that is no number is null.
          expect(isReport(JSON.parse(JSON.stringify(answer))), JSON.stringify(isReport.errors)).to.equal(true)
        } catch (error) {
          if (!(error instanceof InvalidInput)) throw error
        }
      }),
      { numRuns: 500, includeErrorInReport: true },
    )
  })
})
