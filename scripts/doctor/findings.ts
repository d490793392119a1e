/** Something that is wrong with a service, seen from outside, and how to fix it. */
export interface Finding {
  /** The rule that is violated, e.g. "cors". */
  readonly rule: string
  /** The route, document or tool it is about. */
  readonly where: string
  readonly problem: string
  readonly fix: string
  /** False for advice: an improvement that nothing depends on. */
  readonly isFault: boolean
}

/** Reports a fault at one place. */
export type Report = (rule: string, problem: string, fix: string) => void

export interface Findings {
  readonly list: Finding[]
  /** Returns the function that reports faults at a place. */
  at(where: string): Report
  /** Reports an improvement that nothing depends on. */
  advise(where: string, rule: string, problem: string, fix: string): void
}

/** Creates an empty list of findings. */
export function collectFindings(): Findings {
  const list: Finding[] = []
  return {
    list,
    at: (where) => (rule, problem, fix) => void list.push({ rule, where, problem, fix, isFault: true }),
    advise: (where, rule, problem, fix) => void list.push({ rule, where, problem, fix, isFault: false }),
  }
}
