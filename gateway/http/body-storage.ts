/**
 * Keeps request bodies while they arrive and while their calls run, within a limit of memory for all of them. What
 * exceeds the limit is written to disk as it arrives, and waits there until earlier calls have ended. Each address has a
 * share of the disk. A body that stops arriving is cut off, and so is one that would take longer than a quarter of an hour.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { ServiceError } from '../errors.ts'
import { makePrivateFolder } from '../stores/private-files.ts'
import { DiskShare, HeldMemory, type Hold, incomplete, noRoom, Share } from './body-room.ts'
import { placeOf } from './caller-address.ts'
import { refusalOf } from './chunk-limit.ts'

export interface BodyStorageOptions {
  /** Folder of temporary files, created when it is needed. The system's own if absent. */
  readonly folder?: string
  /** The memory for bodies that are arriving, in bytes. The first 64 kB of each do not count. Default: 32 MB. */
  readonly arrivingBytes?: number
  /** The memory for bodies whose calls run, in bytes. A single body may be larger. Default: 96 MB. */
  readonly heldBytes?: number
  /** The disk space for all bodies. Default: 1 GB. */
  readonly diskBytes?: number
  /** The disk space for the bodies of one address. Default: 250 MB. */
  readonly diskBytesOfAddress?: number
  /** How fast all bodies together may go to disk. Clients that send faster are read more slowly. Default: 16 MB/s. */
  readonly diskBytesPerSecond?: number
  /** How long a body may wait for memory once it has arrived. Default: 15 seconds. */
  readonly maxWaitMs?: number
  /**
   * The interval over which the rate of a body is measured: in each, 4,096 bytes a second must arrive. It is also how far
   * a body may be behind the rate at which it arrives within a quarter of an hour. What the storage itself makes a body
   * wait does not count. Default: 10 s.
   */
  readonly graceMs?: number
  /** Replaced by tests. */
  readonly time?: ArrivalTime
}

/** The clock by which the rate of bodies is measured. */
export interface ArrivalTime {
  /** Milliseconds that never decrease. */
  readonly now: () => number
  /** Runs a function in each interval. Returns a function that stops it. */
  readonly every: (ms: number, run: () => void) => () => void
}

/**
 * The storages of a gateway. Free uploads, which anybody can send, take no room from those that come with a payment.
 */
export interface BodyStorages {
  readonly paid: BodyStorage
  readonly free: BodyStorage
}

/** A body that has arrived. */
export interface ArrivedBody {
  readonly size: number
  /**
   * Reads it, once. Waits while other bodies hold the memory.
   * @param isShared returns memory that threads share
   * @throws Unavailable if the wait takes too long, InvalidInput if the body is released meanwhile
   */
  bytes(isShared?: boolean): Promise<Buffer>
  /** Whether it takes memory, or waits for it, once it is read. */
  readonly isLarge: boolean
  /** Whether it takes memory until it is released. */
  readonly isHeld: boolean
  /** Frees what it takes, and its place if it waits for memory. Does nothing the second time. */
  release(): void
}

/** Looks at each piece of a body as it arrives. It may throw ServiceError, which ends the reading. */
export type Inspect = (piece: Buffer) => void

/** Each body may have this much in memory without being counted. */
const SMALL_BYTES = 65_536
const ARRIVING_BYTES = 32_000_000
const HELD_BYTES = 96_000_000
const DISK_BYTES = 1_000_000_000
const DISK_BYTES_OF_ADDRESS = DISK_BYTES / 4
/**
 * Every 20 to 60 MB that arrive cause a full garbage collection, which stops the event loop for 10 to 40 ms, because V8
 * counts the buffers of Node's sockets as memory pressure. At this rate that happens once in one to four seconds.
 */
const DISK_BYTES_PER_SECOND = 16_000_000
const GRACE_MS = 10_000
/** A slower body is cut off. */
const MIN_BYTES_PER_SECOND = 4_096
/** How long a body may take that announces its size. Node ends a request of unknown size after the same time. */
const MAX_ARRIVAL_MS = 900_000
const SWEEPS_PER_GRACE = 5
/** Larger pieces of memory are copied in turns, so that other calls go on. */
const TURN_BYTES = 500_000
const FILE_PIECE_BYTES = 262_144
/** How much of large bodies is taken in one turn of the event loop. */
const TAKEN_BYTES = 250_000
/** A body of this many pieces joins the tiny ones that follow, to pieces of up to TAIL_BYTES. */
const MANY_PIECES = 16
const TINY_BYTES = 4_096
const TAIL_BYTES = 16_384
const NOTHING = Buffer.alloc(0)

const REAL_TIME: ArrivalTime = {
  now: () => performance.now(),
  every(ms, run) {
    const timer = setInterval(run, ms).unref()
    return () => clearInterval(timer)
  },
}

/** The bodies of one kind of request, and the memory and disk that they share. */
export class BodyStorage {
  readonly #options: BodyStorageOptions
  readonly #time: ArrivalTime
  readonly #arriving: Share
  /** The memory of bodies whose calls run. */
  readonly held: HeldMemory
  readonly #disk: DiskShare
  readonly #running = new Set<Arrival>()
  /** Ends the sweeping; null while no body arrives. */
  #stopSweeper: (() => void) | null = null
  /**
   * How many bytes of large bodies this turn of the event loop has taken, and the next turn once somebody waits for it.
   */
  #taken = 0
  #next: Promise<unknown> | null = null
  /** When the next bytes may go to disk, as performance.now() tells it. */
  #diskFreeAt = 0

  constructor(options: BodyStorageOptions = {}) {
    this.#options = options
    this.#time = options.time ?? REAL_TIME
    this.#arriving = new Share(options.arrivingBytes ?? ARRIVING_BYTES)
    this.held = new HeldMemory(options.heldBytes ?? HELD_BYTES, options.maxWaitMs)
    this.#disk = new DiskShare(options.diskBytes ?? DISK_BYTES, options.diskBytesOfAddress ?? DISK_BYTES_OF_ADDRESS)
  }

  /** How many bytes are in memory beyond the first of each body, and on disk. */
  get used(): { readonly arriving: number; readonly held: number; readonly disk: number } {
    return { arriving: this.#arriving.used, held: this.held.used, disk: this.#disk.used }
  }

  /**
   * Reads a whole body. Throws `body_too_large` as soon as more than `limit` bytes are announced or sent, `body_too_slow` if
   * it does not arrive, Unavailable if there is no room for it, and InvalidInput if it ends too early. Reads by events: an
   * iterator costs more than the rest of a small call.
   * @param address where it comes from
   */
  receive(request: IncomingMessage, limit: number, inspect?: Inspect, address = ''): Promise<ArrivedBody> {
    const announced = Number(request.headers['content-length'] ?? 0)
    if (announced > limit) return Promise.reject(tooLarge(limit))
    return new Promise((resolve, reject) => {
      const arrival = new Arrival(this, this.#arriving, this.#disk, address, announced)
      const take = (piece: Buffer): void => {
        try {
          if (arrival.size + piece.length > limit) throw tooLarge(limit)
          inspect?.(piece)
          const written = arrival.add(piece) ?? this.#turn(arrival.size, piece)
          if (!written) return
          request.pause()
          arrival.pause()
          written.then(() => {
            arrival.resume()
            request.resume()
          }, fail)
        } catch (error) {
          fail(error)
        }
      }
      const finish = (): void => {
        stop()
        try {
          const written = arrival.flush()
          if (written) written.then(() => resolve(arrival), fail)
          else resolve(arrival)
        } catch (error) {
          fail(error)
        }
      }
      const breakOff = (): void => fail(incomplete())
      const fail = (error: unknown): void => {
        stop()
        // The rest of the body is dropped, so that the connection stays open for the answer.
        request.on('error', () => {}).resume()
        arrival.release()
        reject(error)
      }
      const stop = (): void => {
        this.#running.delete(arrival)
        request.off('data', take).off('end', finish).off('error', breakOff).off('close', breakOff).off('refused', fail)
      }
      arrival.cut = () => fail(tooSlow())
      this.#running.add(arrival)
      this.#stopSweeper ??= this.#startSweeper()
      request.on('data', take).on('end', finish).on('error', breakOff).on('close', breakOff).on('refused', fail)
      const refusal = refusalOf(request)
      if (refusal) fail(refusal)
      else if (request.destroyed) breakOff()
    })
  }

  /** The time by which the rate of bodies is measured. */
  now(): number {
    return this.#time.now()
  }

  /** The folder of temporary files. */
  folder(): string {
    const { folder } = this.#options
    if (folder === undefined) return tmpdir()
    makePrivateFolder(folder)
    return folder
  }

  /**
   * Returns a promise of the next turn of the event loop once large bodies have taken their share of this one. Node
   * reads up to 2 MB of each connection at once, so many uploads would delay every other call.
   */
  #turn(size: number, piece: Buffer): Promise<unknown> | null {
    if (size <= SMALL_BYTES) return null
    this.#taken += piece.length
    if (this.#taken < TAKEN_BYTES) return null
    this.#next ??= setImmediate().then(() => {
      this.#taken = 0
      this.#next = null
    })
    return this.#next
  }

  /** Waits until this many more bytes may go to disk. */
  async pace(bytes: number): Promise<void> {
    const now = performance.now()
    const startAt = Math.max(now, this.#diskFreeAt)
    this.#diskFreeAt = startAt + (bytes / (this.#options.diskBytesPerSecond ?? DISK_BYTES_PER_SECOND)) * 1000
    if (startAt > now) await sleep(startAt - now, undefined, { ref: false })
  }

  /** Cuts off bodies that arrive too slowly. It runs while bodies arrive. */
  #startSweeper(): () => void {
    const graceMs = this.#options.graceMs ?? GRACE_MS
    return this.#time.every(graceMs / SWEEPS_PER_GRACE, () => {
      const now = this.now()
      for (const arrival of this.#running) if (arrival.isTooSlow(now, graceMs)) arrival.cut()
      if (this.#running.size > 0) return
      this.#stopSweeper?.()
      this.#stopSweeper = null
    })
  }
}

/** One body, in memory or in a file. */
class Arrival implements ArrivedBody {
  size = 0
  /** Ends the reading, because the body is too slow. */
  cut: () => void = () => {}
  readonly #storage: BodyStorage
  readonly #memory: Share
  readonly #disk: DiskShare
  readonly #address: string
  /** The size that was announced; 0 if none was. */
  readonly #announced: number
  #pieces: Buffer[] = []
  /** The size of the pieces. */
  #unwritten = 0
  /** The last piece, if it was made of tiny ones, and the memory that it may grow into. */
  #tail: Buffer = NOTHING
  #room: Buffer = NOTHING
  /** Its part of the shared memory. */
  #counted = 0
  #file: Promise<FileHandle> | null = null
  #writing: Promise<unknown> | null = null
  #onDisk = 0
  /** The place that `#onDisk` counts for. */
  #place = ''
  #hold: Hold | null = null
  #isReleased = false
  /** Bytes received at the last rate check. */
  #seen: { readonly size: number; at: number }
  /** When it began to arrive, without the time in which the storage did not read on. */
  #startedAt: number
  /** Since when the storage has not read on. Null while it reads. */
  #pausedAt: number | null = null

  constructor(storage: BodyStorage, memory: Share, disk: DiskShare, address: string, announced: number) {
    this.#storage = storage
    this.#memory = memory
    this.#disk = disk
    this.#address = address
    this.#announced = announced
    this.#startedAt = storage.now()
    this.#seen = { size: 0, at: this.#startedAt }
  }

  get isHeld(): boolean {
    return this.#hold?.isGranted === true
  }

  get isLarge(): boolean {
    return this.size > SMALL_BYTES
  }

  /** Keeps a piece. Returns a promise while it is written to disk. Throws Unavailable if there is no room on it. */
  add(piece: Buffer): Promise<unknown> | null {
    this.size += piece.length
    if (this.#file) {
      this.#keep(piece)
      return this.#unwritten >= FILE_PIECE_BYTES ? this.flush() : null
    }
    this.#keep(piece)
    const counted = Math.max(0, this.size - SMALL_BYTES)
    this.#memory.used += counted - this.#counted
    this.#counted = counted
    if (counted === 0 || this.#memory.used <= this.#memory.limit) return null
    this.#place = placeOf(this.#address)
    this.#file = openUnnamed(this.#storage.folder())
    // The writer gets the error, perhaps only when its turn comes.
    this.#file.catch(() => {})
    return this.flush()
  }

  /**
   * Writes the pieces in memory to disk, if the body is on disk at all. Throws Unavailable if there is no room, and
   * rejects with it if the write fails.
   */
  flush(): Promise<unknown> | null {
    if (!this.#file || this.#unwritten === 0) return this.#writing
    const bytes = this.#unwritten
    this.#disk.take(this.#place, bytes)
    this.#onDisk += bytes
    this.#writing = this.#write(this.#file, this.#writing, this.#pieces, bytes)
    this.#leaveMemory()
    return this.#writing
  }

  async bytes(isShared = false): Promise<Buffer> {
    const [only, ...more] = this.#pieces
    if (!isShared && only && more.length === 0 && !this.isLarge) return only
    await this.#enter()
    const joined = isShared ? Buffer.from(new SharedArrayBuffer(this.size)) : Buffer.allocUnsafe(this.size)
    if (this.#file) await this.#readFile(await this.#file, joined)
    else await this.#joinPieces(joined)
    return joined
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#leaveMemory()
    if (this.#hold) this.#storage.held.release(this.#hold)
    void this.#close()
  }

  /** Notes that the storage does not read on, which is not the sender's fault. */
  pause(): void {
    this.#pausedAt ??= this.#storage.now()
  }

  resume(): void {
    if (this.#pausedAt === null) return
    const pausedMs = this.#storage.now() - this.#pausedAt
    this.#seen.at += pausedMs
    this.#startedAt += pausedMs
    this.#pausedAt = null
  }

  /**
   * Whether too little arrived within the last `graceMs` in which the storage read, or so little since it began that it
   * will not have arrived in time.
   */
  isTooSlow(now: number, graceMs: number): boolean {
    if (this.#pausedAt !== null) return false
    const due = (this.#announced * (now - this.#startedAt - graceMs)) / MAX_ARRIVAL_MS
    if (this.size < due) return true
    if (now - this.#seen.at < graceMs) return false
    const isSlow = this.size - this.#seen.size < (MIN_BYTES_PER_SECOND * graceMs) / 1000
    this.#seen = { size: this.size, at: now }
    return isSlow
  }

  /** Takes its place among the bodies whose calls run. A small one needs none. */
  async #enter(): Promise<void> {
    if (this.#isReleased) throw incomplete()
    if (!this.isLarge || this.#hold) return
    this.#hold = this.#storage.held.ask(this.size)
    await this.#hold.granted
    if (this.#isReleased) throw incomplete()
    this.#memory.used -= this.#counted
    this.#counted = 0
  }

  #leaveMemory(): void {
    this.#pieces = []
    this.#unwritten = 0
    this.#memory.used -= this.#counted
    this.#counted = 0
  }

  async #joinPieces(joined: Buffer): Promise<void> {
    const pieces = this.#pieces
    this.#pieces = []
    let [at, turnEnds] = [0, TURN_BYTES]
    for (const piece of pieces) {
      at += piece.copy(joined, at)
      if (at < turnEnds) continue
      turnEnds = at + TURN_BYTES
      await setImmediate()
    }
  }

  async #readFile(file: FileHandle, joined: Buffer): Promise<void> {
    for (let at = 0; at < joined.length;) {
      if (this.#isReleased) throw incomplete()
      const { bytesRead } = await file.read(joined, at, Math.min(FILE_PIECE_BYTES, joined.length - at), at)
      if (bytesRead === 0) throw new Error('a temporary file ended too early')
      at += bytesRead
    }
    await this.#close()
  }

  /** Keeps a piece in memory. Many tiny ones are copied together, because a buffer takes more than its bytes. */
  #keep(piece: Buffer): void {
    this.#unwritten += piece.length
    if (this.#pieces.length < MANY_PIECES || piece.length > TINY_BYTES) {
      this.#pieces.push(piece)
      return
    }
    if (this.#tail.length + piece.length > TAIL_BYTES || this.#pieces.at(-1) !== this.#tail) {
      // The piece that was last stays as it is. The next tiny ones are added to this one.
      this.#room = Buffer.allocUnsafe(TAIL_BYTES)
      this.#tail = this.#room.subarray(0, 0)
      this.#pieces.push(this.#tail)
    }
    const end = this.#tail.length + piece.copy(this.#room, this.#tail.length)
    this.#tail = this.#room.subarray(0, end)
    this.#pieces[this.#pieces.length - 1] = this.#tail
  }

  async #write(
    opening: Promise<FileHandle>,
    before: Promise<unknown> | null,
    pieces: readonly Buffer[],
    bytes: number,
  ): Promise<void> {
    await before
    await this.#storage.pace(bytes)
    if (this.#isReleased) return
    try {
      const file = await opening
      for (const piece of pieces) await file.appendFile(piece)
    } catch (error) {
      throw noRoom(error)
    }
  }

  /** Closes the file, which has no name any more, so that the system removes it. */
  async #close(): Promise<void> {
    const [file, writing, onDisk] = [this.#file, this.#writing, this.#onDisk]
    this.#file = null
    this.#onDisk = 0
    if (!file) return
    await writing?.catch(() => {})
    await file.then((handle) => handle.close()).catch(() => {})
    this.#disk.free(this.#place, onDisk)
  }
}

/** Wraps bytes that are in memory already as an arrived body. */
export function bodyOf(bytes: Buffer): ArrivedBody {
  return {
    size: bytes.length,
    isLarge: false,
    isHeld: false,
    async bytes(isShared = false) {
      if (!isShared) return bytes
      const shared = Buffer.from(new SharedArrayBuffer(bytes.length))
      bytes.copy(shared)
      return shared
    },
    release: () => {},
  }
}

/** Opens a temporary file and removes its name at once, so that the system deletes it however the process ends. */
async function openUnnamed(folder: string): Promise<FileHandle> {
  const path = join(folder, `body-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600)
  try {
    await unlink(path)
  } catch (error) {
    await file.close()
    throw error
  }
  return file
}

function tooLarge(limit: number): ServiceError {
  const fields = { max_bytes: limit }
  return new ServiceError('body_too_large', `The body is larger than ${limit} bytes, the limit of this route.`, {
    fields,
  })
}

/** The connection ends with the answer, because the rest of the body may never come. */
function tooSlow(): ServiceError {
  return new ServiceError('body_too_slow', undefined, { headers: { connection: 'close' } })
}
