/**
 * `npm run lab -- claims`: runs the benches whose figures the methodology page shows, one after another, saves their files
 * and says which claims have changed. `--check` saves nothing, and exits with 1 if a figure differs by more than NOISE.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setInterval } from 'node:timers'
import type { Claim } from '../../schemas/types.d.ts'
import { differences, type FiguresFile, NOISE } from './claim.ts'
import { flag, newFolder, readOptions, refuse, root, say, texts } from './experiment.ts'

const RECORDED = join(root, '../shared/data')
/** How often a bench that is running is named. */
const PROGRESS_MS = 60_000

interface Bench {
  readonly name: string
  /** The recordings that it takes as words. */
  readonly recordings: readonly string[]
  /** What it cannot run without, below the recorded data. */
  readonly needs: readonly string[]
  readonly files: readonly string[]
}

const REGIME = [
  'regime/bitfinex_btcusd_1m_2017.csv.gz',
  'regime/bitfinex_ethusd_1m_2017.csv.gz',
  'regime/binance_ethusdt_1h_2022-2024.csv.gz',
  'regime/binance_btcusdt_1m_2024-12.csv.gz',
  'regime/binance_btcusdt_15m_2025.csv.gz',
  'exchanges/bars/coinbase_BTC-USD_5m_2026-01-26_2026-04-22.csv',
]

const BENCHES: readonly Bench[] = [
  { name: 'regime', recordings: REGIME, needs: REGIME, files: ['plugins/regime/regime-measurements.json'] },
  {
    name: 'products',
    recordings: [],
    needs: ['l2', 'spread', 'bars', 'ledgers', 'regime', 'exchanges'],
    files: [
      'plugins/cost/cost-measurements.json',
      'plugins/qc/quality-measurements.json',
      'plugins/audit/audit-measurements.json',
    ],
  },
  {
    name: 'datasets',
    recordings: [],
    needs: ['funding', 'agents'],
    files: ['plugins/funding/funding-measurements.json', 'plugins/directory/directory-measurements.json'],
  },
  { name: 'potus', recordings: [], needs: ['potus'], files: ['plugins/potus/data/potus-measurements.json'] },
]

/** Runs a bench and says what it found. Returns the number of figures that differ. Saves its files unless it only checks. */
async function measure({ name, recordings, files }: Bench, isCheck: boolean): Promise<number> {
  const folder = newFolder()
  await run(name, ['--write', '--into', folder, ...recordings.map((path) => join(RECORDED, path))])
  let count = 0
  for (const file of files) {
    const [path, saved] = [join(folder, file), join(root, file)]
    if (!existsSync(path)) throw new Error(`${name} wrote no ${file}`)
    const [old, now] = [readFigures(saved), readFigures(path)]
    const found = differences(old, now)
    say(`${file}: ${now.claims.length} claims, ${found.length} figures differ.`)
    for (const line of [...claimChanges(old.claims, now.claims), ...(isCheck ? found : [])]) say(`  ${line}`)
    if (!isCheck) copyFileSync(path, saved)
    count += found.length
  }
  return count
}

const readFigures = (path: string): FiguresFile => JSON.parse(readFileSync(path, 'utf8')) as FiguresFile

/** Runs an experiment in a process of its own, and says every minute that it is still running. */
async function run(name: string, words: readonly string[]): Promise<void> {
  const begun = performance.now()
  const seconds = (): string => `${Math.round((performance.now() - begun) / 1000)} s`
  say(`${name}: running`)
  const timer = setInterval(() => say(`${name}: still running after ${seconds()}`), PROGRESS_MS)
  const child = spawn(process.execPath, ['--import', 'tsx/esm', join(root, 'test/lab/main.ts'), name, ...words], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await once(child, 'close')
  clearInterval(timer)
  say(`${name}: done after ${seconds()}`)
}

/** A line for each claim that is new, gone, or measured otherwise. */
function claimChanges(old: readonly Claim[], now: readonly Claim[]): string[] {
  const verdict = ({ measured, met }: Claim): string => `${measured} (${met ? 'met' : 'not met'})`
  const before = new Map(old.map((claim) => [claim.claimed, claim]))
  const kept = new Set(now.map(({ claimed }) => claimed))
  const gone = old.filter(({ claimed }) => !kept.has(claimed)).map(({ claimed }) => `no longer claimed: ${claimed}`)
  const changed = now.flatMap((claim) => {
    const was = before.get(claim.claimed)
    if (!was) return [`new: ${claim.claimed}: ${verdict(claim)}`]
    return verdict(was) === verdict(claim) ? [] : [`${claim.claimed}: ${verdict(claim)}, was ${verdict(was)}`]
  })
  return [...gone, ...changed]
}

const { only, check } = readOptions({
  only: texts('BENCH', `only this bench: ${BENCHES.map(({ name }) => name).join(', ')}`),
  check: flag(`save nothing; exit with 1 if a figure differs by more than ${NOISE * 100}%, times taken apart`),
}).values
const unknown = only.filter((name) => BENCHES.every((bench) => bench.name !== name))
if (unknown.length > 0) refuse(`There is no bench ${unknown.join(' or ')}.`)

let differing = 0
for (const bench of BENCHES.filter(({ name }) => only.length === 0 || only.includes(name))) {
  const absent = bench.needs.filter((path) => !existsSync(join(RECORDED, path)))
  if (absent.length > 0) say(`${bench.name}: skipped, because ${absent.join(' and ')} is not in ../shared/data.`)
  else differing += await measure(bench, check)
}
process.exitCode = check && differing > 0 ? 1 : 0
