/**
 * How many threads V8 has in a process for its garbage collections and its compiler. Node starts four, however many cores
 * there are. On two cores the four compete with the event loop whenever a computation makes garbage, and calls wait.
 */
import { availableParallelism } from 'node:os'
import { processEnvironment } from './config/environment.ts'

const MOST = 4
const FLAG = '--v8-pool-size'

/**
 * Returns the command-line flags for each of `processes` gateway processes: those of this process, and one that leaves a
 * core to the event loop. An operator who sets `--v8-pool-size`, in NODE_OPTIONS say, has the last word.
 *
 * @example v8Flags(1) // on 2 cores ['--v8-pool-size=1'], on 8 cores ['--v8-pool-size=4']
 */
export function v8Flags(
  processes: number,
  cores = availableParallelism(),
  { execArgv, nodeOptions = '' } = { execArgv: process.execArgv, nodeOptions: processEnvironment()['NODE_OPTIONS'] },
): readonly string[] {
  if ([...execArgv, nodeOptions].some((given) => given.includes(FLAG))) return execArgv
  const threads = Math.max(1, Math.min(MOST, Math.floor(cores / processes) - 1))
  return [...execArgv, `${FLAG}=${threads}`]
}
