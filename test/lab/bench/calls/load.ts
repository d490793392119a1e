/**
 * Sends requests over connections of their own, each the next one when the last is answered, and checks every answer.
 * Speaks HTTP/1.1 on bare sockets, so that it costs less than the server that it measures.
 *
 * The callers never sleep, unless they are told to. A server pays for waking a sleeping caller on the same machine: 10 µs for a 402 on one virtual
 * machine. Only a server that is slower than its callers lets them sleep, so ratios to a fast one would be too high.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuBetween, readProcessCpu } from '../cpu-time.ts'

/** The answer expected. */
export interface Expected {
  readonly status: number
  /** Text that the body contains. */
  readonly contains?: string
}

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  readonly expected: Expected
  /** Returns the next request, or null if there are no more. */
  readonly next: () => Buffer | null
  /** Whether the callers sleep while they wait. Default: false. */
  readonly sleeps?: boolean
}

/** Writes a request as bytes. */
export function requestBytes(
  port: number,
  method: 'GET' | 'POST',
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): Buffer {
  const length = method === 'POST' ? [`content-length: ${Buffer.byteLength(body)}`] : []
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const head = [`${method} ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, ...lines, ...length, '', '']
  return Buffer.from(head.join('\r\n') + body)
}

/** Sends requests until the time is over or there are no more. Resolves with their number. Rejects on a wrong answer. */
export async function sendLoad(load: Load): Promise<number> {
  const { port, connections, seconds, expected, next, sleeps = false } = load
  const end = performance.now() + seconds * 1000
  let answered = 0
  const take = (): Buffer | null => (performance.now() < end ? next() : null)
  let isOver = sleeps
  const stayAwake = (): void => void (isOver || setImmediate(stayAwake))
  stayAwake()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = await open(port)
      try {
        await new Promise<void>((resolve, reject) => {
          const send = (): void => {
            const request = take()
            if (request) socket.write(request)
            else resolve()
          }
          readAnswers(
            socket,
            expected,
            () => {
              answered += 1
              send()
            },
            reject,
          )
          send()
        })
      } finally {
        socket.destroy()
      }
    }),
  )
  isOver = true
  return answered
}

/** Counts work done after the response too, such as noting its delivery. */
export const AFTERWARDS_MS = 150

/** Sends load. Returns the microseconds of CPU that a request cost these processes together. */
export async function costOf(pids: readonly number[], load: Load): Promise<number> {
  const before = pids.map((pid) => ({ pid, cpu: readProcessCpu(pid) }))
  const requests = await sendLoad(load)
  await sleep(AFTERWARDS_MS)
  return before.reduce((sum, { pid, cpu }) => sum + cpuBetween(cpu, readProcessCpu(pid)), 0) / requests
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

/** Calls `onAnswer` after each complete answer, `onError` at the first wrong one. */
function readAnswers(socket: Socket, expected: Expected, onAnswer: () => void, onError: (error: Error) => void): void {
  let received: Buffer[] = []
  let size = 0
  /** Bytes of the whole answer; null before its head is read; infinite if it ends with an empty chunk. */
  let total: number | null = null

  const readHead = (): void => {
    const bytes = received.length === 1 ? (received[0] as Buffer) : Buffer.concat(received)
    received = [bytes]
    const end = bytes.indexOf(HEAD_END)
    if (end === -1) return
    const head = bytes.toString('latin1', 0, end)
    const status = Number(head.slice(9, 12))
    if (status !== expected.status) {
      const text = bytes.toString('utf8').slice(0, 1_500)
      return onError(new Error(`expected ${expected.status}, received ${text}`))
    }
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? []
    total = length === undefined ? Number.POSITIVE_INFINITY : end + HEAD_END.length + Number(length)
  }
  const isComplete = (last: Buffer): boolean =>
    total === Number.POSITIVE_INFINITY ? last.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK) : size >= Number(total)

  socket.on('data', (bytes) => {
    received.push(bytes)
    size += bytes.length
    if (total === null) readHead()
    if (total === null || !isComplete(bytes)) return
    if (expected.contains !== undefined && !Buffer.concat(received).includes(expected.contains)) {
      const text = Buffer.concat(received).toString('utf8').slice(0, 1_500)
      return onError(new Error(`expected ${expected.contains} in the answer, received ${text}`))
    }
    received = []
    size = 0
    total = null
    onAnswer()
  })
  socket.once('error', onError)
  socket.once('close', () => onError(new Error('the server closed a connection')))
}
