/**
 * The connection to the signer process, which holds the private keys. Messages are lines of JSON over a Unix socket.
 * Requests of one turn of the event loop are sent in one write, and answered in one.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { JWK } from 'jose'
import type { Logger } from '../plugin/plugin.ts'

type Hex = `0x${string}`

/** A transaction to sign. Integers are decimal text. */
export interface TransactionFields {
  readonly to: Hex
  readonly data: Hex
  readonly gas: string
  readonly nonce: number
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
}

/** The kinds of things that the signer signs. */
export type SigningRequest =
  | { readonly statement: Readonly<Record<string, unknown>>; readonly type: string }
  | { readonly transaction: TransactionFields; readonly network: string; readonly nth: number }
  /** Null asks for the public key. */
  | { readonly attestation: string | null; readonly product: string; readonly serial: number }

export interface SignedTransaction {
  readonly raw: Hex
  readonly hash: Hex
}

/** The first message of the signer on a connection. */
export interface SignerKeys {
  /** Public keys of tokens and receipts, that of the signing key first. */
  readonly publicKeys: readonly JWK[]
  /** Keys of offers, the current one with its private part. */
  readonly offerKeys: readonly JWK[]
  /** The addresses that pay gas, by the name of their network. */
  readonly addresses: Readonly<Record<string, readonly Hex[]>>
}

/** A line from the signer. */
export type SignerLine =
  | { readonly keys: SignerKeys }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly refused: string }

/** The signer refused to sign, or could not be asked. Nothing was signed that could be used. */
export class SignerError extends Error {
  override readonly name = 'SignerError'
}

export interface SignerClient {
  readonly keys: SignerKeys
  /** Signs a statement as a compact JWS. Throws SignerError. */
  signStatement(type: string, statement: Readonly<Record<string, unknown>>): Promise<string>
  /** Signs with the key of worker `nth`, from 0. Throws SignerError. */
  signTransaction(network: string, nth: number, transaction: TransactionFields): Promise<SignedTransaction>
  /** The public key with which a product signs under a serial number. Throws SignerError. */
  attestationKey(product: string, serial: number): Promise<{ readonly address: Hex; readonly publicKey: Hex }>
  /** Signs what a product states, canonical JSON, as EIP-191 "personal sign". Throws SignerError. */
  signAttestation(product: string, serial: number, text: string): Promise<Hex>
  close(): void
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: SignerError) => void
  readonly askedAt: number
}

const CONNECT_MS = 10_000
const RETRY_MS = 20
/** Signing takes less than a millisecond. A signer that takes longer than this hangs. */
const ANSWER_MS = 5_000
/** More than this many at once are refused, so that a signer that hangs does not fill the memory. */
const MAX_WAITING = 10_000

/**
 * Connects to a signer, which may still be starting. A connection that is lost is opened again with the next request.
 *
 * @throws SignerError if no signer answers in time
 */
export async function connectSigner(path: string, log: Logger, limitMs = CONNECT_MS): Promise<SignerClient> {
  const client = new Client(path, log)
  await client.connect(performance.now() + limitMs)
  return client
}

class Client implements SignerClient {
  readonly #path: string
  readonly #log: Logger
  readonly #waiting = new Map<number, Waiting>()
  /** The connection once the signer has said which keys it has, and one that is being opened. */
  #socket: Socket | null = null
  #opening: Socket | null = null
  #connecting: Promise<void> | null = null
  #keys: SignerKeys | null = null
  #lines = ''
  #asked = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #flush = (): void => {
    const lines = this.#lines
    this.#lines = ''
    this.#socket?.write(lines)
  }

  constructor(path: string, log: Logger) {
    this.#path = path
    this.#log = log
  }

  get keys(): SignerKeys {
    return this.#keys as SignerKeys
  }

  signStatement(type: string, statement: Readonly<Record<string, unknown>>): Promise<string> {
    return this.#ask({ statement, type }) as Promise<string>
  }

  signTransaction(network: string, nth: number, transaction: TransactionFields): Promise<SignedTransaction> {
    return this.#ask({ transaction, network, nth }) as Promise<SignedTransaction>
  }

  attestationKey(product: string, serial: number): Promise<{ readonly address: Hex; readonly publicKey: Hex }> {
    return this.#ask({ attestation: null, product, serial }) as Promise<{ address: Hex; publicKey: Hex }>
  }

  signAttestation(product: string, serial: number, text: string): Promise<Hex> {
    return this.#ask({ attestation: text, product, serial }) as Promise<Hex>
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#socket?.destroy()
    this.#opening?.destroy()
  }

  /** Connects before `deadline`, as performance.now(). */
  connect(deadline: number): Promise<void> {
    this.#connecting ??= this.#connect(deadline).finally(() => (this.#connecting = null))
    return this.#connecting
  }

  async #connect(deadline: number): Promise<void> {
    for (;;) {
      try {
        return await this.#open(deadline)
      } catch (error) {
        if (performance.now() > deadline || this.#isClosed)
          throw new SignerError(`The signer at ${this.#path} does not answer.`, { cause: error })
        await pause(RETRY_MS)
      }
    }
  }

  /** Opens one connection, and resolves once the signer has said which keys it has. */
  #open(deadline: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#path)
      this.#opening = socket
      let failure: Error | undefined
      socket.setTimeout(Math.max(1, deadline - performance.now()), () =>
        socket.destroy(new Error('it does not answer')),
      )
      let rest = ''
      socket.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() as string
        for (const line of lines) {
          const said = readLine(line)
          if (said === null) return void socket.destroy(new Error('it does not answer like a signer'))
          if ('keys' in said) {
            this.#keys = said.keys
            this.#socket = socket.setTimeout(0)
            this.#opening = null
            resolve()
          } else this.#settle(said)
        }
      })
      socket.once('error', (error) => {
        failure = error
        reject(error)
      })
      socket.once('close', () => {
        if (this.#socket === socket) this.#onLost(failure)
        reject(new Error('the connection was closed'))
      })
      // An open connection does not keep the process alive.
      socket.unref()
    })
  }

  #onLost(failure: Error | undefined): void {
    this.#socket = null
    this.#lines = ''
    if (!this.#isClosed) this.#log.error({ err: failure }, 'the connection to the signer was lost')
    this.#rejectAll()
  }

  #ask(request: SigningRequest): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new SignerError('The connection to the signer is closed.'))
    if (this.#socket) return this.#send(request)
    return this.connect(performance.now() + ANSWER_MS).then(() => this.#send(request))
  }

  #send(request: SigningRequest): Promise<unknown> {
    if (this.#waiting.size >= MAX_WAITING)
      return Promise.reject(new SignerError('Too many requests wait for the signer.'))
    return new Promise((resolve, reject) => {
      this.#asked += 1
      this.#waiting.set(this.#asked, { resolve, reject, askedAt: performance.now() })
      if (this.#lines === '') setImmediate(this.#flush)
      this.#lines += `${JSON.stringify({ id: this.#asked, ...request })}\n`
      this.#timer ??= setInterval(() => this.#rejectLate(), ANSWER_MS / 2).unref()
    })
  }

  #settle(said: Exclude<SignerLine, { readonly keys: SignerKeys }>): void {
    const waiting = this.#waiting.get(said.id)
    this.#waiting.delete(said.id)
    if ('refused' in said) waiting?.reject(new SignerError(`The signer refuses: ${said.refused}`))
    else waiting?.resolve(said.value)
  }

  /**
   * Closes a connection whose oldest request has waited too long, which rejects all requests. The next one connects
   * again.
   */
  #rejectLate(): void {
    const [oldest] = this.#waiting.values()
    if (!oldest || performance.now() - oldest.askedAt < ANSWER_MS) return
    this.#socket?.destroy()
  }

  #rejectAll(): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting) reject(new SignerError('The signer did not answer.'))
  }
}

/** Reads a line. Null if it is none that a signer sends. */
function readLine(line: string): SignerLine | null {
  try {
    const said: unknown = JSON.parse(line)
    return typeof said === 'object' ? (said as SignerLine | null) : null
  } catch {
    return null
  }
}
