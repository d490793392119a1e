/** The faults of a soak run. Each is begun, and ended by the function that its beginning returns. */
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client as PgClient } from 'pg'
import { connect as openSqlite } from '../../../gateway/payments/journal/sqlite-connection.ts'
import { LIES_ABOUT_SETTLEMENTS } from '../../support/lying-node.ts'
import type { Gateway } from '../gateway.ts'
import { BLOCK_SECONDS, type Scene } from './scene.ts'

export interface Fault {
  readonly name: string
  /** Why it cannot be made here. */
  readonly skip?: string
  /** Breaks connections, so that requests are lost. */
  readonly cuts?: true
  /** Ends processes. */
  readonly kills?: true
  /** Ends at once. */
  readonly isMoment?: true
  /** @param round how often all faults have had their turn */
  begin(round: number): Promise<{ readonly what: string; end(): Promise<void> | void }>
}

const STALLED = 150
const UNREAD = 150
/** Answers of each are larger than the buffers of the system. */
const UNREAD_REQUESTS = 10
const DOWN_MS = 2_000
const CHUNK = 1 << 20
/** Space left for others while the disk is filled. */
const SPARE = 16 * CHUNK

/** Returns the faults. Those of one kind are made in this order. */
export function faultsOf(scene: Scene): readonly Fault[] {
  const { market, node, victim, workers, port, journal, disk } = scene
  const lies = Object.entries(LIES_ABOUT_SETTLEMENTS)
  return [
    {
      name: 'node down',
      async begin() {
        await node.down()
        return { what: 'one of two nodes refuses connections', end: () => node.up() }
      },
    },
    {
      name: 'node lies',
      async begin(round) {
        const [what, lie] = lies[round % lies.length] as (typeof lies)[number]
        node.lie(lie)
        return { what: `one of two nodes ${what}`, end: () => node.lie({}) }
      },
    },
    {
      name: 'chain stalled',
      async begin() {
        await market.rpc.call('evm_setIntervalMining', 0)
        return {
          what: 'no blocks',
          end: async () => void (await market.rpc.call('evm_setIntervalMining', BLOCK_SECONDS)),
        }
      },
    },
    {
      name: 'database locked',
      begin: () => ('file' in journal ? lockSqlite(journal.file) : lockPostgres(journal.url)),
    },
    {
      name: 'disk full',
      ...(disk === null ? { skip: 'only root may mount a file system of its own for the data' } : {}),
      async begin() {
        const file = join(disk ?? '', 'fill')
        fill(disk ?? '', file)
        return { what: 'the file system of DATA_DIR has no free byte', end: () => rmSync(file) }
      },
    },
    {
      name: 'worker killed',
      ...(workers < 2 ? { skip: 'there is one process; run with --workers 2' } : {}),
      cuts: true,
      kills: true,
      isMoment: true,
      async begin() {
        const pids = victim.pids()
        process.kill(pids[randomInt(pids.length)] as number, 'SIGKILL')
        return { what: `one of ${pids.length} workers was killed`, end: () => {} }
      },
    },
    {
      name: 'slow clients',
      begin: () => openSlowClients(port),
    },
    {
      name: 'gateway killed',
      cuts: true,
      kills: true,
      isMoment: true,
      async begin() {
        await victim.kill()
        await delay(DOWN_MS)
        // The fault ends when the process is started, so that the start counts as recovery.
        return { what: 'every process was killed, and the gateway was started again', end: () => void restart(victim) }
      },
    },
  ]
}

/** A gateway that does not start again never recovers, which the load shows. */
function restart(victim: Gateway): Promise<void> {
  return victim.restart().catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
  })
}

async function lockSqlite(file: string) {
  const connection = await openSqlite(file, 'write')
  // Others write at the same time.
  while (
    await connection.exec('BEGIN IMMEDIATE').then(
      () => false,
      () => true,
    )
  );
  return {
    what: 'another connection holds the write lock',
    async end() {
      await connection.exec('ROLLBACK')
      await connection.close()
    },
  }
}

async function lockPostgres(url: string) {
  const client = new PgClient({ connectionString: url })
  await client.connect()
  await client.query('BEGIN; LOCK TABLE payments IN SHARE ROW EXCLUSIVE MODE')
  return {
    what: 'another connection holds a lock on the table of payments',
    async end() {
      await client.query('ROLLBACK')
      await client.end()
    },
  }
}

/** Lets a file take all space that is left, while others write too. */
function fill(disk: string, file: string): void {
  const { bavail, bsize } = statfsSync(disk)
  const most = Math.max(CHUNK, bavail * bsize - SPARE)
  writeFileSync(file, '')
  try {
    execFileSync('fallocate', ['-l', String(most), file], { stdio: 'ignore' })
  } catch {
    // Less was left by then. The rest is written below.
  }
  const piece = Buffer.alloc(CHUNK)
  for (let size = CHUNK; size >= 512; size /= 2)
    try {
      for (;;) writeFileSync(file, piece.subarray(0, size), { flag: 'a' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
}

/** Uploads that stall after their first bytes, and requests whose answers nobody reads. */
async function openSlowClients(port: number) {
  const sockets: Socket[] = []
  const open = (bytes: string): void => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(bytes))
    socket.on('error', () => {})
    socket.pause()
    sockets.push(socket)
  }
  const host = `host: 127.0.0.1:${port}\r\n`
  const form = 'content-type: multipart/form-data; boundary=slow\r\ncontent-length: 30000000\r\n'
  const begun = '--slow\r\ncontent-disposition: form-data; name="file"; filename="l.csv"\r\n\r\nsymbol,side\r\n'
  for (let nth = 0; nth < STALLED; nth++) open(`POST /audit HTTP/1.1\r\n${host}${form}\r\n${begun}`)
  for (let nth = 0; nth < UNREAD; nth++) open(`GET /v1/regime/sample HTTP/1.1\r\n${host}\r\n`.repeat(UNREAD_REQUESTS))
  return {
    what: `${STALLED} stalled uploads and ${UNREAD} clients that read nothing`,
    end() {
      for (const socket of sockets) socket.destroy()
    },
  }
}
