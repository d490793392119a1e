/** `npm run lab -- model`: many random runs. Prints what they did and exits with 1 if an invariant was broken. */
import { flag, number, readOptions, say, sayTable } from '../../lab/experiment.ts'
import { prove } from './prove.ts'

const { runs, seed, shrink, strict } = readOptions({
  runs: number('N', 'how many', 1_000, 1),
  seed: number('N', 'repeat the choices of an earlier run', null),
  shrink: flag('look for the shortest run that fails'),
  strict: flag('only our own transactions buy something'),
}).values
const PROGRESS_RUNS = 500
const began = performance.now()
const { figures, failure } = await prove(runs, {
  ...(seed === null ? {} : { seed }),
  shrink,
  isStrict: strict,
  onRun: (count) => void (count % PROGRESS_RUNS === 0 && say(`${count} of ${runs} runs`)),
})
const seconds = ((performance.now() - began) / 1000).toFixed(1)
sayTable(Object.entries({ ...figures, seconds }).map(([name, value]) => [name, value]))
if (failure) say(`\n${failure}`)
process.exitCode = failure ? 1 : 0
