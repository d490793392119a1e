/**
 * Coverage-guided fuzzing of one target (after AFL and libFuzzer): inputs that take a branch, or take it another number of
 * times, that no input took before are kept and changed further. Each input has a bound on time, and the heap must not
 * grow with the number of inputs.
 *
 * We wrote our own because jazzer.js 4 does not load on Debian 12 (its native part wants glibc 2.38), and jazzer.js 2 fetches
 * that part in an install script.
 */
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MAX_KEPT_BYTES } from '../../fuzz/corpus.ts'
import { mutate } from '../../fuzz/mutations.ts'
import { Random } from '../../fuzz/random.ts'
import type { FuzzTarget } from '../../fuzz/target.ts'

/** How long a case may take. */
export const MAX_CASE_MS = 100
/** By how much the heap may have grown after all cases, beyond what the fuzzer keeps itself. */
const MAX_GROWTH_BYTES = 8_000_000

export interface LoopOptions {
  readonly cases: number
  readonly seconds: number
  readonly seed: number
  /** Inputs that earlier runs kept. */
  readonly corpus: readonly Buffer[]
  /** How often each branch was taken. Empty if nothing is counted. */
  readonly counts: Uint8Array
  /** Gets each input before it is read, because it may end the process. */
  readonly before: (input: Buffer) => void
}

/** An input that a parser does not cope with. */
export interface Finding {
  readonly kind: 'error' | 'slow' | 'growth' | 'hang' | 'crash'
  readonly message: string
  readonly input: Buffer
}

export interface LoopResult {
  readonly cases: number
  readonly slowestMs: number
  /** Branches that any input took, and how many of them no input of the corpus took. */
  readonly branches: number
  readonly newBranches: number
  /** Bytes of the heap after garbage collections: after the first tenth of the cases, and after the last. */
  readonly heapBefore: number
  readonly heapAfter: number
  readonly findings: readonly Finding[]
  /** Small inputs that take branches no input of the corpus took. */
  readonly interesting: readonly Buffer[]
}

/** Findings of one target are listed up to this number. */
const MAX_FINDINGS = 10
/** A case that seems to be the slowest so far is measured again, if it took longer than this. */
const MEASURED_AGAIN_MS = 2
/** How often an input is shortened, at most. */
const TRIMS = 60
/** The heap is measured this often. */
const MEASUREMENTS = 20

/** Runs a target. */
export async function fuzzTarget(target: FuzzTarget, options: LoopOptions): Promise<LoopResult> {
  return new Loop(target, options).run()
}

/** An input that took new branches. */
interface Entry {
  readonly input: Buffer
  /** The branches it takes, sorted. */
  readonly branches: Uint32Array
}

class Loop {
  readonly #target: FuzzTarget
  readonly #options: LoopOptions
  readonly #random: Random
  /** The counts of the last case, four at a time. */
  readonly #words: Uint32Array
  /** The classes of counts that were seen, one bit each. */
  readonly #seen: Uint8Array
  readonly #entries: Entry[] = []
  readonly #findings = new Map<string, Finding>()
  #cases = 0
  #slowestMs = 0

  constructor(target: FuzzTarget, options: LoopOptions) {
    const { counts } = options
    this.#target = target
    this.#options = options
    this.#random = new Random(options.seed)
    this.#words = new Uint32Array(counts.buffer, counts.byteOffset, counts.length >> 2)
    this.#seen = new Uint8Array(counts.length)
  }

  async run(): Promise<LoopResult> {
    const { cases, seconds, corpus } = this.#options
    const { seeds } = this.#target
    const ends = performance.now() + seconds * 1000
    for (const input of corpus) await this.#add(input)
    const known = new Uint8Array(this.#seen)
    for (const seed of seeds) await this.#add(Buffer.from(seed))
    if (this.#entries.length === 0)
      this.#entries.push({ input: Buffer.from(seeds[0] ?? ''), branches: new Uint32Array() })
    let heapBefore = 0
    const chunk = Math.max(1, Math.floor(cases / MEASUREMENTS))
    let measured = 0
    while (this.#cases < cases && performance.now() < ends && this.#findings.size < MAX_FINDINGS) {
      await this.#next()
      if (this.#cases < (measured + 1) * chunk) continue
      measured = Math.floor(this.#cases / chunk)
      if (measured <= 2) heapBefore = this.#heap()
    }
    const heapAfter = this.#heap()
    heapBefore ||= heapAfter
    if (heapAfter - heapBefore > MAX_GROWTH_BYTES) {
      const message = `the heap grew from ${heapBefore} to ${heapAfter} bytes in ${this.#cases} cases`
      this.#findings.set('growth', { kind: 'growth', message, input: Buffer.from(seeds[0] ?? '') })
    }
    return {
      cases: this.#cases,
      slowestMs: this.#slowestMs,
      branches: this.#seen.filter(Boolean).length,
      newBranches: this.#seen.filter((bits, branch) => bits !== 0 && known[branch] === 0).length,
      heapBefore,
      heapAfter,
      findings: [...this.#findings.values()],
      interesting: this.#interesting(known),
    }
  }

  async #next(): Promise<void> {
    const entries = this.#entries
    // Half of the cases change what was found last.
    const recent = Math.min(16, entries.length)
    const at = this.#random.onceIn(2)
      ? entries.length - 1 - this.#random.below(recent)
      : this.#random.below(entries.length)
    const { words, maxBytes } = this.#target
    const [{ input }, { input: other }] = [entries[at] as Entry, this.#random.oneOf(entries)]
    await this.#add(mutate(input, { random: this.#random, words, other, maxBytes }))
  }

  /** Runs an input, and keeps a short form of it if it took a branch in a new way. */
  async #add(input: Buffer): Promise<void> {
    if (!(await this.#runCase(input))) return
    const fresh = this.#freshBits()
    if (fresh.size === 0) return
    // Some branches are taken only once in a process. An input does not own them.
    if (!(await this.#takes(input, fresh))) return this.#remember(fresh)
    const short = await this.#shortened(input, (candidate) => this.#takes(candidate, fresh))
    await this.#runCase(short)
    this.#remember(fresh)
    this.#entries.push({ input: short, branches: this.#branches() })
  }

  /** Runs a case. Returns false if it is a finding. */
  async #runCase(input: Buffer): Promise<boolean> {
    const found = await this.#judge(input)
    if (found === null) return true
    const signature = signatureOf(found)
    if (!this.#findings.has(signature)) {
      this.#findings.set(signature, found)
      const isSame = async (candidate: Buffer): Promise<boolean> => {
        const again = await this.#judge(candidate)
        return again !== null && signatureOf(again) === signature
      }
      const short = found.kind === 'error' ? await this.#shortened(input, isSame, 500) : input
      this.#findings.set(signature, { ...found, input: short })
    }
    return false
  }

  async #judge(input: Buffer): Promise<Finding | null> {
    const { read } = this.#target
    this.#options.before(input)
    this.#options.counts.fill(0)
    this.#cases += 1
    const began = performance.now()
    try {
      // Its own copy: a parser may write into its input, and keep it.
      const reading = read(Buffer.from(input))
      if (reading instanceof Promise) await reading
    } catch (error) {
      return { kind: 'error', message: error instanceof Error ? (error.stack ?? error.message) : String(error), input }
    }
    const took = performance.now() - began
    const ms = took > Math.max(MEASURED_AGAIN_MS, this.#slowestMs) ? await this.#fastestOf(input, took) : took
    this.#slowestMs = Math.max(this.#slowestMs, ms)
    return ms > MAX_CASE_MS ? { kind: 'slow', message: `${Math.round(ms)} ms for ${input.length} bytes`, input } : null
  }

  /**
   * Runs a slow case again: it may have waited for a garbage collection, or for a busy machine, whose other processes do not
   * count in its processor time.
   */
  async #fastestOf(input: Buffer, took: number): Promise<number> {
    const counts = Uint8Array.from(this.#options.counts)
    let fastest = took
    for (let left = 3; left > 0; left -= 1) {
      const [began, used] = [performance.now(), process.cpuUsage()]
      await this.#target.read(Buffer.from(input))
      const { user, system } = process.cpuUsage(used)
      fastest = Math.min(fastest, performance.now() - began, (user + system) / 1000)
    }
    this.#options.counts.set(counts)
    return fastest
  }

  /** The branches that the last case took in a new way, with the new bits. */
  #freshBits(): ReadonlyMap<number, number> {
    const fresh = new Map<number, number>()
    const { counts } = this.#options
    for (let word = 0; word < this.#words.length; word += 1) {
      if (this.#words[word] === 0) continue
      for (let branch = word * 4; branch < word * 4 + 4; branch += 1) {
        const bit = classOf(counts[branch] as number)
        if ((bit & ~(this.#seen[branch] as number)) !== 0) fresh.set(branch, bit)
      }
    }
    return fresh
  }

  #remember(fresh: ReadonlyMap<number, number>): void {
    for (const [branch, bit] of fresh) this.#seen[branch] = (this.#seen[branch] as number) | bit
  }

  #branches(): Uint32Array {
    const { counts } = this.#options
    const taken: number[] = []
    for (const [branch, count] of counts.entries()) if (count > 0) taken.push(branch)
    return Uint32Array.from(taken)
  }

  async #takes(input: Buffer, bits: ReadonlyMap<number, number>): Promise<boolean> {
    if ((await this.#judge(input)) !== null) return false
    const { counts } = this.#options
    for (const [branch, bit] of bits) if (classOf(counts[branch] as number) !== bit) return false
    return true
  }

  /** Leaves out parts of an input while `isGood` holds. */
  async #shortened(input: Buffer, isGood: (input: Buffer) => Promise<boolean>, trims = TRIMS): Promise<Buffer> {
    let short = input
    let left = trims
    for (let size = short.length >> 1; size >= 1 && left > 0; size >>= 1)
      for (let at = 0; at < short.length && left > 0; left -= 1) {
        const candidate = Buffer.concat([short.subarray(0, at), short.subarray(at + size)])
        if (await isGood(candidate)) short = candidate
        else at += size
      }
    return Buffer.from(short)
  }

  /** The fewest small inputs that take all branches that the corpus does not take. */
  #interesting(known: Uint8Array): Buffer[] {
    const taken = new Uint8Array(known)
    const chosen: Buffer[] = []
    for (const { input, branches } of this.#entries.toSorted((one, other) => one.input.length - other.input.length)) {
      if (input.length > MAX_KEPT_BYTES || branches.every((branch) => taken[branch] !== 0)) continue
      for (const branch of branches) taken[branch] = 1
      chosen.push(input)
    }
    return chosen
  }

  /** Bytes in use after a garbage collection, without the inputs that the fuzzer keeps. */
  #heap(): number {
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    const kept = this.#entries.reduce((sum, { input, branches }) => sum + input.length + branches.byteLength + 500, 0)
    return heapUsed + external - kept
  }
}

/** The class of a count: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127 and more, as one bit each. */
function classOf(count: number): number {
  if (count <= 3) return count === 0 ? 0 : 1 << (count - 1)
  if (count < 8) return 8
  if (count < 16) return 16
  if (count < 32) return 32
  return count < 128 ? 64 : 128
}

/** Findings with one signature have one cause, as far as one can tell. */
function signatureOf({ kind, message }: Finding): string {
  if (kind !== 'error') return kind
  const places = message.split('\n').filter((line) => /^\s+at /.test(line))
  const text = (message.split('\n')[0] ?? '').replaceAll(/\d+|"[^"]*"|'[^']*'/g, '#').slice(0, 100)
  return `${text} ${places.slice(0, 2).join()}`
}

let collector: (() => void) | null = null

/** Collects garbage at once, whatever flags the process has. */
export function collectGarbage(): void {
  if (!collector) {
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as () => void
  }
  collector()
  collector()
}
