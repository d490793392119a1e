/** Protects the process from plugins, as far as that is possible inside one process. */
import { sep } from 'node:path'
import type { Logger } from 'pino'

/**
 * Makes `process.exit` throw, prevents changes to Object.prototype, and logs unhandled rejections instead of ending the
 * process. An uncaught error is logged too if code in `folder` began it, for example in a timer. Any other uncaught error
 * ends the process through `exit`.
 */
export function guardProcess(folder: string, exit: (code: number) => never, log: Logger): void {
  process.exit = () => {
    throw new Error('A plugin must not end the process.')
  }
  Object.preventExtensions(Object.prototype)
  // A plugin that forgets to await a promise must not end the calls of other products.
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'unhandled rejection'))
  process.on('uncaughtException', (error) => {
    if (isBegunIn(folder, error)) return log.error({ err: error }, 'uncaught error of a plugin')
    log.fatal({ err: error }, 'uncaught error')
    exit(1)
  })
}

/** Returns true if the outermost frame outside Node is in the folder: then no code of the gateway was running. */
function isBegunIn(folder: string, error: unknown): boolean {
  const frames = error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : []
  const outermost = frames.findLast((line) => !/node:|<anonymous>\)?$|\bnative\b/.test(line))
  return outermost?.includes(folder + sep) === true
}
