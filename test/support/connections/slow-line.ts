/** A line between a client and a gateway that carries only so many bits a second each way. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Pace } from './pace.ts'

/** So little is on its way at once that the far end notices the rate. */
const PIECE_BYTES = 4_096

export interface SlowLine {
  /** What is sent to this port arrives at the other one. */
  readonly port: number
  close(): Promise<void>
}

/** Opens a line to a port of this machine. */
export async function openSlowLine(port: number, megabits: number): Promise<SlowLine> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const gateway = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    for (const socket of [client, gateway]) {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket)).on('error', () => {})
    }
    void carry(client, gateway, new Pace(megabits))
    void carry(gateway, client, new Pace(megabits))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Carries all bytes, and the end of the connection or its loss. */
async function carry(from: Socket, to: Socket, pace: Pace): Promise<void> {
  try {
    for await (const bytes of from as AsyncIterable<Buffer>)
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.subarray(at, at + PIECE_BYTES)
        await pace.take(piece.length)
        if (!to.write(piece)) await once(to, 'drain')
      }
    to.end()
  } catch {
    to.resetAndDestroy()
  }
}
