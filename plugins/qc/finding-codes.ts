export type Severity = 'error' | 'warning' | 'info'

export type Family = 'impossible' | 'timestamp' | 'bad_print' | 'stale' | 'volume' | 'split' | 'session' | 'tick'

export type Field = 'timestamp' | 'open' | 'high' | 'low' | 'close' | 'volume' | 'bar'

export type Code = keyof typeof FAMILIES

/** One defect of one row. */
export interface Finding {
  readonly code: Code
  readonly severity: Severity
  /** Row of the request, from 0. */
  readonly index: number
  readonly field: Field
  readonly observed: number | string | null
  /** The value that a repair would use; null if the row should be dropped or no better value is known. */
  readonly expected: number | string | null
  /** How far the value is out of line, in the unit that the explanation names; null for a yes-or-no rule. */
  readonly score: number | null
  /** Probability that the finding is right. */
  readonly confidence: number
  readonly explanation: string
  /** The numbers from which the score follows. */
  readonly inputs?: PrintInputs
}

/** Inputs of the score of a bad print, |ln(observed/beyond)| / (scale · volume_excuse). */
export interface PrintInputs {
  /** The nearest price that the body of the bar or its neighbours confirm. */
  readonly beyond: number
  /** Local scale of log prices. */
  readonly scale: number
  /** Square root of relative volume, 1 to 6. */
  readonly volume_excuse: number
}

export type AddFinding = (finding: Finding) => void

/** All codes with their families. */
export const FAMILIES = {
  missing_value: 'impossible',
  nonpositive_price: 'impossible',
  high_lt_low: 'impossible',
  open_outside_range: 'impossible',
  close_outside_range: 'impossible',
  negative_volume: 'impossible',
  duplicate_timestamp: 'timestamp',
  out_of_order_timestamp: 'timestamp',
  off_grid_timestamp: 'timestamp',
  gap: 'timestamp',
  bad_print_high: 'bad_print',
  bad_print_low: 'bad_print',
  bad_print_close: 'bad_print',
  decimal_shift: 'bad_print',
  stale_run: 'stale',
  volume_outlier: 'volume',
  zero_volume_move: 'volume',
  unadjusted_split: 'split',
  possible_dividend: 'split',
  series_discontinuity: 'split',
  closed_session_bar: 'session',
  clock_shift: 'session',
  off_tick: 'tick',
} as const satisfies Record<string, Family>
