/**
 * How V8 runs in a gateway process: with how many threads for its garbage collections and its compiler, and with how much
 * memory for new objects.
 *
 * Node starts four threads, however many cores there are. On two cores the four compete with the event loop whenever a
 * computation makes garbage, and calls wait.
 *
 * V8 gives new objects 1 MB at first, and up to 16 MB while many of them live long, as at a start. It takes the memory back
 * when it collects in a process that has nothing to do. Calls never win it back, because little of what they make lives long:
 * collections come more often, and a 402 costs nearly twice as much, for as long as the process lives.
 */
import { availableParallelism } from 'node:os'
import { processEnvironment } from './config/environment.ts'

const MOST_THREADS = 4
/** V8's own maximum. */
const NEW_SPACE_MEGABYTES = 16

/**
 * Returns the command-line flags for each of `processes` gateway processes: those of this process, the memory for new objects,
 * and a number of threads that leaves a core to the event loop. An operator who sets one of them, in NODE_OPTIONS say, has
 * the last word.
 *
 * @example v8Flags(1) // on 2 cores ['--v8-pool-size=1', '--min-semi-space-size=16'], on 8 cores '--v8-pool-size=4'
 */
export function v8Flags(
  processes: number,
  cores = availableParallelism(),
  { execArgv, nodeOptions = '' } = { execArgv: process.execArgv, nodeOptions: processEnvironment()['NODE_OPTIONS'] },
): readonly string[] {
  const isSet = (flag: string): boolean => [...execArgv, nodeOptions].some((given) => given.includes(flag))
  const flags = [...execArgv]
  const threads = Math.max(1, Math.min(MOST_THREADS, Math.floor(cores / processes) - 1))
  if (!isSet('--v8-pool-size')) flags.push(`--v8-pool-size=${threads}`)
  // Either of the two bounds.
  if (!isSet('-semi-space-size')) flags.push(`--min-semi-space-size=${NEW_SPACE_MEGABYTES}`)
  return flags
}
