/**
 * `npm run model -- 10000 [seed [shrink]] [strict]`: many random runs. Prints what they did and exits with 1 if an invariant was broken.
 */
import { prove } from './prove.ts'

const words = process.argv.slice(2)
const isStrict = words.includes('strict')
const [runs = '1000', seed, shrink] = words.filter((word) => word !== 'strict')
const PROGRESS_RUNS = 500
const began = performance.now()
const { figures, failure } = await prove(Number(runs), {
  ...(seed === undefined ? {} : { seed: Number(seed) }),
  shrink: shrink === 'shrink',
  isStrict,
  onRun: (count) => void (count % PROGRESS_RUNS === 0 && process.stdout.write(`${count} of ${runs} runs\n`)),
})
for (const [name, value] of Object.entries(figures)) process.stdout.write(`${name.padEnd(28)} ${value}\n`)
process.stdout.write(`${'seconds'.padEnd(28)} ${((performance.now() - began) / 1000).toFixed(1)}\n`)
if (failure) process.stdout.write(`\n${failure}\n`)
process.exitCode = failure ? 1 : 0
