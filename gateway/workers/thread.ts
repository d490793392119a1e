/** A worker thread: it runs the functions that `context.work` sends, and relays their questions to the event loop. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import type { BodyRules } from '../catalog/large-body.ts'
import type { Ask, WorkTools } from '../plugin/plugin.ts'
import { transferOf } from '../plugin/transfer.ts'
import { type PackedError, packError, packErrorText, unpackError } from './errors.ts'

/** A message from the pool to a thread. The first message that waits in the port is the input of the function. */
export interface Assignment {
  /** The address of the module whose default export to run. */
  readonly module: string
  readonly port: MessagePort
}

/** A thread's message to its parent when it has started: its folder in /proc, or null. */
export type ThreadStarted = string | null

/** A thread's messages to the port of an assignment: questions, and at the end one outcome. */
export type FromThread =
  | { readonly kind: 'question'; readonly id: number; readonly operation: string; readonly input: unknown }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'error'; readonly error: PackedError }

/** The pool's messages to the port of an assignment: the input first, then answers. */
export type ToThread =
  | { readonly kind: 'input'; readonly input: unknown; readonly body?: SentBody }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly error: PackedError }

/** A large body that the thread parses, because it was not read on the event loop. */
export interface SentBody {
  /** The property of the input that is the input of the call. Null if the whole input is. */
  readonly property: string | null
  readonly bytes: Uint8Array
  readonly rules: BodyRules
}

/** The input of the function, with the body in its place. */
async function inputOf({ input, body }: Extract<ToThread, { kind: 'input' }>): Promise<unknown> {
  if (!body) return input
  // Imported here, because few functions need it, and a thread starts in half the time without.
  const { checkLargeBody } = await import('../catalog/large-body-check.ts')
  const { property, bytes, rules } = body
  const owner = property === null ? input : (input as Record<string, unknown>)[property]
  Object.assign(owner as object, { body: checkLargeBody(bytes, rules).checked.value })
  return input
}

async function runAssignment({ module, port }: Assignment): Promise<void> {
  const post = (message: FromThread, transfer: readonly ArrayBuffer[] = []): void =>
    port.postMessage(message, [...transfer])
  try {
    const first = receiveMessageOnPort(port)?.message as Extract<ToThread, { kind: 'input' }>
    const { default: work } = (await import(module)) as { readonly default?: unknown }
    if (typeof work !== 'function') throw new TypeError(`${module} has no function as its default export.`)
    const value = await (work as (input: unknown, tools: WorkTools) => unknown)(await inputOf(first), {
      ask: relay(port, post),
    })
    post({ kind: 'value', value }, transferOf(value))
  } catch (error) {
    try {
      post({ kind: 'error', error: packError(error) })
    } catch {
      post({ kind: 'error', error: packErrorText(error) })
    }
  }
}

/** Creates an `ask` that sends its questions through the port. */
function relay(port: MessagePort, post: (message: FromThread) => void): Ask {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>()
  let count = 0
  port.on('message', (message: ToThread) => {
    if (message.kind === 'input') return
    const asked = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.kind === 'answer') asked?.resolve(message.value)
    else asked?.reject(unpackError(message.error))
  })
  return (operation: string, input?: unknown) =>
    new Promise((resolve, reject) => {
      count += 1
      post({ kind: 'question', id: count, operation, input })
      waiting.set(count, { resolve, reject })
    })
}

/** The folder of this thread in /proc; null where the system has none. */
function threadFolder(): string | null {
  try {
    return `/proc/${readlinkSync('/proc/thread-self')}`
  } catch {
    return null
  }
}

/** How far the event loop, which is at 0, goes ahead of this thread. At 19 a thread gets what all others leave. */
const NICENESS = 5

/**
 * Lets the event loop go first where both need a core, so that a call waits less for the computations of others. Only
 * Linux gives each thread a priority of its own; elsewhere this would lower that of the whole process.
 */
function lowerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(NICENESS)
  } catch {
    // A sandbox may forbid it. The thread then competes with the event loop, and works all the same.
  }
}

lowerPriority()
parentPort?.postMessage(threadFolder() satisfies ThreadStarted, [])
parentPort?.on('message', (assignment: Assignment) => void runAssignment(assignment))
