import { expect } from 'chai'
import * as fc from 'fast-check'
import { outcomeOf, silenceOf } from './ledgers/compare-report.ts'
import { changedCase, drawnCase, FORMATS } from './ledgers/ledger-case.ts'
import { describeCase } from './ledgers/run-cases.ts'

const CASES = 500
const CHANGED_CASES = 200
const MOST_REFUSED = 0.05

describe('one truth in many files', () => {
  it('gives the same trips and the same money in every format and dress, and names every column', async function () {
    this.timeout(120_000)
    let refused = 0
    await fc.assert(
      fc.asyncProperty(drawnCase(FORMATS), async (written) => {
        const outcome = await outcomeOf(written)
        if (outcome.kind === 'ambiguous') refused += 1
        if (outcome.kind === 'fault') expect.fail(describeCase(written, outcome.faults))
      }),
      { numRuns: CASES, includeErrorInReport: true },
    )
    expect(refused).to.be.at.most(MOST_REFUSED * CASES)
  })

  it('names every column and pools no instruments when a column is added, renamed or removed', async function () {
    this.timeout(120_000)
    await fc.assert(
      fc.asyncProperty(changedCase(FORMATS), async (written) => {
        const outcome = await silenceOf(written)
        if (outcome.kind === 'fault') expect.fail(describeCase(written, outcome.faults))
      }),
      { numRuns: CHANGED_CASES, includeErrorInReport: true },
    )
  })
})
