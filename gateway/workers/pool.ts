/**
 * Runs pure functions of plugins in worker threads, so that long computations do not delay other calls. Functions of
 * paid calls wait in one queue, all others in a second one. An idle thread takes paid work first, and free work never
 * occupies all threads.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { BodyRules } from '../catalog/large-body.ts'
import { IS_BUILT } from '../config/project-root.ts'
import { ServiceError, Unavailable } from '../errors.ts'
import type { Queue } from '../plugin/catalog.ts'
import type { Input, PluginContext, WorkOptions } from '../plugin/plugin.ts'
import { type UnreadBody, unreadBodyOf } from '../plugin/unread-body.ts'
import { isObject } from '../validation/json.ts'
import { compiledName } from '../plugin-code/compile.ts'
import { runningOf } from './timeout.ts'
import { packError, packErrorText, unpackError } from './errors.ts'
import type { Assignment, FromThread, ThreadStarted, ToThread } from './thread.ts'

export interface WorkerPoolOptions {
  /**
   * How many threads run at most. The default leaves one core to the event loop, but is at least two: with one, a short
   * computation would wait for a long one.
   */
  readonly threads?: number
  /** How many functions may wait in each queue. */
  readonly maxWaiting?: number
  /** How long a function may wait, in seconds. */
  readonly maxWaitSeconds?: number
  /** The JavaScript heap of a thread in megabytes. Buffers are not part of it. */
  readonly heapMegabytes?: number
}

export interface WorkerPool {
  /** Implements `context.work`. Without the option `call`, as in a job, functions wait in the queue of free work. */
  readonly work: PluginContext['work']
  /** Runs a function that waits in the given queue. */
  workIn<Out = unknown>(queue: Queue, module: URL, input: unknown, options?: WorkOptions): Promise<Out>
  /** The largest number of threads. */
  readonly size: number
  /** The number of threads that are alive. */
  readonly threadCount: number
  /** Ends every thread. Functions that run or wait are rejected. */
  close(): Promise<void>
}

const MAX_WAITING = 64
const MAX_WAIT_SECONDS = 23
const HEAP_MEGABYTES = 1024
const TIMEOUT_SECONDS = 60
const RETRY_AFTER_SECONDS = 5
/** In order of priority. */
const QUEUES: readonly Queue[] = ['paid', 'free']
const OUT_OF_MEMORY = 'ERR_WORKER_OUT_OF_MEMORY'

/**
 * The first script of a thread. From TypeScript sources it must register tsx, because a thread does not inherit it. The
 * address holds for this file and for the bundle that it is built into.
 */
const ENTRY = new URL(`../workers/${IS_BUILT ? 'thread.js' : 'from-source.mjs'}`, import.meta.url)

/**
 * Creates a pool. It starts a thread when a function needs one and none is free, and keeps it for later functions.
 * Threads do not keep the process alive, but a running function does.
 */
export function createWorkerPool(options: WorkerPoolOptions = {}): WorkerPool {
  return new Pool(options)
}

/**
 * One thread. It runs one function at a time; while that waits for a product that it asks, also the functions which
 * that product runs for the same call.
 */
class Thread {
  readonly worker: Worker
  readonly tasks = new Set<Task>()
  /** Resolves when it has started. Stays pending if it ends before that. */
  readonly started: Promise<void>
  readonly #opened = performance.now()
  /** How long its start took. Null until it has started. */
  #startMs: number | null = null
  /** Its folder in /proc. Null until it has started, and where the system has none. */
  #folder: string | null = null
  /** The value of `starvedMs` when it had started. */
  #starvedInStartMs = 0

  constructor(worker: Worker) {
    this.worker = worker
    this.started = new Promise((resolve) => {
      worker.once('message', (folder: ThreadStarted) => {
        this.#folder = folder
        this.#startMs = performance.now() - this.#opened
        this.#starvedInStartMs = this.starvedMs()
        resolve()
      })
    })
  }

  /** How many milliseconds it could run no function, because it was starting or had no core. */
  readonly lostMs = (): number =>
    this.#startMs === null
      ? performance.now() - this.#opened
      : this.#startMs + this.starvedMs() - this.#starvedInStartMs

  /** How many milliseconds it was ready to run and had no core, since it was opened. Only Linux tells; elsewhere 0. */
  readonly starvedMs = (): number => {
    if (this.#folder === null) return 0
    try {
      // Nanoseconds on a core, nanoseconds of waiting for one, and how often it had one.
      const [, waited = ''] = readFileSync(`${this.#folder}/schedstat`, 'utf8').split(' ')
      return Number(waited) / 1e6
    } catch {
      return 0
    }
  }
}

/** One function to run. */
class Task {
  readonly module: URL
  readonly options: WorkOptions
  readonly queue: Queue
  readonly outcome: Promise<unknown>
  /** Aborts when a signal of the caller does. */
  readonly signal: AbortSignal
  /** Our end of the channel. */
  readonly port: MessagePort
  /** The end for the thread. The input waits in it. */
  readonly threadPort: MessagePort
  thread: Thread | null = null
  /** The number of questions that are not answered yet. */
  questions = 0
  /** Ends the wait, or the run. */
  timer: NodeJS.Timeout | undefined
  /** Called when the wait is over. */
  endWait: (() => void) | undefined
  /**
   * Called when the function has ended. Until then, time that its thread loses does not count towards the call's
   * timeout.
   */
  endLoss: (() => void) | undefined
  #resolve!: (value: unknown) => void
  #reject!: (error: unknown) => void

  /** Copies the input, so that the caller may change it while the task waits. Throws if it cannot be copied. */
  constructor(module: URL, input: unknown, options: WorkOptions, queue: Queue) {
    const { call, signal, transfer = [] } = options
    this.module = module
    this.queue = queue
    this.options = options
    this.signal = AbortSignal.any([call?.signal, signal].filter((one) => one !== undefined))
    this.signal.throwIfAborted()
    const { port1, port2 } = new MessageChannel()
    this.port = port1
    this.threadPort = port2
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    try {
      port1.postMessage({ kind: 'input', ...withBody(input) } satisfies ToThread, [...transfer])
    } catch (error) {
      port1.close()
      throw error
    }
  }

  /** Whether the function waits for a product that it asked in this call. */
  isAskingFor(callId: string | undefined): boolean {
    return this.questions > 0 && callId !== undefined && this.options.call?.id === callId
  }

  succeed(value: unknown): void {
    this.#resolve(value)
  }

  /** Rejects with the reason of the caller's signal if it has aborted, because that explains every other error. */
  fail(error: unknown): void {
    this.#reject(this.signal.aborted ? this.signal.reason : error)
  }
}

class Pool implements WorkerPool {
  readonly size: number
  readonly #maxWaiting: number
  readonly #maxWaitSeconds: number
  readonly #heapMegabytes: number
  readonly #threads = new Set<Thread>()
  readonly #waiting: Readonly<Record<Queue, Task[]>> = { paid: [], free: [] }
  /** The module of the function that was started last. */
  #lastModule = ''
  #isClosed = false

  constructor({ threads, maxWaiting, maxWaitSeconds, heapMegabytes }: WorkerPoolOptions) {
    this.size = threads ?? Math.max(2, availableParallelism() - 1)
    this.#maxWaiting = maxWaiting ?? MAX_WAITING
    this.#maxWaitSeconds = maxWaitSeconds ?? MAX_WAIT_SECONDS
    this.#heapMegabytes = heapMegabytes ?? HEAP_MEGABYTES
  }

  get threadCount(): number {
    return this.#threads.size
  }

  readonly work = <Out = unknown>(module: URL, input: unknown, options: WorkOptions = {}): Promise<Out> =>
    this.workIn(runningOf(options.call)?.queue ?? 'free', module, input, options)

  readonly workIn = async <Out = unknown>(
    queue: Queue,
    module: URL,
    input: unknown,
    options: WorkOptions = {},
  ): Promise<Out> => {
    if (this.#isClosed) throw closingError()
    const task = new Task(module, input, options, queue)
    const { port, signal } = task
    const abort = (): void => this.#stop(task, signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    port.on('message', (message: FromThread) => this.#receive(task, message))
    port.on('messageerror', (error) => task.fail(error))
    try {
      this.#place(task)
      return (await task.outcome) as Out
    } finally {
      signal.removeEventListener('abort', abort)
      clearTimeout(task.timer)
      task.endWait?.()
      task.endLoss?.()
      port.close()
      task.thread?.tasks.delete(task)
      this.#startNext()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const waiting of Object.values(this.#waiting)) for (const task of waiting.splice(0)) task.fail(closingError())
    await Promise.all([...this.#threads].map((thread) => this.#endThread(thread, closingError())))
  }

  /** Starts the task, or queues it. Throws Unavailable if the queue is full. */
  #place(task: Task): void {
    const { queue, options } = task
    const thread = this.#askingThread(options.call?.id) ?? this.#freeThread(queue)
    if (thread) return this.#start(task, thread)
    if (this.#waiting[queue].length >= this.#maxWaiting)
      throw new Unavailable('Too many computations are waiting; nothing was charged.', RETRY_AFTER_SECONDS)
    this.#waiting[queue].push(task)
    task.endWait = runningOf(options.call)?.wait()
    const waitedLong = 'The computation has waited too long for a thread; nothing was charged.'
    task.timer = setTimeout(
      () => this.#stop(task, new Unavailable(waitedLong, RETRY_AFTER_SECONDS)),
      this.#maxWaitSeconds * 1000,
    )
  }

  #startNext(): void {
    for (const queue of QUEUES)
      while (this.#waiting[queue].length > 0) {
        const thread = this.#freeThread(queue)
        if (!thread) break
        // Modules take turns, so that many calls of one product do not hold up those of another.
        const next = this.#waiting[queue].findIndex(({ module }) => module.href !== this.#lastModule)
        this.#start(this.#waiting[queue].splice(Math.max(0, next), 1)[0] as Task, thread)
      }
  }

  #start(task: Task, thread: Thread): void {
    const { module, threadPort, options } = task
    const { timeoutSeconds = TIMEOUT_SECONDS } = options
    clearTimeout(task.timer)
    task.endWait?.()
    task.endWait = undefined
    task.thread = thread
    task.endLoss = runningOf(options.call)?.loses(thread.lostMs)
    this.#lastModule = module.href
    thread.tasks.add(task)
    // A plugin of a built gateway names its TypeScript, and runs as the JavaScript that it was compiled to.
    const address = IS_BUILT ? compiledName(module.href) : module.href
    const assignment: Assignment = { module: address, port: threadPort }
    thread.worker.postMessage(assignment, [threadPort])
    const error = new ServiceError(
      'product_timeout',
      `The computation took longer than ${timeoutSeconds} seconds; nothing was charged.`,
    )
    const stopAfter = (ms: number, givenMs: number, before: number): void => {
      task.timer = setTimeout(() => {
        // Time without a core does not count, up to as much again as the timeout.
        const lostMs = Math.min(thread.starvedMs() - before, timeoutSeconds * 1000)
        if (lostMs - givenMs > 1) stopAfter(lostMs - givenMs, lostMs, before)
        else this.#stop(task, error)
      }, ms)
    }
    void thread.started.then(() => {
      if (thread.tasks.has(task)) stopAfter(timeoutSeconds * 1000, 0, thread.starvedMs())
    })
  }

  /**
   * The thread whose function asked a product in this call. The product has to use the same thread: if it were the last
   * one, waiting for another would never end.
   */
  #askingThread(callId: string | undefined): Thread | undefined {
    return [...this.#threads].find(({ tasks }) => [...tasks].some((task) => task.isAskingFor(callId)))
  }

  /** An idle thread or a new one. Undefined if all are busy, or if free work has as many as it may have. */
  #freeThread(queue: Queue): Thread | undefined {
    const threads = [...this.#threads]
    const atFreeWork = threads.filter(({ tasks }) => [...tasks].some((task) => task.queue === 'free')).length
    if (queue === 'free' && atFreeWork >= Math.max(1, this.size - 1)) return undefined
    const idle = threads.find(({ tasks }) => tasks.size === 0)
    return idle ?? (this.#threads.size < this.size && !this.#isClosed ? this.#openThread() : undefined)
  }

  #openThread(): Thread {
    const worker = new Worker(ENTRY, {
      // A pure function has no use for the environment, which holds secrets.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMegabytes },
    })
    const thread = new Thread(worker)
    worker.unref()
    worker.on('error', (error) => void this.#endThread(thread, this.#deathError(thread, error)))
    worker.on('exit', () => void this.#endThread(thread, this.#deathError(thread)))
    this.#threads.add(thread)
    return thread
  }

  /** Ends a thread and rejects its tasks. A function cannot be interrupted in any other way. */
  async #endThread(thread: Thread, error: unknown): Promise<void> {
    this.#threads.delete(thread)
    for (const task of thread.tasks) task.fail(error)
    await thread.worker.terminate()
  }

  #stop(task: Task, error: unknown): void {
    if (task.thread) return void this.#endThread(task.thread, error)
    const waiting = this.#waiting[task.queue]
    const place = waiting.indexOf(task)
    if (place >= 0) waiting.splice(place, 1)
    task.fail(error)
  }

  #deathError({ tasks }: Thread, cause?: Error & { readonly code?: string }): Error {
    const modules = [...tasks].map(({ module }) => module.href).join(', ')
    const reason =
      cause?.code === OUT_OF_MEMORY
        ? `it needs more than ${this.#heapMegabytes} MB of memory`
        : (cause?.message ?? 'it called process.exit')
    return new Error(`The worker thread that ran ${modules} has ended: ${reason}.`, { cause })
  }

  #receive(task: Task, message: FromThread): void {
    if (message.kind === 'value') task.succeed(message.value)
    else if (message.kind === 'error') task.fail(unpackError(message.error))
    else void this.#answer(task, message)
  }

  /** Asks the other product on the event loop, and posts its answer or its refusal. */
  async #answer(task: Task, { id, operation, input }: Extract<FromThread, { kind: 'question' }>): Promise<void> {
    const post = (message: ToThread): void => task.port.postMessage(message, [])
    task.questions += 1
    try {
      const ask = task.options.call?.ask
      if (!ask) throw new Error('A function can ask other products only if context.work gets the option call.')
      const value = await (ask as (operation: string, input: unknown) => Promise<unknown>)(operation, input)
      post({ kind: 'answer', id, value })
    } catch (error) {
      try {
        post({ kind: 'refusal', id, error: packError(error) })
      } catch {
        post({ kind: 'refusal', id, error: packErrorText(error) })
      }
    } finally {
      task.questions -= 1
    }
  }
}

/** An input that is, or has as a property, the input of a call whose body is unread: the body is sent as bytes. */
function withBody(input: unknown): Omit<Extract<ToThread, { kind: 'input' }>, 'kind'> {
  const whole = unreadBodyOf(input)
  if (whole) return { input: withoutBody(input as Input), body: { property: null, ...sentBody(whole) } }
  if (!isObject(input) || Object.getPrototypeOf(input) !== Object.prototype) return { input }
  for (const [property, value] of Object.entries(input)) {
    const body = unreadBodyOf(value)
    if (body)
      return { input: { ...input, [property]: withoutBody(value as Input) }, body: { property, ...sentBody(body) } }
  }
  return { input }
}

const sentBody = ({ bytes, rules }: UnreadBody) => ({ bytes, rules: rules as BodyRules })

const withoutBody = ({ params, query }: Input): Omit<Input, 'body'> => ({ params, query })

const closingError = (): Error => new Error('The gateway is closing.')
