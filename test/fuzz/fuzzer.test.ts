import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { instrument } from '../lab/fuzz/instrument.ts'
import { fuzzTarget } from '../lab/fuzz/loop.ts'
import { fuzz, type TargetReport } from '../lab/fuzz/run.ts'
import { TARGETS } from '../fixtures/fuzz/planted-faults.ts'

const root = resolve(import.meta.dirname, '../..')
const module = join(root, 'test/fixtures/fuzz/planted-faults.ts')

describe('the fuzzer', function () {
  // Only the hang is bounded by time. A busy machine makes everything else late.
  this.timeout(600_000)
  let corpus: string
  beforeEach(() => {
    corpus = mkdtempSync(join(tmpdir(), 'tollgate-fuzz-'))
  })
  afterEach(() => rmSync(corpus, { recursive: true }))

  const run = async (target: string, cases: number, hangMs = 300_000): Promise<TargetReport> => {
    const options = { module, targets: [target], corpus, cases, seconds: 600, seed: 1, hangMs, heapMegabytes: 128 }
    const [report] = await fuzz(options, () => {})
    return report as TargetReport
  }

  it('finds a fault behind five conditions by the branches that inputs take, and keeps its shortest input', async () => {
    const [throws] = TARGETS.filter(({ name }) => name === 'throws')
    const blind = { cases: 300_000, seconds: 600, seed: 1, corpus: [], counts: new Uint8Array(0), before: () => {} }
    expect((await fuzzTarget(throws as never, blind)).findings, 'without counting branches').to.deep.equal([])
    const { findings, kept } = await run('throws', 300_000)
    expect(findings.map(({ kind }) => kind)).to.deep.equal(['error'])
    expect(findings[0]?.message).to.include('the planted fault')
    expect(findings[0]?.input).to.deep.equal(Buffer.from('qX7w\x9d', 'latin1'))
    expect(readFileSync(findings[0]?.file ?? '')).to.deep.equal(findings[0]?.input)
    expect(kept, 'inputs on the way there').to.be.above(0)
    const files = readdirSync(join(corpus, 'throws'))
    expect(files.filter((name) => name.startsWith('finding-'))).to.have.length(1)
    // The next run begins where this one ended.
    const again = await run('throws', 50)
    expect(again.findings).to.have.length(1)
    expect(again.newBranches).to.equal(0)
  })

  for (const [target, kind, cases] of [
    ['is-slow', 'slow', 10],
    ['leaks', 'growth', 2_000],
    ['hangs', 'hang', 2_000],
    ['exhausts', 'crash', 2_000],
  ] as const)
    it(`reports a parser that ${target.replace('-', ' ')} as ${kind}`, async () => {
      const { findings } = await run(target, cases, kind === 'hang' ? 5_000 : undefined)
      expect(findings.map((each) => each.kind)).to.deep.equal([kind])
      if (kind !== 'growth') expect(findings[0]?.input.length).to.be.above(20)
    })

  it('finds nothing in a sound parser, and exits with 0', () => {
    const { status, stdout } = command('sound', 500)
    expect(stdout).to.match(/\d+ cases, slowest [\d.]+ ms, 0 findings/)
    expect(status).to.equal(0)
  })

  it('exits with 1 after a finding, and says where its input is', () => {
    const { status, stdout } = command('leaks', 2_000)
    expect(stdout).to.match(/growth: the heap grew from \d+ to \d+ bytes/)
    expect(stdout).to.include(join(corpus, 'leaks', 'finding-'))
    expect(status).to.equal(1)
  })

  it('exits with 2 for a target that does not exist, and lists those that do', () => {
    const { status, stderr } = command('nothing', 1)
    expect(status).to.equal(2)
    expect(stderr).to.include('throws')
  })

  function command(target: string, cases: number) {
    const options = [
      '--module',
      module,
      '--corpus',
      corpus,
      '--target',
      target,
      '--cases',
      String(cases),
      '--seed',
      '1',
    ]
    return spawnSync(process.execPath, ['--import', 'tsx/esm', 'test/lab/fuzz.ts', ...options], {
      cwd: root,
      encoding: 'utf8',
    })
  }
})

describe('the counting of branches', () => {
  const path = join(root, 'gateway', 'x.ts')

  /** Runs instrumented code and returns its result and the counts. */
  function ran(code: string): { readonly result: unknown; readonly counts: readonly number[] } {
    const counter = { branches: 0 }
    const counted = instrument(code, path, counter)
    const counts = new Uint8Array(counter.branches)
    // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- The code under test is text.
    const result: unknown = new Function('__branchCounts', counted)(counts)
    return { result, counts: [...counts] }
  }

  it('does not change what code does', () => {
    for (const [code, result] of [
      ['const f = (x) => ({ a: x ? 1 : 2 }); return [f(1).a, f(0).a]', [1, 2]],
      ['let s = ""; for (const c of "abc") if (c !== "b") s += c; return s', 'ac'],
      ['if (1) if (0) return 1; else return 2; return 3', 2],
      ['switch (2) { case 1: return "a"; case 2: case 3: return "b"; default: return "c" }', 'b'],
      ['function f() { "use strict"; return this } return f()', undefined],
      ['try { null.x } catch (e) { return e instanceof TypeError && !(0 || 0) }', true],
      ['const o = { a: null }; return o?.a?.b ?? (o.a && 1) ?? [0 || "z"][0]', 'z'],
      ['let n = 0; do n += 1; while (n < 5); return n', 5],
      [
        'class A { constructor() { this.x = 1 } } class B extends A { constructor() { super(); this.y = 2 } } return new B().y',
        2,
      ],
    ] as const)
      expect(ran(code).result, code).to.deep.equal(result)
  })

  it('tells branches apart', () => {
    const code = (x: number): string => `const x = ${x}; if (x > 1) { return 1 } return x === 1 ? 2 : 3`
    const [two, one, none] = [2, 1, 0].map((x) => ran(code(x)).counts.join())
    expect(new Set([two, one, none]).size).to.equal(3)
  })

  it('makes import.meta say where the source is', () => {
    const code = 'export const at = [import.meta.dirname, import.meta.filename, import.meta.url]'
    expect(instrument(code, path, null)).to.equal(
      `export const at = [${[join(root, 'gateway'), path, `file://${path}`].map((each) => JSON.stringify(each)).join(', ')}]`,
    )
  })
})
