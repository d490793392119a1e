/** Sends what a program says on a connection of its own, and notes what was answered. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Pace } from './pace.ts'
import { bytesOf, type Program } from './programs.ts'

/** Connections with a caller of their own come from this address, which TRUSTED_PROXIES has to name. */
export const PROXY = '127.0.0.2'
/** Other connections get their turn after so many writes. */
const WRITES_PER_TURN = 64
const STATUS = /HTTP\/1\.1 (\d{3}) /g
const STATUS_CHARACTERS = 13

/** What became of a program. */
export interface Sent {
  bytes: number
  /** How many answers had each status. */
  readonly statuses: Map<string, number>
}

export interface SendOptions {
  readonly port: number
  readonly pace: Pace
  /** The connection is closed after this time. */
  readonly mostMs: number
  /** How long the connection stays open for answers once all was written. */
  readonly endMs: number
  /** Ends the program early. */
  readonly isOver?: () => boolean
}

/** Runs a program to its end. Never rejects. */
export async function send(program: Program, { port, pace, mostMs, endMs, isOver }: SendOptions): Promise<Sent> {
  const sent: Sent = { bytes: 0, statuses: new Map() }
  const localAddress = program.caller === null ? '127.0.0.1' : PROXY
  const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
  socket.on('error', () => {})
  const closed = new Promise((done) => socket.once('close', done))
  const timer = setTimeout(() => socket.destroy(), mostMs)
  const look = setInterval(() => isOver?.() && socket.destroy(), 100)
  countAnswers(socket, sent.statuses)
  if (program.reads !== 'at once') socket.pause()
  await Promise.race([once(socket, 'connect').catch(() => {}), closed])
  await write(socket, program, pace, sent, closed)
  if (program.reads === 'after it has written') socket.resume()
  if (program.ends === 'by half-close') socket.end()
  if (program.ends === 'by reset') socket.resetAndDestroy()
  if (program.ends === 'by close') socket.destroy()
  const end = setTimeout(() => socket.destroy(), endMs)
  await closed
  clearTimeout(end)
  clearTimeout(timer)
  clearInterval(look)
  return sent
}

async function write(
  socket: Socket,
  program: Program,
  pace: Pace,
  sent: Sent,
  closed: Promise<unknown>,
): Promise<void> {
  const { steps, caller, writeBytes, bytesPerSecond } = program
  const began = performance.now()
  let writes = 0
  for (const step of steps) {
    if (step.kind === 'wait') await Promise.race([sleep(step.ms), closed])
    for (const block of bytesOf(step, caller))
      for (let at = 0; at < block.length; at += writeBytes) {
        const piece = block.subarray(at, at + writeBytes)
        await pace.take(piece.length)
        const ms = began + (1000 * sent.bytes) / bytesPerSecond - performance.now()
        if (ms > 1) await Promise.race([sleep(ms), closed])
        if (!socket.writable) return
        sent.bytes += piece.length
        writes += 1
        if (!socket.write(piece)) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
        else if (writes % WRITES_PER_TURN === 0) await setImmediate()
      }
  }
}

function countAnswers(socket: Socket, statuses: Map<string, number>): void {
  let rest = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    const received = rest + text
    for (const [, status = ''] of received.matchAll(STATUS)) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    // Too short for a whole one, which would be counted again.
    rest = received.slice(1 - STATUS_CHARACTERS)
  })
}
