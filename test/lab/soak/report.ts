/** The output of a soak run. */
import type { Memory, Recovery } from './measures.ts'

/** One fault, and what it did to the calls of its minute. */
export interface FaultResult {
  readonly name: string
  readonly what: string
  readonly calls: number
  /** Purchases whose answer came. */
  readonly delivered: number
  /** p99 of the 402s of the minute, milliseconds; Infinity if more than one in a hundred was not answered. */
  readonly p99: number
  /** p99 of the 402s and free calls due during the fault, milliseconds; NaN if the fault ended at once. */
  readonly brokenP99: { readonly quotes: number; readonly free: number }
  readonly errors: Readonly<Record<string, number>>
  readonly recovery: Recovery
  readonly breaches: readonly string[]
}

/** One minute of the run, as one line. */
export function minuteLine(minute: number, result: FaultResult, memory: readonly Memory[], load: number): string {
  const sums = (of: (point: Memory) => number): string => memory.map((point) => of(point).toFixed(0)).join(' + ')
  const columns = [
    `minute ${String(minute).padStart(2)}`,
    result.name.padEnd(15),
    `${result.calls} calls`,
    `${result.delivered} delivered`,
    `402 p99 ${result.p99.toFixed(0)} ms`,
    ...(Number.isNaN(result.brokenP99.quotes)
      ? []
      : [`during the fault ${result.brokenP99.quotes.toFixed(0)} ms, free ${result.brokenP99.free.toFixed(0)} ms`]),
    `sold after ${result.recovery.sold.toFixed(1)} s, quoted after ${result.recovery.quoted.toFixed(1)} s`,
    `heap ${sums(({ heap }) => heap)} MB`,
    `RSS ${sums(({ resident }) => resident)} MB`,
    `load of the machine ${load.toFixed(1)}`,
  ]
  const details = [
    `           ${result.what}: ${errorsOf(result.errors)}`,
    ...result.breaches.map((text) => `  BREACH   ${text}`),
  ]
  return [columns.join('  '), ...details].join('\n')
}

function errorsOf(errors: Readonly<Record<string, number>>): string {
  const counts = Object.entries(errors).sort(([, one], [, other]) => other - one)
  return counts.map(([outcome, count]) => `${count} × ${outcome}`).join(', ') || 'no errors'
}

/** All faults by name: how often, the errors by code, and the seconds until recovery. */
export function faultTable(results: readonly FaultResult[]): string {
  const rows = [...new Set(results.map(({ name }) => name))].map((name) => {
    const own = results.filter((result) => result.name === name)
    const errors: Record<string, number> = {}
    for (const result of own)
      for (const [outcome, count] of Object.entries(result.errors)) errors[outcome] = (errors[outcome] ?? 0) + count
    const calls = own.reduce((sum, result) => sum + result.calls, 0)
    const recoveries = own.map(({ recovery }) => Math.max(recovery.sold, recovery.quoted).toFixed(1)).join(' ')
    return [
      name.padEnd(16),
      String(own.length).padStart(5),
      String(calls).padStart(9),
      `  ${recoveries.padEnd(22)}`,
      errorsOf(errors),
    ].join(' ')
  })
  const head = [
    'fault'.padEnd(16),
    'times'.padStart(5),
    'calls'.padStart(9),
    `  ${'recovery in s'.padEnd(22)}`,
    'errors',
  ].join(' ')
  return [head, ...rows].join('\n')
}
