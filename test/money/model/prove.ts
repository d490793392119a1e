/** Makes many random runs and counts what they did. If one breaks an invariant, can find the shortest run that does. */
import * as fc from 'fast-check'
import { type Choice, run, type Tally } from './run.ts'

const choice: fc.Arbitrary<Choice> = fc.record({
  what: fc.nat(99),
  which: fc.nat(9_999),
  how: fc.nat(9_999),
})

export interface Proof {
  /** Counts over all runs. */
  readonly figures: Readonly<Record<string, number>>
  /** The broken invariant with the steps that lead there; null if none was broken. */
  readonly failure: string | null
}

export interface ProofOptions {
  /** Of the random runs; another one each time if absent. */
  readonly seed?: number
  /** How many runs of the seed are left out. */
  readonly skip?: number
  /** Whether to find the shortest run that breaks the same invariant, which takes minutes. */
  readonly shrink?: boolean
  /** Whether only our own transactions buy something. */
  readonly isStrict?: boolean
  /** Called after each run with the number of runs so far. */
  readonly onRun?: (runs: number) => void
}

export async function prove(
  runs: number,
  { seed, skip = 0, shrink = false, isStrict = false, onRun = () => {} }: ProofOptions = {},
): Promise<Proof> {
  const total: Record<string, number> = { runs: 0 }
  const steps = new Map<string, number>()
  const add = ({ steps: taken, ...counts }: Tally): void => {
    total['runs'] = (total['runs'] ?? 0) + 1
    for (const [name, count] of Object.entries(counts)) total[name] = (total[name] ?? 0) + count
    for (const [name, count] of taken) steps.set(name, (steps.get(name) ?? 0) + count)
    onRun(total['runs'])
  }
  const result = await fc.check(
    fc.asyncProperty(fc.array(choice, { maxLength: 500, size: 'max' }), async (choices) =>
      add(await run(choices, isStrict)),
    ),
    { numRuns: runs, endOnFailure: !shrink, ...(seed === undefined ? {} : { seed, path: String(skip) }) },
  )
  const crashPoints = [...steps.keys()].filter((name) => / (before|after)$/.test(name))
  const figures = {
    ...total,
    steps: [...steps.values()].reduce((sum, count) => sum + count, 0),
    'kinds of crash': crashPoints.length,
  }
  return {
    figures,
    failure: result.failed
      ? `seed ${result.seed}, after ${result.numRuns} runs and ${result.numShrinks} shrinks\n${(result.errorInstance as Error).message}`
      : null,
  }
}
