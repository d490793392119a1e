/**
 * The messages between a gateway process and the process that started it: the launcher of a single process, or the
 * primary of several workers. Environment variables come this way too, because plugins can read those of their own
 * process.
 */
import cluster from 'node:cluster'
import type { Config } from './config/config.ts'
import type { Environment } from './config/environment.ts'
import { ofWorker } from './config/settlement.ts'
import type { SharedSandbox } from './sandbox/sandbox.ts'
import type { Peers } from './stores/peers.ts'

/** The message that a gateway process gets when it starts. */
export interface Role {
  /** From 0. A worker that replaces another one has the same number. */
  readonly nth: number
  /** The number of workers; null for a process without siblings. */
  readonly workers: number | null
  /** Whether it finishes the payments that were left open before it accepts calls. One of several that start together does. */
  readonly recovers: boolean
  /** The sandbox that the primary opened for its workers. Null outside the sandbox, and for a process that opens its own. */
  readonly sandbox: SharedSandbox | null
  /** The variables of the operator without private keys. Plugins do not see them. */
  readonly environment: Environment
  /** Those that come from the file .env. */
  readonly fromFile: readonly string[]
  /** Path of the signer's socket. */
  readonly signer: string
}

/** How a gateway process obeys. */
export interface Orders {
  reload(): void
  /** Ends each open connection with its next answer, so that clients connect again, to any of the workers. */
  renewConnections(): void
  /** Ends without dropping a connection, because another worker has taken over. */
  drain(): void
  stop(): void
}

/** A gateway process's side of the connection to the process that started it. */
export interface Parent {
  readonly role: Role
  /** The other workers, through the primary; null for a process without siblings. */
  readonly peers: Peers | null
  /**
   * Carries out orders from now on, and those that came before. From now on a worker whose primary ends finishes its
   * calls and stops. Before, it ends at once: it has no calls, and what it waits for may never come without the
   * primary.
   */
  obey(orders: Orders): void
  /** Resolves when this process may accept calls: at once, or for a worker once all of them could. */
  mayListen(): Promise<void>
  /** Reports that this process accepts calls. The text of one process is printed. */
  opened(welcome: string): void
  /** Reports that this process stops without having been ordered to. */
  stopping(): void
}

/** A worker's question to its peers: a function of `Peers` with its argument. */
export type Question = {
  readonly [Name in keyof Peers]: { readonly ask: Name; readonly about: Parameters<Peers[Name]>[0] }
}[keyof Peers]
export type Report =
  | { readonly report: 'started' }
  | { readonly report: 'stopping' }
  | { readonly report: 'ready' }
  | { readonly report: 'opened'; readonly welcome: string }
  | { readonly report: 'asks'; readonly id: number; readonly question: Question }
export type Message =
  | { readonly role: Role }
  | { readonly mayListen: true }
  | { readonly order: keyof Orders }
  | { readonly answerTo: number; readonly answer: unknown }

/**
 * Asks the process that started this one for its role. `exit` ends a process whose launcher or primary has died, so
 * that the next start finds its port free; a worker that obeys orders by then stops in its own time.
 *
 * @throws Error if this process was started by hand
 */
export async function joinParent(exit: (code: number) => never): Promise<Parent> {
  if (!process.send) throw new Error('This process is started by the gateway: run main.js without --as.')
  // Otherwise Node ends a worker in the middle of its calls when the primary has died.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  const ordered: (keyof Orders)[] = []
  let obey = (order: keyof Orders): void => void ordered.push(order)
  let isObeying = false
  let letListen = (): void => {}
  const mayListen = new Promise<void>((resolve) => {
    letListen = resolve
  })
  const peers = new PeersOfWorker()
  const role = await new Promise<Role>((resolve) => {
    process.on('message', (message: Message) => {
      if ('role' in message) resolve(message.role)
      else if ('mayListen' in message) letListen()
      else if ('order' in message) obey(message.order)
      else peers.onAnswer(message.answerTo, message.answer)
    })
    process.once('disconnect', () => (cluster.isWorker && isObeying ? obey('stop') : exit(1)))
    report({ report: 'started' })
  })
  return {
    role,
    peers: role.workers === null ? null : peers,
    async mayListen() {
      if (role.workers === null) return
      report({ report: 'ready' })
      await mayListen
    },
    obey(orders) {
      isObeying = true
      obey = (order) => orders[order]()
      ordered.forEach(obey)
    },
    opened: (welcome) => report({ report: 'opened', welcome }),
    stopping: () => report({ report: 'stopping' }),
  }
}

/**
 * Sends a message to the parent. Without `failed`, a message that does not arrive is dropped, because this process
 * stops then.
 */
function report(message: Report, failed?: (error: Error) => void): void {
  // Without a callback, the error would end the process in the middle of its calls.
  process.send?.(message, undefined, undefined, (error) => {
    if (error) failed?.(error)
  })
}

/** Asks the primary, which keeps what all workers count. */
class PeersOfWorker implements Peers {
  readonly #waiting = new Map<number, (answer: unknown) => void>()
  #asked = 0

  addCalls(about: Parameters<Peers['addCalls']>[0]): ReturnType<Peers['addCalls']> {
    return this.#ask({ ask: 'addCalls', about }) as ReturnType<Peers['addCalls']>
  }

  exchangePauses(about: Parameters<Peers['exchangePauses']>[0]): ReturnType<Peers['exchangePauses']> {
    return this.#ask({ ask: 'exchangePauses', about }) as ReturnType<Peers['exchangePauses']>
  }

  onAnswer(id: number, answer: unknown): void {
    this.#waiting.get(id)?.(answer)
    this.#waiting.delete(id)
  }

  #ask(question: Question): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#asked += 1
      const id = this.#asked
      this.#waiting.set(id, resolve)
      report({ report: 'asks', id, question }, (error) => {
        this.#waiting.delete(id)
        reject(error)
      })
    })
  }
}

/** The configuration of a gateway process: each pays gas with a key of its own. */
export function configOfProcess(config: Config, { nth }: Role): Config {
  const networks = config.networks.map((settings) => ofWorker(settings, nth))
  return Object.freeze({ ...config, ...networks[0], networks })
}
