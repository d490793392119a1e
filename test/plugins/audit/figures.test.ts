import { expect } from 'chai'
import { expectedMaximum } from '../../../plugins/lib/quant/sharpe-ratio.ts'
import { normalCdf, normalQuantile } from '../../../plugins/lib/quant/normal-distribution.ts'
import { noncentralCdf } from '../../../plugins/lib/quant/student-t.ts'
import { summaryOf } from '../../../plugins/audit/audit.ts'
import { auditOf, ROUND_TRIPS, seededUniform } from './audit-fixtures.ts'

const SIX = [
  ROUND_TRIPS,
  'A,long,1,2024-01-02,100,2024-01-05,103',
  'B,long,1,2024-01-10,50,2024-01-12,49',
  'A,short,1,2024-02-01,80,2024-02-06,78',
  'C,long,1,2024-02-10,20,2024-02-20,20.5',
  'A,short,1,2024-03-01,10,2024-03-04,10.2',
  'B,long,1,2024-03-10,200,2024-03-20,206',
]

/** Returns a ledger of trials with one trade per day each. `returnOf` gives the return of a trial on a day. */
function trialLedger(trials: number, days: number, returnOf: (trial: number, day: number) => number): string[] {
  const lines = ['trial,symbol,entry_time,entry_price,exit_time,exit_price']
  for (let trial = 0; trial < trials; trial += 1)
    for (let day = 0; day < days; day += 1) {
      const date = new Date(Date.UTC(2022, 0, 3 + day)).toISOString().slice(0, 10)
      lines.push(`t${trial},X,${date} 10:00,100,${date} 15:00,${100 * (1 + returnOf(trial, day))}`)
    }
  return lines
}

const normal = (next: () => number): number => Math.sqrt(-2 * Math.log(next() || 1e-9)) * Math.cos(2 * Math.PI * next())

describe('the figures of an audit', () => {
  it('follow from each other by the formulas in the report', async () => {
    const { performance, overfitting, days, formulas } = await auditOf(SIX, { trials: 3 })
    const daily = Object.entries(days).map(([name, value]) => [`days.${name}`, value] as const)
    const all: Readonly<Record<string, unknown>> = { ...performance, ...overfitting, ...Object.fromEntries(daily) }
    const figure = (name: string): number => Number(all[name])
    const [sr, n, perYear] = [figure('sharpe_per_trade'), figure('trades'), figure('trades_per_year')]
    const stretch = 1 - figure('skewness') * sr + ((figure('kurtosis') - 1) / 4) * sr * sr
    const luck = Math.sqrt(figure('sr_variance')) * expectedMaximum(figure('n_trials'))
    const t = figure('t_stat')
    const recalculated: Readonly<Record<string, number>> = {
      breakeven_cost_per_side_bps: figure('gross_expectancy_bps') / 2,
      t_stat: sr * Math.sqrt(n),
      sharpe: sr * Math.sqrt(perYear),
      sharpe_se: Math.sqrt((1 + (sr * sr) / 2) / n) * Math.sqrt(perYear),
      psr: Math.min(normalCdf((sr * Math.sqrt(n - 1)) / Math.sqrt(stretch)), noncentralCdf(t, n - 1, 0)),
      sr0_per_trade: luck,
      sr0: luck * Math.sqrt(perYear),
      dsr: Math.min(
        normalCdf(((sr - luck) * Math.sqrt(n - 1)) / Math.sqrt(stretch)),
        noncentralCdf(t, n - 1, luck * Math.sqrt(n)),
      ),
      min_trl_trades: 1 + stretch * (normalQuantile(0.95) / sr) ** 2,
      min_btl_years: (luck / Math.sqrt(figure('sr_variance')) / figure('sharpe')) ** 2,
      p_value: 2 * (1 - noncentralCdf(Math.abs(t), n - 1, 0)),
    }
    for (const [name, value] of Object.entries(recalculated)) {
      expect(formulas).to.have.property(name)
      expect(figure(name), name).to.be.closeTo(value, 1e-9 * Math.max(1, Math.abs(value)))
    }
    // A formula may use only figures of the report.
    const named = Object.keys(formulas).filter((name) => !['gross_return', 'net_return', 'intervals'].includes(name))
    expect(all).to.include.all.keys(named)
  })

  it('match a calculation by hand', async () => {
    // Computed in Python from the formulas of the methodology page; Student's t with SciPy, because six trades are few.
    const { performance, overfitting } = await auditOf(SIX, { trials: 25, extraBps: 1 })
    const expected = {
      gross_expectancy_bps: 116.66666666666659,
      net_expectancy_bps: 108.66666666666661,
      breakeven_cost_per_side_bps: 58.3333333333333,
      win_rate: 4 / 6,
      payoff: 1.2836538461538451,
      profit_factor: 2.5673076923076903,
      t_stat: 1.0806794769348262,
      sharpe: 2.3385395266058424,
      sharpe_per_trade: 0.44118554899802453,
      sharpe_se: 2.2668089687525788,
      skewness: -0.6809718997018464,
      kurtosis: 1.5,
      max_drawdown: -0.0208,
      trades_per_year: 28.096153846153847,
      turnover_per_year: 2 * 28.096153846153847,
      exposure: 0.4230769230769231,
      average_holding_days: 5.5,
    }
    for (const [name, value] of Object.entries(expected))
      expect(performance[name as keyof typeof expected], name).to.be.closeTo(value, 1e-9)
    const luck = {
      psr: 0.8043080649065729,
      dsr: 0.1356854985672178,
      sr0: 4.73422717690783,
      min_trl_trades: 19.414120519877134,
      min_btl_years: 0.7293431201794873,
      min_btl_bound_years: 1.1771851884382054,
      p_value: 0.3291859638486999,
      haircut_sharpe: 0,
    }
    for (const [name, value] of Object.entries(luck))
      expect(overfitting[name as keyof typeof luck], name).to.be.closeTo(value, 1e-9)
    expect(overfitting).to.include({
      n_trials: 25,
      sr_variance: 1 / 5,
      sr_variance_source: 'null_hypothesis',
      pbo: null,
    })
  })

  it('are the same in every run, including the intervals', async () => {
    expect(await auditOf(SIX)).to.deep.equal(await auditOf(SIX))
  })

  it('have intervals that widen with fewer trades', async () => {
    const next = seededUniform(7)
    const lines = Array.from({ length: 400 }, (_, i) => {
      const day = new Date(Date.UTC(2020, 0, 1 + i)).toISOString().slice(0, 10)
      return `X,long,1,${day},100,${day},${100 * (1 + 0.002 + 0.01 * normal(next))}`
    })
    const width = async (count: number): Promise<number> => {
      const { net_expectancy_bps: mean, expectancy_ci95_bps: interval } = (
        await auditOf([ROUND_TRIPS, ...lines.slice(0, count)])
      ).performance
      expect(interval![0]).to.be.below(mean)
      expect(interval![1]).to.be.above(mean)
      return interval![1]! - interval![0]!
    }
    expect(await width(100)).to.be.greaterThan(1.5 * (await width(400)))
  })

  it('charge the cost per side twice, so 1.3 bps become -4.7 bps at large_cap', async () => {
    const next = seededUniform(3)
    const noise = Array.from({ length: 1500 }, () => 0.001 * normal(next))
    const returns = [...noise, ...noise.map((one) => -one)].map((one) => one + 0.00013)
    const lines = returns.map((r, i) => {
      const day = new Date(Date.UTC(2010, 0, 1 + i)).toISOString().slice(0, 10)
      return `X,long,1,${day},100,${day},${100 * (1 + r)}`
    })
    const { performance, verdict } = await auditOf([ROUND_TRIPS, ...lines])
    expect(performance.gross_expectancy_bps).to.be.closeTo(1.3, 1e-6)
    expect(performance.net_expectancy_bps).to.be.closeTo(-4.7, 1e-6)
    expect(verdict).to.equal('not_profitable')
  })

  it('use reported fees instead of the commission, unless all fees are zero', async () => {
    const paid = await auditOf([`${ROUND_TRIPS},fees`, 'X,long,10,2024-01-02,100,2024-01-03,101,2'], {
      preset: 'crypto_major',
    })
    expect(paid.performance.net_expectancy_bps).to.be.closeTo(100 - 2 * 1.5 - 20, 1e-9)
    const zero = await auditOf([`${ROUND_TRIPS},fees`, 'X,long,10,2024-01-02,100,2024-01-03,101,0'], {
      preset: 'crypto_major',
    })
    expect(zero.performance.net_expectancy_bps).to.be.closeTo(100 - 2 * 11.5, 1e-9)
    expect(zero.warnings).to.include('fees_all_zero')
  })

  it('are null for a single trade and for identical trades', async () => {
    const one = await auditOf([ROUND_TRIPS, 'X,long,1,2024-01-02,100,2024-01-03,101'])
    expect(one.performance).to.include({ sharpe: null, t_stat: null, sharpe_ci95: null })
    expect(one.overfitting).to.include({ psr: null, dsr: null })
    expect(one.days).to.include({ method: 'none', t_stat: null, dsr: null })
    expect(one.verdict).to.equal('unproven')
    expect(one.reasons).to.deep.equal([
      'too_few_trades_for_statistics',
      'too_few_effective_bets',
      'fills_not_checked',
      'no_losing_trade',
    ])
    const identical = await auditOf([
      ROUND_TRIPS,
      ...['2', '4', '6'].map((d) => `X,long,1,2024-01-0${d},100,2024-01-0${d},101`),
    ])
    expect(identical.performance.sharpe_per_trade).to.equal(null)
  })
})

describe('an audit of many trials', () => {
  const next = seededUniform(11)
  const noise = Array.from({ length: 20 * 200 }, () => 0.01 * normal(next))
  const noiseOf = (trial: number, day: number): number => noise[trial * 200 + day]!

  it('judges the best trial and deflates it by the variance of the trials', async () => {
    const { ledger, overfitting, performance } = await auditOf(trialLedger(20, 200, noiseOf), { preset: 'zero' })
    const ratios = Array.from({ length: 20 }, (_, trial) => {
      const own = noise.slice(trial * 200, trial * 200 + 200)
      const mean = own.reduce((sum, one) => sum + one, 0) / 200
      return mean / Math.sqrt(own.reduce((sum, one) => sum + (one - mean) ** 2, 0) / 199)
    })
    const mean = ratios.reduce((sum, one) => sum + one, 0) / 20
    const variance = ratios.reduce((sum, one) => sum + (one - mean) ** 2, 0) / 19
    expect(ledger).to.include({ trials: 20, trades: 4000, judged_trial: `t${ratios.indexOf(Math.max(...ratios))}` })
    expect(performance.sharpe_per_trade).to.be.closeTo(Math.max(...ratios), 1e-9)
    expect(overfitting).to.include({ n_trials: 20, sr_variance_source: 'trials' })
    expect(overfitting.sr_variance).to.be.closeTo(variance, 1e-12)
    expect(overfitting.sr0_per_trade).to.be.closeTo(Math.sqrt(variance) * expectedMaximum(20), 1e-12)
    expect(overfitting.haircuts?.bhy).to.be.an('object')
  })

  it('reports noise as overfitted and skill as not overfitted', async () => {
    const luck = (await auditOf(trialLedger(20, 200, noiseOf), { preset: 'zero' })).overfitting
    expect(luck.pbo).to.be.within(0.2, 0.9)
    expect(luck).to.include({ pbo_blocks: 16, pbo_periods: 200, pbo_not_checked: null })
    const skilled = (trial: number, day: number): number => noiseOf(trial, day) + (trial === 4 ? 0.008 : 0)
    const skill = await auditOf(trialLedger(20, 200, skilled), { preset: 'zero' })
    expect(skill.overfitting.pbo).to.equal(0)
    expect(skill.ledger.judged_trial).to.equal('t4')
    // No fill was compared with bars, so skill is not proven, and the text must not suggest it.
    expect(skill).to.deep.include({ verdict: 'unproven', reasons: ['fills_not_checked', 'sharpe_above_10'] })
    expect(summaryOf(skill)).to.include('No fill could be checked against bars').and.not.to.include('found nothing')
    expect(skill.overfitting.spa_p_value).to.be.below(0.01)
    expect(skill.overfitting.reality_check_p_value).to.be.below(0.01)
    const {
      spa_p_value: p,
      spa_lower_p_value: lower,
      spa_upper_p_value: upper,
    } = (await auditOf(trialLedger(20, 200, noiseOf), { preset: 'zero' })).overfitting
    expect(p).to.be.above(0.03)
    expect(p).to.be.within(lower!, upper!)
  })

  it('reports a winner that loses in the second half as overfitted', async () => {
    const reversing = (trial: number, day: number): number =>
      noiseOf(trial, day) + (trial < 10 ? 0.01 : -0.01) * (day < 100 ? 1 : -1)
    const { overfitting } = await auditOf(trialLedger(20, 200, reversing), { preset: 'zero' })
    expect(overfitting.pbo).to.be.greaterThan(0.5)
  })

  it('gives the reason if the probability of overfitting cannot be computed', async () => {
    const { overfitting } = await auditOf(trialLedger(5, 30, noiseOf))
    expect(overfitting.pbo_not_checked).to.equal('needs at least 60 days with exits, has 30')
  })
})
