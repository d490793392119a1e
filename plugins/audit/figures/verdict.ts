export type Verdict = 'reject' | 'not_profitable' | 'unproven' | 'plausible'

interface Evidence {
  /** Shares of rows, fills and trades with a defect, 0 to 1. */
  readonly structuralShare: number
  readonly impossibleShare: number
  readonly splitShare: number
  /** Codes of the flags that reject the ledger. */
  readonly flags: readonly string[]
  readonly netExpectancyBps: number
  readonly trades: number
  readonly dsr: number | null
  readonly pbo: number | null
  readonly minTrlTrades: number | null
}

/** A ledger with a larger share of unusable rows, impossible fills or unadjusted splits is rejected. */
export const MAX_DEFECT_SHARE = 0.005

/**
 * Decides the verdict: "reject" for trades that could not have happened, then "not_profitable" for no profit after costs,
 * then "unproven" for a result that luck may explain, otherwise "plausible". The reasons include those of milder verdicts.
 */
export function verdictOf(evidence: Evidence): { readonly verdict: Verdict; readonly reasons: readonly string[] } {
  const rejecting = [
    ...(evidence.structuralShare > MAX_DEFECT_SHARE ? ['structural_share_above_0.005'] : []),
    ...(evidence.impossibleShare > MAX_DEFECT_SHARE ? ['impossible_share_above_0.005'] : []),
    ...(evidence.splitShare > MAX_DEFECT_SHARE ? ['unadjusted_split_share_above_0.005'] : []),
    ...evidence.flags,
  ]
  const losing = evidence.netExpectancyBps > 0 ? [] : ['net_expectancy_not_positive']
  const { dsr, pbo, minTrlTrades, trades } = evidence
  const doubtful = [
    ...(dsr === null ? ['too_few_trades_for_statistics'] : dsr < 0.95 ? ['dsr_below_0.95'] : []),
    ...(pbo !== null && pbo > 0.5 ? ['pbo_above_0.5'] : []),
    ...(minTrlTrades !== null && trades < minTrlTrades ? ['fewer_trades_than_min_trl'] : []),
  ]
  const verdict =
    rejecting.length > 0
      ? 'reject'
      : losing.length > 0
        ? 'not_profitable'
        : doubtful.length > 0
          ? 'unproven'
          : 'plausible'
  return { verdict, reasons: [...rejecting, ...losing, ...doubtful] }
}
