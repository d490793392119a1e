/**
 * Several gateway processes on one port: `npm start -- --workers N`. The primary opens the sandbox, starts the workers and
 * replaces those that end. It hands each new connection to the next worker, and answers no call itself.
 */
import cluster, { type Worker } from 'node:cluster'
import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ConfigError, readConfig } from './config/config.ts'
import { takeEnvironment } from './config/environment.ts'
import { namesFromFile } from './config/env-file.ts'
import { SANDBOX, workerIssues } from './config/settlement.ts'
import { openLog } from './observe/log.ts'
import type { Message, Orders, Question, Report, Role } from './parent.ts'
import { type OpenSandbox, openSandbox } from './sandbox/sandbox.ts'
import { onSignals, STOP_MS } from './signals.ts'
import { type StartedSigner, startSigner } from './signer/start-signer.ts'
import { type Peers, PeersInMemory } from './stores/peers.ts'
import { closeDataFolder, makePrivateFolder } from './stores/private-files.ts'
import { v8Flags } from './v8-flags.ts'

/**
 * Runs the primary until a signal ends it: SIGTERM and SIGINT stop all workers, SIGHUP reloads them, SIGUSR2 replaces them
 * one by one. If a worker ends before all have opened once, everything ends with its exit code.
 *
 * @throws ConfigError if the configuration has issues
 */
export async function runWorkers(count: number, exit: (code: number) => never): Promise<void> {
  const environment = takeEnvironment()
  const fromFile = namesFromFile(environment)
  const config = readConfig(environment)
  const issues = workerIssues(config.networks, count)
  if (issues.length > 0) throw new ConfigError(issues)
  const log = openLog(config)
  const isFirstStart = !existsSync(config.dataDir)
  makePrivateFolder(config.dataDir)
  closeDataFolder(config, log)
  cluster.setupPrimary({ args: ['--as', 'worker'], execArgv: [...v8Flags(count)] })
  const signer = startSigner(environment, (message) => {
    process.stderr.write(`${message}\n`)
    void end(1)
  })
  const workers = new Workers(count, { signer, fromFile, isFirstStart, log })
  let sandbox: OpenSandbox | null = null
  let ending: Promise<never> | null = null
  let exitCode = 0
  const end = (code: number): Promise<never> => {
    // A second signal comes while the first one is being obeyed.
    exitCode ||= code
    ending ??= workers
      .stop()
      .then(() => sandbox?.close())
      .then(() => {
        signer.stop()
        return exit(exitCode)
      })
    return ending
  }
  onSignals({
    // A chain that is being opened has to be closed again.
    stop: () => void (isOpening ? workers.stop() : end(0)),
    stopAtOnce: () => {
      workers.killAll()
      if (isOpening) exitCode = 1
      else void end(1)
    },
    reload: () => workers.reload(),
  })
  // Windows has no such signal.
  if (process.platform !== 'win32') process.on('SIGUSR2', () => void workers.replaceAll())
  const { dataDir, sandboxBlockSeconds: blockSeconds, payTo } = config
  let isOpening = true
  if (config.network === SANDBOX) sandbox = await openSandbox({ dataDir, blockSeconds, log, payTo })
  await sandbox?.describe(config.baseUrl)
  isOpening = false
  if (workers.isStopping) return end(0)
  const opened = await workers.start(sandbox)
  if (opened === null) await end(workers.exitCode)
  else process.stdout.write(opened)
}

/** One worker process. */
interface Running {
  readonly worker: Worker
  /** Resolves with true once the worker could accept calls, or with false if it ended before. */
  readonly ready: Promise<boolean>
  /** Resolves with the text to print once the worker accepts calls, or with null if it ended before. */
  readonly opened: Promise<string | null>
  readonly hasOpened: () => boolean
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

/** A worker that lived this long did not end because of how it was started. */
const STABLE_MS = 60_000
const FIRST_DELAY_MS = 250
const MAX_DELAY_MS = 30_000
/** A worker that has just opened takes connections slowly, and the primary gives more to those that are quicker. */
const WARM_MS = 1_000
/** Longer than a replaced worker takes to finish its calls. One that hangs is killed, which the journal survives. */
const REPLACE_MS = 60_000

interface LaunchOptions {
  /** When the worker may open the gateway. Until then it only loads the code. */
  readonly mayBegin?: Promise<unknown>
  readonly recovers?: boolean
}

interface WorkersParts {
  readonly signer: StartedSigner
  /** The variables that come from the file .env. */
  readonly fromFile: readonly string[]
  /** No gateway has kept data here before. */
  readonly isFirstStart: boolean
  readonly log: Logger
}

/** The workers of one primary. */
class Workers {
  readonly #signer: StartedSigner
  readonly #fromFile: readonly string[]
  readonly #isFirstStart: boolean
  readonly #log: Logger
  /** By number. A place is null until its worker is started. */
  readonly #places: (Running | null)[]
  /** How often the worker of each place has ended early, in a row. */
  readonly #failures: number[]
  readonly #alive = new Set<Running>()
  /** The messages between workers. */
  readonly #peers = new PeersInMemory()
  readonly #startFailed: Promise<null>
  #failStart: () => void = () => {}
  /** Whether workers that are ready may accept calls: not until all are that begin together. */
  #mayListen = false
  #hasOpened = false
  #isReplacing = false
  /** The worker that is being replaced. If it ends, its replacement takes its place. */
  #replaced: Running | null = null
  #sandbox: OpenSandbox | null = null
  isStopping = false
  /** 0, or the exit code of the worker that made the start fail. */
  exitCode = 0

  constructor(count: number, { signer, fromFile, isFirstStart, log }: WorkersParts) {
    this.#places = Array.from({ length: count }, () => null)
    this.#failures = Array.from({ length: count }, () => 0)
    this.#signer = signer
    this.#fromFile = fromFile
    this.#isFirstStart = isFirstStart
    this.#log = log
    this.#startFailed = new Promise((resolve) => {
      this.#failStart = () => resolve(null)
    })
  }

  /**
   * Starts all workers. Returns the text to print, or null if one of them ended before all had opened. They accept calls when
   * all could: the first would get the calls of all, and the others would need its time to start.
   */
  async start(sandbox: OpenSandbox | null): Promise<string | null> {
    this.#sandbox = sandbox
    const first = await this.#launchAt(0)
    // On the very first start it creates tables and the first data, and the others only load their code meanwhile.
    const mayBegin = this.#isFirstStart ? first.ready : Promise.resolve()
    const others = this.#places.slice(1).map((_, at) => this.#launchAt(at + 1, { mayBegin, recovers: false }))
    const running = [first, ...(await Promise.all(others))]
    const all = <Value>(values: readonly Promise<Value>[]) => Promise.race([Promise.all(values), this.#startFailed])
    if ((await all(running.map(({ ready }) => ready))) === null) return null
    this.#mayListen = true
    for (const { worker } of running) send(worker, { mayListen: true })
    const texts = await all(running.map(({ opened }) => opened))
    if (texts === null || texts.includes(null)) return null
    this.#hasOpened = true
    return texts[0] ?? null
  }

  reload(): void {
    for (const running of this.#alive) tell(running, 'reload')
  }

  /** Replaces one worker after the other: the new one opens before the old one closes. */
  async replaceAll(): Promise<void> {
    if (this.#isReplacing || !this.#hasOpened) return
    this.#isReplacing = true
    this.#log.info({ workers: this.#places.length }, 'the workers are replaced one by one')
    let areReplaced = true
    for (const nth of this.#places.keys()) areReplaced &&= await this.#replace(nth)
    this.#isReplacing = false
    void this.#shareConnections()
    if (areReplaced) this.#log.info('all workers were replaced')
  }

  async stop(): Promise<void> {
    this.isStopping = true
    const running = [...this.#alive]
    running.forEach(stopWorker)
    await Promise.all(running.map((each) => endInTime(each, STOP_MS)))
  }

  killAll(): void {
    for (const { worker } of this.#alive) worker.process.kill('SIGKILL')
  }

  /** Returns false if the other workers should stay as they are. */
  async #replace(nth: number): Promise<boolean> {
    const old = this.#places[nth]
    // A worker that has ended is being started again anyway.
    if (!old) return true
    this.#replaced = old
    const next = await this.#launch(nth).catch((error: unknown) => {
      this.#log.error({ err: error, worker: nth + 1 }, 'a worker could not be started')
      return null
    })
    const opened = (await next?.opened) ?? null
    this.#replaced = null
    if (this.isStopping) return false
    if (!next || opened === null) {
      this.#log.error({ worker: nth + 1 }, 'a new worker did not open; the workers that run stay')
      if (!this.#alive.has(old)) void this.#startAgain(nth)
      return false
    }
    this.#places[nth] = next
    tell(old, 'drain')
    await endInTime(old, REPLACE_MS)
    return true
  }

  /**
   * Spreads the open connections over all workers. Clients keep theirs for long, so without this a worker that has just
   * opened would get few calls, and those that were there before would get its share.
   */
  async #shareConnections(): Promise<void> {
    await pause(WARM_MS)
    if (this.#places.length > 1) for (const running of this.#alive) tell(running, 'renewConnections')
  }

  async #launchAt(nth: number, options?: LaunchOptions): Promise<Running> {
    const running = await this.#launch(nth, options)
    this.#places[nth] = running
    return running
  }

  async #launch(nth: number, { mayBegin = Promise.resolve(), recovers = true }: LaunchOptions = {}): Promise<Running> {
    const sandbox = (await this.#sandbox?.share(nth)) ?? null
    const { environment, socket: signer } = this.#signer
    const own = { nth, workers: this.#places.length, recovers, sandbox }
    const role: Role = { ...own, environment, fromFile: this.#fromFile, signer }
    const worker = cluster.fork()
    const ended = new Promise<number | string>((resolve) => {
      worker.once('exit', (code, signal) => resolve(signal ?? code))
      worker.on('error', (error: NodeJS.ErrnoException) => {
        if (hasStarted(worker)) return this.#log.warn({ err: error, worker: nth + 1 }, 'a worker could not be told')
        // For want of processes, memory or open files, say. Such a worker has no exit.
        this.#log.error({ err: error, worker: nth + 1 }, 'a worker could not be started')
        resolve(error.code ?? error.message)
      })
    })
    const ready = new Promise<boolean>((resolve) => {
      worker.on('message', (message: Report) => {
        if (message.report !== 'ready') return
        resolve(true)
        if (this.#mayListen) send(worker, { mayListen: true })
      })
      void ended.then(() => resolve(false))
    })
    let isOpen = false
    const opened = new Promise<string | null>((resolve) => {
      worker.on('message', (message: Report) => {
        if (message.report === 'opened') {
          isOpen = true
          resolve(message.welcome)
        } else if (message.report === 'started') void mayBegin.then(() => send(worker, { role }))
        else if (message.report === 'asks')
          void answer(this.#peers, message.question).then((said) =>
            send(worker, { answerTo: message.id, answer: said }),
          )
      })
      void ended.then(() => resolve(null))
    })
    const running = { worker, ready, opened, hasOpened: () => isOpen, ended }
    this.#alive.add(running)
    const since = performance.now()
    void ended.then((how) => this.#onEnd(nth, running, how, performance.now() - since))
    if (this.isStopping && hasStarted(worker)) worker.process.kill('SIGTERM')
    return running
  }

  #onEnd(nth: number, running: Running, how: number | string, livedMs: number): void {
    this.#alive.delete(running)
    if (this.isStopping) return
    if (!this.#hasOpened) {
      this.exitCode ||= typeof how === 'number' && how !== 0 ? how : 1
      return this.#failStart()
    }
    if (this.#places[nth] !== running) return
    const { pid } = running.worker.process
    if (hasStarted(running.worker)) this.#log.error({ worker: nth + 1, pid, ended: how }, 'a worker has ended')
    if (livedMs >= STABLE_MS) this.#failures[nth] = 0
    if (running !== this.#replaced) void this.#startAgain(nth)
  }

  /** Starts a worker in the place of one that has ended: the first time at once, later after a growing delay. */
  async #startAgain(nth: number): Promise<void> {
    const failures = this.#failures[nth] ?? 0
    this.#failures[nth] = failures + 1
    this.#places[nth] = null
    if (failures > 0) await pause(Math.min(FIRST_DELAY_MS * 2 ** failures, MAX_DELAY_MS))
    if (this.isStopping) return
    try {
      if ((await (await this.#launchAt(nth)).opened) === null) return
      this.#log.info({ worker: nth + 1 }, 'a worker was started again')
      void this.#shareConnections()
    } catch (error) {
      this.#log.error({ err: error, worker: nth + 1 }, 'a worker could not be started')
      void this.#startAgain(nth)
    }
  }
}

/** Whether the system could start the process of a worker. */
function hasStarted({ process: { pid } }: Worker): boolean {
  return pid !== undefined
}

function tell({ worker }: Running, order: keyof Orders): void {
  send(worker, { order })
}

function answer(peers: Peers, { ask, about }: Question): Promise<unknown> {
  return ask === 'addCalls' ? peers.addCalls(about) : peers.exchangePauses(about)
}

/** Sends a message. It is lost if the worker has just ended. */
function send(worker: Worker, message: Message): void {
  worker.send(message, () => {})
}

/**
 * Tells a worker to stop. It first gets no more connections: if a worker closed the port by itself, connections that are on
 * their way to it would come back, and Node leaves those that no other worker takes open until the primary ends.
 */
function stopWorker(running: Running): void {
  const { worker, hasOpened } = running
  // Before it has opened, it carries out no orders.
  if (!hasOpened()) return void worker.process.kill('SIGTERM')
  worker.disconnect()
  tell(running, 'stop')
}

/** Waits for the end of a worker, and kills it if it takes longer than `limitMs`. */
async function endInTime({ worker, ended }: Running, limitMs: number): Promise<void> {
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), limitMs)
  await ended
  clearTimeout(timer)
}
