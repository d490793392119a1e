/** Protects the process from plugins, as far as that is possible inside one process. */
import type { Logger } from 'pino'

/**
 * Makes `process.exit` throw, prevents changes to Object.prototype, and logs unhandled rejections instead of ending the
 * process. An uncaught error is logged too if code of a plugin began it, for example in a timer. Any other uncaught error
 * ends the process through `exit`. `isOfPlugin` tells by a line of the stack.
 */
export function guardProcess(isOfPlugin: (frame: string) => boolean, exit: (code: number) => never, log: Logger): void {
  process.exit = () => {
    throw new Error('A plugin must not end the process.')
  }
  Object.preventExtensions(Object.prototype)
  // A plugin that forgets to await a promise must not end the calls of other products.
  process.on('unhandledRejection', (error) => log.error({ err: error }, 'unhandled rejection'))
  process.on('uncaughtException', (error) => {
    if (isOfPlugin(outermostFrame(error))) return log.error({ err: error }, 'uncaught error of a plugin')
    log.fatal({ err: error }, 'uncaught error')
    exit(1)
  })
}

/** Returns the outermost frame outside Node. If it is of a plugin, no code of the gateway was running. */
function outermostFrame(error: unknown): string {
  const frames = error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : []
  return frames.findLast((line) => !/node:|<anonymous>\)?$|\bnative\b/.test(line)) ?? ''
}
