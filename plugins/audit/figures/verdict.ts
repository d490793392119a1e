import type { AuditGround } from '../../../schemas/types.d.ts'
import {
  MAX_DEFECT_SHARE,
  MAX_FEW_BETS,
  MAX_P,
  MAX_PBO,
  MAX_SHARPE,
  MIN_ALPHA_T,
  MIN_CHECKED,
  MIN_DSR,
} from '../limits.ts'

export type Verdict = 'reject' | 'not_profitable' | 'unproven' | 'plausible'

/** What the verdict is made from. A figure that could not be computed is null. */
export interface Evidence {
  /** Shares of rows, fills and trades with a defect, 0 to 1. */
  readonly structuralShare: number
  readonly impossibleShare: number
  readonly splitShare: number
  /** The flags that reject the ledger. */
  readonly flags: readonly Pick<AuditGround, 'code' | 'value' | 'limit' | 'explanation'>[]
  readonly trades: number
  /** Trades that lost before costs. */
  readonly losers: number
  readonly netExpectancyBps: number
  /** Net profit in the money of the ledger. */
  readonly moneyNet: number | null
  /** Shares of fills that were compared with a bar, 0 to 1. */
  readonly checkedShare: number
  /** Whether positions are marked on enough days. */
  readonly isMarked: boolean
  readonly markedShare: number
  readonly effectiveBets: number | null
  /** Lower end of the 95 % interval of the mean return of a day or a trade, in basis points. */
  readonly intervalLowBps: number | null
  readonly intervalUnit: 'day' | 'trade'
  readonly dsr: number | null
  readonly pbo: number | null
  /** Length of the record, and the minimum one, both in days or both in trades. */
  readonly record: number
  readonly minimumRecord: number | null
  readonly recordUnit: 'days' | 'trades'
  readonly yearlySharpe: number | null
  /** Sums over closed trades and over open positions, in money, or in basis points of one unit per trade. */
  readonly closedProfit: number
  readonly openProfit: number
  readonly openPositions: number
  readonly alphaT: number | null
  readonly benchmark: string | null
  /** P value of Hansen's test; null for a single trial. */
  readonly spa: number | null
}

interface Rung {
  readonly code: string
  /** The best verdict that is left if the rung holds. */
  readonly verdict: Exclude<Verdict, 'plausible'>
  readonly limit: number | null | ((evidence: Evidence) => number | null)
  readonly value: (evidence: Evidence) => number | null
  /** Whether the value fails. It is asked only for values that are not null, unless `holdsForNull`. */
  readonly holds: (value: number, evidence: Evidence) => boolean
  readonly holdsForNull?: boolean
  readonly sentence: (evidence: Evidence) => string
}

const percent = (share: number): string => `${Number((share * 100).toPrecision(3))}%`
const number = (value: number | null, digits = 3): string =>
  value === null ? 'unknown' : Number(value.toPrecision(digits)).toLocaleString('en-US')

/** The rungs of the ladder, in the order in which a report names them. */
export const RUNGS: readonly Rung[] = [
  {
    code: 'structural_share_above_0.005',
    verdict: 'reject',
    limit: MAX_DEFECT_SHARE,
    value: ({ structuralShare }) => structuralShare,
    holds: (value) => value > MAX_DEFECT_SHARE,
    sentence: ({ structuralShare }) => `${percent(structuralShare)} of the rows cannot be used.`,
  },
  {
    code: 'impossible_share_above_0.005',
    verdict: 'reject',
    limit: MAX_DEFECT_SHARE,
    value: ({ impossibleShare }) => impossibleShare,
    holds: (value) => value > MAX_DEFECT_SHARE,
    sentence: ({ impossibleShare }) =>
      `${percent(impossibleShare)} of the fills that were judged could not have happened.`,
  },
  {
    code: 'unadjusted_split_share_above_0.005',
    verdict: 'reject',
    limit: MAX_DEFECT_SHARE,
    value: ({ splitShare }) => splitShare,
    holds: (value) => value > MAX_DEFECT_SHARE,
    sentence: ({ splitShare }) => `${percent(splitShare)} of the trades were held across a split at unadjusted prices.`,
  },
  ...['lookahead_extremes', 'lookahead_same_bar', 'touch_fill'].map((code): Rung => {
    const flagOf = ({ flags }: Evidence) => flags.find((flag) => flag.code === code)
    return {
      code,
      verdict: 'reject',
      limit: (evidence) => flagOf(evidence)?.limit ?? null,
      value: (evidence) => flagOf(evidence)?.value ?? null,
      holds: () => true,
      sentence: (evidence) => flagOf(evidence)?.explanation ?? '',
    }
  }),
  {
    code: 'net_expectancy_not_positive',
    verdict: 'not_profitable',
    limit: 0,
    value: ({ netExpectancyBps }) => netExpectancyBps,
    holds: (value) => !(value > 0),
    sentence: ({ netExpectancyBps }) => `A trade makes ${number(netExpectancyBps)} bps after costs on average.`,
  },
  {
    code: 'money_not_positive',
    verdict: 'not_profitable',
    limit: 0,
    value: ({ moneyNet }) => moneyNet,
    holds: (value) => !(value > 0),
    sentence: ({ moneyNet }) => `The profit in money after costs is ${number(moneyNet, 6)}.`,
  },
  {
    code: 'too_few_trades_for_statistics',
    verdict: 'unproven',
    limit: null,
    value: ({ dsr }) => dsr,
    holds: () => false,
    holdsForNull: true,
    sentence: ({ trades }) => `No statistics can be made from ${trades} trades: they are too few, or all the same.`,
  },
  {
    code: 'too_few_effective_bets',
    verdict: 'unproven',
    limit: MAX_FEW_BETS,
    value: ({ effectiveBets, trades }) => effectiveBets ?? trades,
    holds: (value) => !(value > MAX_FEW_BETS),
    sentence: ({ effectiveBets, trades }) =>
      `The ${trades} trades are worth ${number(effectiveBets ?? trades, 2)} independent bets; ${MAX_FEW_BETS} or fewer prove nothing.`,
  },
  {
    code: 'interval_holds_zero',
    verdict: 'unproven',
    limit: 0,
    value: ({ intervalLowBps }) => intervalLowBps,
    holds: (value) => !(value > 0),
    sentence: ({ intervalLowBps, intervalUnit }) =>
      `The 95 % interval of the mean return of a ${intervalUnit} begins at ${number(intervalLowBps)} bps, so it holds zero.`,
  },
  {
    code: 'dsr_below_0.95',
    verdict: 'unproven',
    limit: MIN_DSR,
    value: ({ dsr }) => dsr,
    holds: (value) => value < MIN_DSR,
    sentence: ({ dsr }) => `The deflated Sharpe ratio is ${number(dsr)}: luck and searching may explain the result.`,
  },
  {
    code: 'pbo_above_0.5',
    verdict: 'unproven',
    limit: MAX_PBO,
    value: ({ pbo }) => pbo,
    holds: (value) => value > MAX_PBO,
    sentence: ({ pbo }) =>
      `In ${percent(pbo ?? 0)} of the splits, the best trial is no better than the others afterwards.`,
  },
  {
    code: 'fewer_trades_than_min_trl',
    verdict: 'unproven',
    limit: null,
    value: ({ record, minimumRecord }) => (minimumRecord === null ? null : record / minimumRecord),
    holds: (value) => value < 1,
    sentence: ({ record, minimumRecord, recordUnit }) =>
      `The record has ${number(record, 6)} ${recordUnit}; its Sharpe ratio needs ${number(Math.ceil(minimumRecord ?? 0), 6)}.`,
  },
  {
    code: 'trade_and_money_signs_differ',
    verdict: 'unproven',
    limit: 0,
    value: ({ moneyNet }) => moneyNet,
    holds: (value, { netExpectancyBps }) => value > 0 !== netExpectancyBps > 0,
    sentence: ({ moneyNet, netExpectancyBps }) =>
      `By trade the result is ${number(netExpectancyBps)} bps, in money ${number(moneyNet, 6)}: the sizes of the trades decide.`,
  },
  {
    code: 'fills_not_checked',
    verdict: 'unproven',
    limit: MIN_CHECKED,
    value: ({ checkedShare }) => checkedShare,
    holds: (value) => value < MIN_CHECKED,
    sentence: ({ checkedShare }) =>
      checkedShare === 0
        ? 'No fill could be checked against bars, so it is unknown whether the fills could have happened.'
        : `Only ${percent(checkedShare)} of the fills could be checked against bars.`,
  },
  {
    code: 'no_daily_marks',
    verdict: 'unproven',
    limit: null,
    value: ({ isMarked, markedShare }) => (isMarked ? null : markedShare),
    holds: () => true,
    sentence: ({ markedShare }) =>
      `Every position has a price on ${percent(markedShare)} of its days only, so what happened between entry and exit is unknown.`,
  },
  {
    code: 'no_losing_trade',
    verdict: 'unproven',
    limit: 1,
    value: ({ losers }) => losers,
    holds: (value) => value < 1,
    sentence: ({ trades }) =>
      `None of the ${trades} trades lost before costs. A record without losers does not show what can be lost.`,
  },
  {
    code: 'sharpe_above_10',
    verdict: 'unproven',
    limit: MAX_SHARPE,
    value: ({ yearlySharpe }) => yearlySharpe,
    holds: (value) => value > MAX_SHARPE,
    sentence: ({ yearlySharpe }) =>
      `A yearly Sharpe ratio of ${number(yearlySharpe)} is too good for a record of real trades.`,
  },
  {
    code: 'open_positions_could_turn_it',
    verdict: 'unproven',
    limit: null,
    value: ({ openPositions, openProfit }) => (openPositions > 0 ? openProfit : null),
    holds: (value, { closedProfit }) => closedProfit > 0 && closedProfit + value <= 0,
    sentence: ({ openPositions, openProfit, closedProfit }) =>
      `The ${openPositions} open positions stand at ${number(openProfit, 6)}, the closed trades at ${number(closedProfit, 6)}.`,
  },
  {
    code: 'benchmark_explains_it',
    verdict: 'unproven',
    limit: MIN_ALPHA_T,
    value: ({ alphaT }) => alphaT,
    holds: (value) => value < MIN_ALPHA_T,
    sentence: ({ alphaT, benchmark }) =>
      `What ${benchmark === null || benchmark === 'traded_symbols' ? 'holding the traded symbols' : `holding ${benchmark}`} does not explain has a t statistic of ${number(alphaT)}.`,
  },
  {
    code: 'spa_above_0.05',
    verdict: 'unproven',
    limit: MAX_P,
    value: ({ spa }) => spa,
    holds: (value) => value > MAX_P,
    sentence: ({ spa }) =>
      `Among the trials of the file, luck finds one as good with a probability of ${number(spa)} (Hansen's test).`,
  },
]

/** The worst comes first. */
const RANKS: Readonly<Record<Verdict, number>> = { reject: 0, not_profitable: 1, unproven: 2, plausible: 3 }

/**
 * Decides the verdict: "reject" for trades that could not have happened, then "not_profitable" for no profit after costs,
 * then "unproven" for a result that luck, holding the symbols or missing data may explain, otherwise "plausible". The
 * reasons include those of milder verdicts. `grounds` has the numbers and a sentence for each reason, in the same order.
 */
export function verdictOf(evidence: Evidence): {
  readonly verdict: Verdict
  readonly reasons: readonly string[]
  readonly grounds: readonly AuditGround[]
} {
  const grounds = RUNGS.flatMap(({ code, verdict, limit, value: read, holds, holdsForNull, sentence }) => {
    const value = read(evidence)
    const fails = value === null ? holdsForNull === true : holds(value, evidence)
    if (!fails) return []
    const bound = typeof limit === 'function' ? limit(evidence) : limit
    return [{ code, verdict, value, limit: bound, explanation: sentence(evidence) }]
  })
  const [verdict = 'plausible'] = grounds
    .map((ground): Verdict => ground.verdict)
    .toSorted((one, other) => RANKS[one] - RANKS[other])
  return { verdict, reasons: grounds.map(({ code }) => code), grounds }
}
