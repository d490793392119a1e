/** What is wrong with a service, seen from outside, and what to do about it. */
export interface Finding {
  /** Which rule is broken, e.g. "cors". */
  readonly rule: string
  /** What it is about: a route, a document, a tool. */
  readonly where: string
  readonly problem: string
  readonly fix: string
  /** False: worth doing, and no reason for anybody to turn away. */
  readonly isFault: boolean
}

/** Reports a fault of one place. */
export type Report = (rule: string, problem: string, fix: string) => void

export interface Findings {
  readonly list: Finding[]
  /** The reports of one place. */
  at(where: string): Report
  advise(where: string, rule: string, problem: string, fix: string): void
}

export function collectFindings(): Findings {
  const list: Finding[] = []
  return {
    list,
    at: (where) => (rule, problem, fix) => void list.push({ rule, where, problem, fix, isFault: true }),
    advise: (where, rule, problem, fix) => void list.push({ rule, where, problem, fix, isFault: false }),
  }
}
