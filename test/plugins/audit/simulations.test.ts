import { expect } from 'chai'
import { simulate } from './audit-simulations.ts'
import {
  alwaysLong,
  averagingDown,
  few,
  independent,
  martingale,
  overlapping,
  skilled,
  withoutLosers,
} from './simulated-ledgers.ts'

/** The same simulations with 200 seeds each are part of `npm run lab -- products`. */
describe('an audit of ledgers whose edge is known', function () {
  this.timeout(120_000)
  const seeds = 40
  /** Binomial with 0.05: more than 6 of 40 happen once in 300 times. */
  const mostWrong = 6

  const worthless = {
    'independent trades': independent,
    'trades that overlap on one factor': overlapping('long'),
    'martingale sizes': martingale,
    'positions that average down': averagingDown,
  }
  for (const [name, simulation] of Object.entries(worthless))
    it(`seldom calls ${name} without an edge plausible`, async () => {
      const { plausible, t } = await simulate(simulation, { seeds })
      expect(plausible).to.be.at.most(mostWrong)
      // The deviation of 40 values has an error of 0.11.
      expect(t.deviation).to.be.within(0.78, 1.27)
    })

  it('seldom calls an index held in pieces plausible', async () => {
    expect((await simulate(alwaysLong(0), { seeds: 15 })).plausible).to.be.at.most(3)
  })

  it('calls nothing plausible that it could not compare with bars', async () => {
    expect((await simulate(skilled(6, 1), { seeds: 10, hasBars: false })).plausible).to.equal(0)
  })

  it('calls two to ten trades, and records without a loser, never plausible', async () => {
    expect((await simulate(few, { seeds })).plausible).to.equal(0)
    expect((await simulate(withoutLosers(1), { seeds: 15 })).plausible).to.equal(0)
  })

  it('calls an edge plausible: 85 % of records with a t of 4, 90 % of the best of ten with a t of 6', async () => {
    // Binomial: fewer than 28 of 40, and fewer than 14 of 20, happen once in a hundred times.
    expect((await simulate(skilled(4, 1), { seeds })).plausible).to.be.at.least(28)
    expect((await simulate(skilled(6, 10), { seeds: 20 })).plausible).to.be.at.least(14)
  })
})
