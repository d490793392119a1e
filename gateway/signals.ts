/**
 * Signals, as the process that the operator started understands them. SIGTERM and SIGINT stop the gateway, and a second
 * one ends it at once. SIGHUP means two things: that the terminal is gone, which ends a gateway that was started in it,
 * or that the operator wants the catalog to be read again.
 */
import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { processEnvironment } from './config/environment.ts'

export interface SignalHandlers {
  /** Lets running calls finish, then ends. May be called more than once. */
  stop(): void
  /** Ends without waiting for anything. */
  stopAtOnce(): void
  reload(): void
}

/** How long everything may take to stop. What still runs then is killed; the journal survives that. */
export const STOP_MS = 15_000
/** npm passes on a signal that the terminal has also sent to us. Both together count as one. */
const FORWARDED_MS = 300

/** Whether this process was started in a terminal. One with nohup, setsid, systemd or a container is not. */
const isAttached = [0, 1, 2].some((fd) => isatty(fd)) && hasTerminal()
const isRunByNpm = processEnvironment()['npm_lifecycle_event'] !== undefined

/** Whether a SIGHUP now says that the terminal in which this process was started is gone. */
export function isHungUp(): boolean {
  // Windows sends it when the console closes, and for no other reason.
  return process.platform === 'win32' || (isAttached && !hasTerminal())
}

/** Whether this process has a controlling terminal that still exists. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/** Calls the handlers when signals arrive. */
export function onSignals({ stop, stopAtOnce, reload }: SignalHandlers): void {
  let stoppedAt: number | null = null
  const onStop = (): void => {
    if (stoppedAt === null) {
      stoppedAt = performance.now()
      return stop()
    }
    if (!isRunByNpm || performance.now() - stoppedAt > FORWARDED_MS) stopAtOnce()
  }
  process.on('SIGINT', onStop)
  process.on('SIGTERM', onStop)
  // A terminal that closes may send it several times, so that it never counts as a second signal.
  process.on('SIGHUP', () => (isHungUp() ? stop() : reload()))
  // Writing to a closed terminal fails, and must not end the process before it has stopped.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}
