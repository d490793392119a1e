/** Keeps plugins, as far as one process can, from ending it or bending it for everybody else. */
import { sep } from 'node:path'
import type { Logger } from 'pino'

/**
 * From here on nothing can be added to the prototype of all objects, `process.exit` throws, and an error that nobody
 * catches is logged: what a promise left behind, and what code in `folder` throws on its own time, as in a timer. Any
 * other uncaught error still ends the process, through `exit`.
 */
export function guardProcess(folder: string, exit: (code: number) => never, log: Logger): void {
  process.exit = () => {
    throw new Error('the process is not for a plugin to end')
  }
  Object.preventExtensions(Object.prototype)
  // A plugin that forgot to wait for something must not end the calls of all others.
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'a failure nobody waited for'))
  process.on('uncaughtException', (error) => {
    if (isBegunIn(folder, error)) return log.error({ err: error }, 'a failure nobody caught')
    log.fatal({ err: error }, 'an error nobody caught')
    exit(1)
  })
}

/** True where the outermost code on the stack, beside Node's own, lies in the folder: then nothing of ours was under way. */
function isBegunIn(folder: string, error: unknown): boolean {
  const frames = error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : []
  const outermost = frames.findLast((line) => !/node:|<anonymous>\)?$|\bnative\b/.test(line))
  return outermost?.includes(folder + sep) === true
}
