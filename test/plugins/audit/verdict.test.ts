import { expect } from 'chai'
import { type Evidence, RUNGS, verdictOf } from '../../../plugins/audit/figures/verdict.ts'

/** Evidence against which there is nothing to say. */
const GOOD: Evidence = {
  structuralShare: 0,
  impossibleShare: 0,
  splitShare: 0,
  flags: [],
  trades: 500,
  losers: 200,
  netExpectancyBps: 5,
  moneyNet: 12_000,
  checkedShare: 1,
  isMarked: true,
  markedShare: 1,
  effectiveBets: 400,
  intervalLowBps: 1,
  intervalUnit: 'day',
  dsr: 0.97,
  pbo: 0.1,
  record: 900,
  minimumRecord: 300,
  recordUnit: 'days',
  yearlySharpe: 1.8,
  closedProfit: 12_000,
  openProfit: -500,
  openPositions: 3,
  alphaT: 2.5,
  benchmark: 'traded_symbols',
  spa: 0.01,
}

const flagged = (code: string) => [{ code, value: 0.4, limit: 0.3, explanation: `Why ${code}.` }]

/** For each rung in its order: what makes it hold, what just does not, and a number that its sentence names. */
const CASES: readonly (readonly [
  code: string,
  verdict: string,
  fails: Partial<Evidence>,
  passes: Partial<Evidence>,
  named: string,
])[] = [
  ['structural_share_above_0.005', 'reject', { structuralShare: 0.0051 }, { structuralShare: 0.005 }, '0.51%'],
  ['impossible_share_above_0.005', 'reject', { impossibleShare: 0.012 }, { impossibleShare: 0.005 }, '1.2%'],
  ['unadjusted_split_share_above_0.005', 'reject', { splitShare: 0.02 }, { splitShare: 0.005 }, '2%'],
  ['lookahead_extremes', 'reject', { flags: flagged('lookahead_extremes') }, {}, 'Why lookahead_extremes.'],
  ['lookahead_same_bar', 'reject', { flags: flagged('lookahead_same_bar') }, {}, 'Why lookahead_same_bar.'],
  ['touch_fill', 'reject', { flags: flagged('touch_fill') }, {}, 'Why touch_fill.'],
  [
    'net_expectancy_not_positive',
    'not_profitable',
    { netExpectancyBps: 0, moneyNet: null },
    { netExpectancyBps: 0.1 },
    '0 bps',
  ],
  ['money_not_positive', 'not_profitable', { moneyNet: -997_704, netExpectancyBps: -1 }, { moneyNet: 1 }, '-997,704'],
  ['too_few_trades_for_statistics', 'unproven', { dsr: null, trades: 1 }, {}, '1 trades'],
  ['too_few_effective_bets', 'unproven', { effectiveBets: 10 }, { effectiveBets: 10.1 }, '10 independent bets'],
  ['interval_holds_zero', 'unproven', { intervalLowBps: -0.25 }, { intervalLowBps: 0.01 }, '-0.25 bps'],
  ['dsr_below_0.95', 'unproven', { dsr: 0.9499 }, { dsr: 0.95 }, '0.95'],
  ['pbo_above_0.5', 'unproven', { pbo: 0.51 }, { pbo: 0.5 }, '51%'],
  ['fewer_trades_than_min_trl', 'unproven', { record: 299 }, { record: 300 }, '299 days'],
  ['trade_and_money_signs_differ', 'unproven', { moneyNet: -40 }, { moneyNet: null }, '-40'],
  ['fills_not_checked', 'unproven', { checkedShare: 0.49 }, { checkedShare: 0.5 }, '49%'],
  ['no_daily_marks', 'unproven', { isMarked: false, markedShare: 0.6 }, { markedShare: 0.9 }, '60%'],
  ['no_losing_trade', 'unproven', { losers: 0 }, { losers: 1 }, '500 trades'],
  ['sharpe_above_10', 'unproven', { yearlySharpe: 10.5 }, { yearlySharpe: 10 }, '10.5'],
  ['open_positions_could_turn_it', 'unproven', { openProfit: -12_000 }, { openProfit: -11_999 }, '-12,000'],
  ['benchmark_explains_it', 'unproven', { alphaT: 1.64 }, { alphaT: null }, 'holding the traded symbols'],
  ['spa_above_0.05', 'unproven', { spa: 0.051 }, { spa: 0.05 }, '0.051'],
]

describe('the verdict of an audit', () => {
  it('has a test of every rung, in order', () => {
    expect(RUNGS.map(({ code }) => code)).to.deep.equal(CASES.map(([code]) => code))
  })

  it('is "plausible" if nothing is against it', () => {
    expect(verdictOf(GOOD)).to.deep.equal({ verdict: 'plausible', reasons: [], grounds: [] })
  })

  for (const [code, verdict, fails, passes, named] of CASES)
    it(`is at best "${verdict}" for ${code}`, () => {
      const found = verdictOf({ ...GOOD, ...fails })
      expect(found.reasons).to.include(code)
      const ground = found.grounds.find((one) => one.code === code)
      expect(ground?.verdict).to.equal(verdict)
      expect(ground?.explanation)
        .to.include(named)
        .and.not.to.match(/NaN|undefined|null/)
      expect(verdictOf({ ...GOOD, ...passes }).reasons).not.to.include(code)
      // Unless a milder rung holds too, this one alone decides.
      if (found.reasons.length === 1) expect(found.verdict).to.equal(verdict)
    })

  it('is the worst that any rung leaves, and names the milder ones too', () => {
    const found = verdictOf({ ...GOOD, flags: flagged('touch_fill'), moneyNet: -3, dsr: 0.5 })
    expect(found.verdict).to.equal('reject')
    expect(found.reasons).to.deep.equal([
      'touch_fill',
      'money_not_positive',
      'dsr_below_0.95',
      'trade_and_money_signs_differ',
    ])
    expect(found.grounds.map(({ code }) => code)).to.deep.equal(found.reasons)
    expect(verdictOf({ ...GOOD, moneyNet: -3, dsr: 0.5 }).verdict).to.equal('not_profitable')
  })

  it('takes figures that could not be computed for no reason, except for the deflated Sharpe ratio', () => {
    const unknown = { moneyNet: null, intervalLowBps: null, pbo: null, minimumRecord: null, yearlySharpe: null }
    expect(verdictOf({ ...GOOD, ...unknown, alphaT: null, spa: null }).verdict).to.equal('plausible')
    // Without an effective number, every trade counts.
    expect(verdictOf({ ...GOOD, effectiveBets: null, trades: 10 }).reasons).to.deep.equal(['too_few_effective_bets'])
  })
})
