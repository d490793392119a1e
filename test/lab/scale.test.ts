import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { RECORDED_COSTS } from './scale/costs.ts'
import { readCosts } from './scale/plans.ts'
import { gasUsd } from './scale/report.ts'

const root = resolve(import.meta.dirname, '../..')

function run(...flags: readonly string[]): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx/esm', 'test/lab/scale.ts', ...flags],
    { cwd: root, encoding: 'utf8', env: { PATH: process.env['PATH'] } },
  )
  return { status, out: stdout, err: stderr }
}

describe('npm run lab -- scale', () => {
  it('prints what is full first, for the cost of calls in a file of npm run lab -- bench', () => {
    const folder = mkdtempSync(join(tmpdir(), 'scale-'))
    try {
      const costs = join(folder, 'bench.json')
      const figures = [
        { name: '402', median: 150, loop: 140 },
        { name: 'paid', median: 12_000, loop: 10_000 },
      ]
      writeFileSync(costs, JSON.stringify({ figures }))
      const found = run('--plan', '10', '--costs', costs, '--processes', '1', '--pending', '9999', '--seconds', '20')
      expect([found.status, found.err]).to.deep.equal([0, ''])
      // 0.8 of a second per second, divided by 10.14 ms.
      expect(found.out).to.match(/Full first \(80 %\) at (7[789]|80)[.\d]* paid calls a second: event loops/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('names a flag that it cannot use, and a plan that does not exist', () => {
    for (const [flags, message] of [
      [['--rate', 'ten'], '--rate takes a number, not "ten".'],
      [['--plan', '5'], 'There is no plan 5. The plans are 10, 1000, 100000.'],
    ] as const)
      expect(run(...flags)).to.deep.equal({ status: 2, out: '', err: `${message}\n` })
  })

  it('refuses a case that was not measured', () => {
    expect(() => readCosts(RECORDED_COSTS, 'free lunch')).to.throw('has no figure for the case "free lunch"')
  })

  it('reads which part of a call the event loop spends, and assumes it if the file does not say', () => {
    const folder = mkdtempSync(join(tmpdir(), 'costs-'))
    const costsOf = (...figures: readonly object[]) => {
      const file = join(folder, 'costs.json')
      writeFileSync(file, JSON.stringify({ figures }))
      return readCosts(file)
    }
    try {
      const assumed = costsOf({ name: '402', median: 100 }, { name: 'paid', median: 1_000 })
      expect(assumed.unpaid).to.deep.equal({ loop: 0.0001, others: 0 })
      expect(assumed.paid).to.deep.equal({ loop: 0.0006, others: 0.0004 })
      const measured = costsOf({ name: '402', median: 100, loop: 90 }, { name: 'paid', median: 1_000, loop: 250 })
      expect(measured.unpaid).to.deep.equal({ loop: 0.00009, others: 0.00001 })
      expect(measured.paid).to.deep.equal({ loop: 0.00025, others: 0.00075 })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('counts gas in US dollars', () => {
    expect(gasUsd(50_616, { gasGwei: 0.005, coinUsd: 3_000, bytesPerPayment: 0 })).to.be.closeTo(0.00075924, 1e-9)
  })
})
