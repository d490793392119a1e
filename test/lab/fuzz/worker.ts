/** Runs one target in a process of its own, whose end is a finding too. */
import { openSync, writeSync, readFileSync, writeFileSync } from 'node:fs'
import { fuzzTarget, type Finding, type LoopResult } from './loop.ts'
import type { FuzzTarget } from '../../fuzz/target.ts'

/** Input of the process, as JSON in a file. Inputs are base64. */
export interface WorkOrder {
  readonly target: string
  readonly cases: number
  readonly seconds: number
  readonly seed: number
  readonly corpus: readonly string[]
  /** The file that always holds the input being read, behind the number of the case and its length. */
  readonly currentFile: string
  readonly resultFile: string
}

/** Output of the process. */
export interface WorkResult extends Omit<LoopResult, 'findings' | 'interesting'> {
  readonly findings: readonly (Omit<Finding, 'input'> & { readonly input: string })[]
  readonly interesting: readonly string[]
}

declare global {
  // oxlint-disable-next-line no-var -- The bundle counts in this variable.
  var __branchCounts: Uint8Array
}

/** Bytes before the input in the file of the current input: the number of the case, and the length. */
export const HEAD_BYTES = 8

/** Carries out the order in the file that the command line names. */
export async function work(targets: readonly FuzzTarget[]): Promise<void> {
  const order = JSON.parse(readFileSync(process.argv[2] as string, 'utf8')) as WorkOrder
  const target = targets.find(({ name }) => name === order.target)
  if (!target) throw new RangeError(`There is no target ${order.target}.`)
  const current = openSync(order.currentFile, 'w')
  const head = Buffer.alloc(HEAD_BYTES)
  let number = 0
  const { findings, interesting, ...figures } = await fuzzTarget(target, {
    ...order,
    corpus: order.corpus.map(fromBase64),
    counts: globalThis.__branchCounts,
    before(input) {
      number = (number + 1) >>> 0
      head.writeUInt32LE(number, 0)
      head.writeUInt32LE(input.length, 4)
      writeSync(current, Buffer.concat([head, input]), 0, HEAD_BYTES + input.length, 0)
    },
  })
  const result: WorkResult = {
    ...figures,
    findings: findings.map((finding) => ({ ...finding, input: finding.input.toString('base64') })),
    interesting: interesting.map((input) => input.toString('base64')),
  }
  writeFileSync(order.resultFile, JSON.stringify(result))
  process.exit(0)
}

const fromBase64 = (text: string): Buffer => Buffer.from(text, 'base64')
