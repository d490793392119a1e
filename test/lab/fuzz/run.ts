/** Runs targets one after the other, each in a process of its own, and keeps what they find. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../../../gateway/config/project-root.ts'
import { keepInput, readCorpus } from '../../fuzz/corpus.ts'
import { bundleTargets } from './instrument.ts'
import type { Finding } from './loop.ts'
import { HEAD_BYTES, type WorkOrder, type WorkResult } from './worker.ts'

export interface FuzzOptions {
  /** The module that exports `TARGETS`. */
  readonly module: string
  /** The names of the targets to run. */
  readonly targets: readonly string[]
  /** Where inputs are kept. */
  readonly corpus: string
  /** Cases of all targets together, and seconds of all of them. */
  readonly cases: number
  readonly seconds: number
  readonly seed: number
  /** A case that takes longer ends the process of its target. */
  readonly hangMs?: number
  /** The process of a target may use so much memory, in megabytes. */
  readonly heapMegabytes?: number
}

/** Result of one target. */
export interface TargetReport extends Omit<WorkResult, 'findings' | 'interesting'> {
  readonly target: string
  readonly seconds: number
  /** Inputs that were added to the corpus. */
  readonly kept: number
  readonly findings: readonly (Finding & { readonly file: string })[]
}

const HEAP_MEGABYTES = 512
const HANG_MS = 10_000

/** Runs the targets. Calls `report` after each. */
export async function fuzz(options: FuzzOptions, report: (each: TargetReport) => void): Promise<TargetReport[]> {
  const cache = join(PROJECT_ROOT, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'fuzz-'))
  try {
    const bundle = join(folder, 'targets.mjs')
    await bundleTargets(options.module, join(import.meta.dirname, 'worker.ts'), bundle)
    const reports: TargetReport[] = []
    for (const target of options.targets) {
      const each = await runTarget(target, bundle, folder, options)
      reports.push(each)
      report(each)
    }
    return reports
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runTarget(target: string, bundle: string, folder: string, options: FuzzOptions): Promise<TargetReport> {
  const { corpus, targets, cases, seconds, seed, hangMs = HANG_MS, heapMegabytes = HEAP_MEGABYTES } = options
  const [orderFile, resultFile, currentFile] = ['order.json', 'result.json', 'current'].map((name) =>
    join(folder, `${target}-${name}`),
  ) as [string, string, string]
  const order: WorkOrder = {
    target,
    cases: Math.ceil(cases / targets.length),
    seconds: seconds / targets.length,
    seed,
    corpus: [...readCorpus(corpus, target).values()].map((input) => input.toString('base64')),
    currentFile,
    resultFile,
  }
  writeFileSync(orderFile, JSON.stringify(order))
  const began = Date.now()
  const child = spawn(process.execPath, [`--max-old-space-size=${heapMegabytes}`, bundle, orderFile], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const end = await endOf(child, currentFile, hangMs)
  const result = existsSync(resultFile) ? (JSON.parse(readFileSync(resultFile, 'utf8')) as WorkResult) : null
  // Not the input's fault.
  if (!result && readCurrent(currentFile).number === 0) throw new Error(end.message)
  const found = result?.findings.map((each) => ({ ...each, input: Buffer.from(each.input, 'base64') })) ?? [
    { ...end, input: readCurrent(currentFile).input },
  ]
  const interesting = result?.interesting ?? []
  for (const input of interesting) keepInput(corpus, target, Buffer.from(input, 'base64'))
  const findings = found.map((finding) => ({ ...finding, file: keepInput(corpus, target, finding.input, true) }))
  const figures = result ?? {
    cases: readCurrent(currentFile).number,
    slowestMs: NaN,
    branches: NaN,
    newBranches: NaN,
    heapBefore: NaN,
    heapAfter: NaN,
  }
  return { ...figures, target, seconds: (Date.now() - began) / 1000, kept: interesting.length, findings }
}

/** Waits for the end of a process, and ends one whose case lasts too long. */
function endOf(child: ChildProcess, currentFile: string, hangMs: number): Promise<Pick<Finding, 'kind' | 'message'>> {
  return new Promise((resolve, reject) => {
    let [last, since, isHung, said] = [-1, Date.now(), false, '']
    child.stderr?.on('data', (text: Buffer) => {
      said = (said + text.toString()).slice(-4_000)
    })
    const watch = setInterval(() => {
      const { number } = readCurrent(currentFile)
      if (number !== last) [last, since] = [number, Date.now()]
      // Before the first case the process loads the bundle.
      else if (number > 0 && Date.now() - since > hangMs) {
        isHung = true
        child.kill('SIGKILL')
      }
    }, hangMs / 10)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearInterval(watch)
      const message = isHung
        ? `a case lasted more than ${hangMs} ms`
        : `the process ended with ${signal ?? code}: ${said}`
      resolve({ kind: isHung ? 'hang' : 'crash', message })
    })
  })
}

/** The input that the process reads now, and its number. */
function readCurrent(file: string): { readonly number: number; readonly input: Buffer } {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
  if (bytes.length < HEAD_BYTES) return { number: 0, input: Buffer.alloc(0) }
  return { number: bytes.readUInt32LE(0), input: bytes.subarray(HEAD_BYTES, HEAD_BYTES + bytes.readUInt32LE(4)) }
}
