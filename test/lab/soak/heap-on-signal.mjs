/**
 * Loaded into a process with `--import`: on SIGUSR2 the process collects garbage and prints "heap <pid> <bytes>". Threads
 * of the process have heaps of their own, which do not count.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

if (isMainThread)
  process.on('SIGUSR2', () => {
    setFlagsFromString('--expose-gc')
    runInNewContext('gc')()
    console.log(`heap ${process.pid} ${process.memoryUsage().heapUsed}`)
  })
