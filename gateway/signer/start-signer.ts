/**
 * Starts the signer. It gets the keys through a pipe, so that they are in no environment that other processes inherit.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Environment } from '../config/environment.ts'
import { ConfigError } from '../config/config-error.ts'
import { heldBySigner, withoutKeys } from '../config/settlement.ts'

/** A message from the launcher to the signer. */
export interface SignerTask {
  readonly environment: Environment
  /** Path of the socket to listen at. */
  readonly socket: string
}

/** A message from the signer to the launcher. */
export type SignerReport = { readonly ready: true } | { readonly failed: string; readonly isConfig: boolean }

export interface StartedSigner {
  /** The variables without the private keys. */
  readonly environment: Environment
  /** Path of the socket at which the signer answers. */
  readonly socket: string
  /** Ends the signer. */
  stop(): void
}

const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 10_000

/**
 * Starts a signer and restarts it whenever it ends, unless the operator runs one at SIGNER_SOCKET.
 *
 * @param onFailed called if the keys are not valid; the gateway itself reports other errors of the configuration
 * @throws ConfigError if a signer holds the keys, and nothing says where it is
 */
export function startSigner(environment: Environment, onFailed: (message: string) => void): StartedSigner {
  const own = environment['SIGNER_SOCKET']?.trim()
  if (own) return { environment: withoutKeys(environment), socket: own, stop: () => {} }
  const held = heldBySigner(environment)
  if (held.length > 0)
    throw new ConfigError([
      `${held.join(' and ')} ${held.length === 1 ? 'is' : 'are'} left to a signer, and SIGNER_SOCKET does not say where it is. Set SIGNER_SOCKET to its socket, or write the keys instead of the word signer.`,
    ])
  const socket = newSocket()
  let child: ChildProcess
  let isStopped = false
  let delay = FIRST_DELAY_MS
  const start = (): void => {
    if (isStopped) return
    const signer = fork(process.argv[1] as string, ['--as', 'signer'])
    child = signer
    const task: SignerTask = { environment, socket }
    // Without a channel the process could not be started: `error` follows.
    if (signer.connected) signer.send(task, () => {})
    signer.on('message', (report: SignerReport) => {
      if ('ready' in report) return
      isStopped = true
      if (!report.isConfig) onFailed(report.failed)
    })
    const startAgain = (): void => {
      // Unreferenced: the launcher may end meanwhile.
      setTimeout(start, delay).unref()
      delay = Math.min(2 * delay, MAX_DELAY_MS)
    }
    signer.once('exit', startAgain)
    // A process that the system could not start has no exit. Any other error leaves the signer running.
    signer.on('error', () => {
      if (signer.pid === undefined) startAgain()
    })
  }
  start()
  return {
    environment: withoutKeys(environment),
    socket,
    stop() {
      isStopped = true
      // The signer removes its socket and ends.
      if (child.connected) child.disconnect()
    },
  }
}

/** Removes the socket of a signer, and its folder if that is empty then. */
export function removeSocket(socket: string): void {
  if (process.platform === 'win32') return
  rmSync(socket, { force: true })
  try {
    rmdirSync(dirname(socket))
  } catch {
    // Another process was faster, or the folder holds other files.
  }
}

/** A path in a new folder that only this user can enter. */
function newSocket(): string {
  if (process.platform === 'win32') return `\\\\.\\pipe\\tollgate-signer-${crypto.randomUUID()}`
  return join(mkdtempSync(join(tmpdir(), 'tollgate-signer-')), 'socket')
}
