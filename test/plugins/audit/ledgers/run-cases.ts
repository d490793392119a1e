/** Many cases, their faults counted by kind. */
import * as fc from 'fast-check'
import { type Fault, outcomeOf, silenceOf } from './compare-report.ts'
import type { Format } from './formats.ts'
import { changedCase, drawnCase, FORMATS, type LedgerCase } from './ledger-case.ts'

export interface CaseFigures {
  readonly cases: number
  /** Refusals that the list of ambiguities allows, by code. */
  readonly ambiguous: ReadonlyMap<string, number>
  /** Faults by "format: code". */
  readonly faults: ReadonlyMap<string, FaultCount>
}

export interface FaultCount {
  readonly format: string
  readonly code: string
  count: number
}

interface RunOptions {
  readonly formats: readonly Format[]
  readonly cases: number
  readonly seed: number
  readonly onProgress?: (cases: number, faulty: number) => void
}

/** Files that are in memory at the same time. */
const SAMPLE = 100

/** Runs every case, also after a fault. */
export async function runCases({ formats, cases, seed, onProgress }: RunOptions): Promise<CaseFigures> {
  const ambiguous = new Map<string, number>()
  const faults = new Map<string, FaultCount>()
  let [done, faulty] = [0, 0]
  for (let start = 0; start < cases; start += SAMPLE) {
    const numRuns = Math.min(SAMPLE, cases - start)
    for (const written of fc.sample(drawnCase(formats), { seed: seed + start, numRuns })) {
      const outcome = await outcomeOf(written)
      done += 1
      if (outcome.kind === 'ambiguous') ambiguous.set(outcome.code, (ambiguous.get(outcome.code) ?? 0) + 1)
      if (outcome.kind !== 'fault') continue
      faulty += 1
      count(faults, written.format, outcome.faults)
    }
    onProgress?.(done, faulty)
  }
  return { cases: done, ambiguous, faults }
}

function count(faults: Map<string, FaultCount>, format: string, found: readonly Fault[]): void {
  for (const code of new Set(found.map((fault) => fault.code))) {
    const known = faults.get(`${format}: ${code}`) ?? { format, code, count: 0 }
    known.count += 1
    faults.set(`${format}: ${code}`, known)
  }
}

/** Adds, renames or removes a column of as many files, and returns the files about which the audit is silent or crashes. */
export async function runChangedCases({ formats, cases, seed }: Omit<RunOptions, 'onProgress'>): Promise<string[]> {
  const silent: string[] = []
  for (let start = 0; start < cases; start += SAMPLE) {
    const numRuns = Math.min(SAMPLE, cases - start)
    for (const written of fc.sample(changedCase(formats), { seed: seed + start, numRuns })) {
      const outcome = await silenceOf(written)
      if (outcome.kind === 'fault') silent.push(describeCase(written, outcome.faults))
    }
  }
  return silent
}

const SEARCHED = 2_000

/** The smallest file that shows a fault, as text; null if none is found. */
export async function smallestFile({ format, code }: FaultCount, seed: number): Promise<string | null> {
  const formats = FORMATS.filter(({ name }) => name === format)
  const shows = async (written: LedgerCase): Promise<readonly Fault[]> => {
    const outcome = await outcomeOf(written)
    return outcome.kind === 'fault' ? outcome.faults.filter((fault) => fault.code === code) : []
  }
  const property = fc.asyncProperty(drawnCase(formats), async (written) => (await shows(written)).length === 0)
  const { counterexample } = await fc.check(property, { seed, numRuns: SEARCHED })
  return counterexample ? describeCase(counterexample[0], await shows(counterexample[0])) : null
}

/** The file of a case as text, with what was asked and what is wrong, so that it can be pasted into a test. */
export function describeCase({ format, bytes, sizes, symbol, truth }: LedgerCase, faults: readonly Fault[]): string {
  const text = bytes[0] === 0xff ? bytes.subarray(2).toString('utf16le') : bytes.toString('utf8')
  return [
    `${format}: ${faults.map(({ text }) => text).join('; ')}`,
    `contract sizes stated: ${JSON.stringify([...sizes])}, symbol stated: ${String(symbol)}`,
    `trips ${truth.trips}, gross ${truth.grossBps} bps, net ${truth.netBps} bps, money ${JSON.stringify([...truth.money])}`,
    text,
  ].join('\n')
}
