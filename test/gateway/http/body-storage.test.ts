import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import * as fc from 'fast-check'
import {
  type ArrivalTime,
  type ArrivedBody,
  BodyStorage,
  type BodyStorageOptions,
} from '../../../gateway/http/body-storage.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { until } from '../../support/until.ts'

const LIMIT = 10_000_000
const NOTHING = { arriving: 0, held: 0, disk: 0 }

describe('the storage of request bodies', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'bodies-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))
  afterEach(() => {
    expect(readdirSync(folder), 'files with a name').to.deep.equal([])
  })

  const open = (options: BodyStorageOptions): BodyStorage => new BodyStorage({ folder, ...options })
  const newRequest = (headers: object = {}) =>
    Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage
  /** Sends a body in pieces of a size, and waits until it has arrived. */
  async function send(storage: BodyStorage, bytes: Buffer, size = 100_000): Promise<ArrivedBody> {
    const request = newRequest()
    const arriving = storage.receive(request, LIMIT)
    for (let at = 0; at < bytes.length; at += size) request.write(bytes.subarray(at, at + size))
    request.end()
    return arriving
  }
  async function refusal(work: Promise<unknown>): Promise<string> {
    try {
      await work
    } catch (error) {
      if (error instanceof ServiceError) return error.code
      throw error
    }
    return 'accepted'
  }
  /** How many deleted files of the folder this process has open. */
  const openFiles = (): number =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(join(folder, 'body-'))
      } catch {
        return false
      }
    }).length

  it('returns the bytes that arrived, in memory or on disk, and frees everything', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 700_000 }),
        fc.constantFrom(1_000, 5_000, 70_000, 300_000),
        fc.constantFrom(0, 100_000, 1_000_000),
        fc.boolean(),
        async (length, size, arrivingBytes, isShared) => {
          const storage = open({ arrivingBytes })
          const bytes = randomBytes(length)
          const arrived = await send(storage, bytes, size)
          expect(storage.used.disk > 0).to.equal(length > 65_536 + arrivingBytes)
          const found = await arrived.bytes(isShared)
          expect(found.equals(bytes)).to.equal(true)
          expect(found.buffer instanceof SharedArrayBuffer).to.equal(isShared)
          expect(arrived.isHeld).to.equal(length > 65_536)
          expect(storage.used.held).to.equal(arrived.isHeld ? length : 0)
          arrived.release()
          arrived.release()
          await until(() => storage.used.disk === 0)
          expect(storage.used).to.deep.equal(NOTHING)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('takes a quarter of a megabyte of large bodies at once, and lets other work go on before it takes more', async () => {
    const storage = open({})
    const requests = Array.from({ length: 20 }, () => newRequest())
    const arriving = requests.map((request) => storage.receive(request, LIMIT))
    for (const request of requests) request.emit('data', Buffer.alloc(200_000))
    expect(requests.filter((request) => request.isPaused())).to.have.length(19)
    await until(() => requests.every((request) => !request.isPaused()))
    for (const request of requests) request.end()
    for (const arrived of await Promise.all(arriving)) arrived.release()
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('keeps a body of tiny pieces in few buffers', async () => {
    const storage = open({})
    const arrived = await send(storage, randomBytes(300_000), 10)
    // Each buffer is copied once when they are joined.
    const { copy } = Buffer.prototype
    let copies = 0
    Buffer.prototype.copy = function (this: Buffer, ...given: Parameters<typeof copy>) {
      copies += 1
      return copy.apply(this, given)
    }
    try {
      await arrived.bytes()
    } finally {
      Buffer.prototype.copy = copy
    }
    expect(copies).to.be.within(1, 60)
    arrived.release()
  })

  it('writes bodies to disk beyond its memory, however many arrive at once and stop', async () => {
    const storage = open({ arrivingBytes: 1_000_000, graceMs: 120_000 })
    const requests = Array.from({ length: 20 }, () => newRequest())
    const arriving = requests.map((request) => storage.receive(request, LIMIT))
    for (const request of requests) request.write(randomBytes(600_000))
    await until(() => storage.used.disk > 600_000 * 17)
    expect(storage.used.arriving).to.be.at.most(1_000_000)
    // A file is counted when it is asked for, and open a little later.
    await until(() => openFiles() > 17)
    for (const request of requests) request.destroy()
    for (const each of arriving) expect(await refusal(each)).to.equal('validation_failed')
    // The room of a file is free a little after it was closed.
    await until(() => openFiles() === 0 && storage.used.disk === 0)
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('refuses a body for which there is no room on disk either, and goes on with the others', async () => {
    const storage = open({ arrivingBytes: 0, diskBytes: 1_000_000 })
    const first = await send(storage, randomBytes(800_000))
    const refused = newRequest()
    const arriving = storage.receive(refused, LIMIT)
    refused.write(randomBytes(400_000))
    await arriving.then(
      () => expect.fail('the body was accepted'),
      (error: ServiceError) => expect([error.status, error.headers['retry-after']]).to.deep.equal([503, '10']),
    )
    expect((await first.bytes()).length).to.equal(800_000)
    first.release()
    await until(() => storage.used.disk === 0)
    const second = await send(storage, randomBytes(800_000))
    second.release()
    await until(() => storage.used.disk === 0)
    await until(() => openFiles() === 0)
  })

  it('refuses a body whose last bytes find no room on disk', async () => {
    const storage = open({ arrivingBytes: 0, diskBytes: 120_000 })
    const request = newRequest()
    const arriving = storage.receive(request, LIMIT)
    request.write(randomBytes(100_000))
    await until(() => storage.used.disk === 100_000)
    request.end(randomBytes(50_000))
    expect(await refusal(arriving)).to.equal('product_suspended')
    await until(() => storage.used.disk === 0)
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('reads bodies that go to disk no faster than it may, all together', async () => {
    const storage = open({ arrivingBytes: 0, diskBytesPerSecond: 1_000_000 })
    const startedAt = performance.now()
    const bodies = [randomBytes(600_000), randomBytes(600_000)]
    const arrived = await Promise.all(bodies.map((body) => send(storage, body)))
    // The second body waits until the first has had its time.
    expect(performance.now() - startedAt).to.be.at.least(590)
    for (const [at, body] of arrived.entries()) {
      expect((await body.bytes()).equals(bodies[at] as Buffer)).to.equal(true)
      body.release()
    }
    await until(() => storage.used.disk === 0)
  })

  it('refuses a body if its folder cannot be written', async () => {
    const storage = new BodyStorage({ folder: join(folder, 'nowhere'), arrivingBytes: 0 })
    rmSync(join(folder, 'nowhere'), { recursive: true, force: true })
    const folderOf = storage.folder.bind(storage)
    storage.folder = () => join(folderOf(), 'missing')
    expect(await refusal(send(storage, randomBytes(800_000)))).to.equal('product_suspended')
    rmSync(join(folder, 'nowhere'), { recursive: true })
    await until(() => storage.used.disk === 0)
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('lets bodies that have arrived wait for those whose calls run, in order, and not for ever', async () => {
    const storage = open({ heldBytes: 1_000_000, maxWaitMs: 5_000 })
    const [one, two, three] = await Promise.all([
      send(storage, randomBytes(700_000)),
      send(storage, randomBytes(700_000)),
      send(storage, randomBytes(400_000)),
    ])
    await one.bytes()
    const waiting = [two.bytes(), three.bytes()]
    expect(storage.used.held).to.equal(700_000)
    one.release()
    await waiting[0]
    // The third would have fitted in before the second.
    expect([two.isHeld, three.isHeld]).to.deep.equal([true, false])
    two.release()
    await waiting[1]
    three.release()
    expect(storage.used).to.deep.equal(NOTHING)
    const impatient = open({ heldBytes: 1_000_000, maxWaitMs: 50 })
    const running = await send(impatient, randomBytes(900_000))
    await running.bytes()
    const late = await send(impatient, randomBytes(200_000))
    expect(await refusal(late.bytes())).to.equal('product_suspended')
    late.release()
    running.release()
    expect(impatient.used).to.deep.equal(NOTHING)
  })

  it('lets a body go ahead when the one before it has waited too long', async () => {
    const storage = open({ heldBytes: 1_000_000, maxWaitMs: 50 })
    const [running, large, small] = await Promise.all([
      send(storage, randomBytes(600_000)),
      send(storage, randomBytes(900_000)),
      send(storage, randomBytes(200_000)),
    ])
    await running.bytes()
    const [refused, waiting] = [refusal(large.bytes()), small.bytes()]
    expect(await refused).to.equal('product_suspended')
    expect((await waiting).length).to.equal(200_000)
    for (const each of [running, large, small]) each.release()
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('gives no bytes of a body that is released while it waits', async () => {
    const storage = open({ heldBytes: 1_000_000 })
    const [running, waiting] = await Promise.all([
      send(storage, randomBytes(900_000)),
      send(storage, randomBytes(200_000)),
    ])
    await running.bytes()
    const bytes = refusal(waiting.bytes())
    waiting.release()
    running.release()
    expect(await bytes).to.equal('validation_failed')
    expect(await refusal(waiting.bytes()), 'afterwards').to.equal('validation_failed')
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('gives the place of a body that is released while it waits to the next one, at once', async () => {
    const storage = open({ heldBytes: 1_000_000 })
    const [running, large, small] = await Promise.all([
      send(storage, randomBytes(600_000)),
      send(storage, randomBytes(900_000)),
      send(storage, randomBytes(200_000)),
    ])
    await running.bytes()
    const [refused, waiting] = [refusal(large.bytes()), small.bytes()]
    large.release()
    expect(await refused).to.equal('validation_failed')
    expect((await waiting).length).to.equal(200_000)
    running.release()
    small.release()
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('gives no bytes of a body that is released while it is read from disk', async () => {
    const storage = open({ arrivingBytes: 0 })
    const arrived = await send(storage, randomBytes(2_000_000))
    const bytes = refusal(arrived.bytes())
    await until(() => arrived.isHeld)
    arrived.release()
    expect(await bytes).to.equal('validation_failed')
    await until(() => storage.used.disk === 0)
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('holds a body that is larger than its memory once no other is held', async () => {
    const storage = open({ heldBytes: 100_000 })
    const arrived = await send(storage, randomBytes(500_000))
    expect((await arrived.bytes()).length).to.equal(500_000)
    arrived.release()
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('cuts off a body that stops arriving, and not one that goes on', async () => {
    const storage = open({ graceMs: 200 })
    const [stalled, steady] = [newRequest(), newRequest()]
    stalled.write(randomBytes(300_000))
    const [cut, arriving] = [refusal(storage.receive(stalled, LIMIT)), storage.receive(steady, LIMIT)]
    const timer = setInterval(() => steady.write(randomBytes(10_000)), 10)
    expect(await cut).to.equal('body_too_slow')
    clearInterval(timer)
    steady.end()
    const arrived = await arriving
    arrived.release()
    expect(storage.used).to.deep.equal(NOTHING)
  })

  /** Time that passes only when it is told to. */
  class SimulatedTime implements ArrivalTime {
    #ms = 0
    readonly #sweeps = new Set<{ readonly ms: number; at: number; readonly run: () => void }>()
    readonly now = (): number => this.#ms

    readonly every = (ms: number, run: () => void): (() => void) => {
      const sweep = { ms, at: this.#ms + ms, run }
      this.#sweeps.add(sweep)
      return () => this.#sweeps.delete(sweep)
    }

    pass(ms: number): void {
      this.#ms += ms
      for (const sweep of this.#sweeps)
        for (; sweep.at <= this.#ms; sweep.at += sweep.ms) if (this.#sweeps.has(sweep)) sweep.run()
    }
  }

  interface Upload {
    readonly size: number
    /** Whether the size is announced. */
    readonly isAnnounced: boolean
    readonly bytesPerSecond: number
    /** The part of the body after which the sender stops, or leaves; all of it if absent. */
    readonly upTo?: number
    readonly leaves?: boolean
  }
  const ZEROS = Buffer.alloc(5_000_000)

  /** What becomes of uploads that are sent at once, in pieces of half a second each. */
  async function outcomesOf(uploads: readonly Upload[]): Promise<string[]> {
    const time = new SimulatedTime()
    const storage = open({ time, arrivingBytes: Number.POSITIVE_INFINITY })
    const outcomes: string[] = []
    const sent = uploads.map((upload) => {
      const request = newRequest(upload.isAnnounced ? { 'content-length': String(upload.size) } : {})
      return { ...upload, request, end: Math.floor(upload.size * (upload.upTo ?? 1)), bytes: 0 }
    })
    const ended = sent.map(async ({ request }, at) => {
      const arriving = storage.receive(request, 50_000_000)
      outcomes[at] = await refusal(arriving.then((arrived) => arrived.release()))
    })
    for (let seconds = 0; outcomes.filter(Boolean).length < uploads.length; seconds += 0.5) {
      for (const upload of sent) {
        const { request, size, end, leaves } = upload
        const due = Math.min(end, Math.floor(upload.bytesPerSecond * (seconds + 0.5)))
        if (due > upload.bytes) request.emit('data', ZEROS.subarray(0, due - upload.bytes))
        upload.bytes = due
        if (due === size) request.emit('end')
        else if (due === end && leaves) request.destroy()
      }
      do await setImmediate()
      while (sent.some(({ request }) => request.isPaused()))
      time.pass(500)
      expect(seconds, 'seconds until all have ended').to.be.below(950)
    }
    await Promise.all(ended)
    expect(storage.used).to.deep.equal(NOTHING)
    return outcomes
  }

  it('takes 16 MB from a phone that sends 25 kB a second, and cuts off 39 MB that come at 4 kB a second', async () => {
    const phone = { size: 16_000_000, isAnnounced: true, bytesPerSecond: 25_000 }
    const slow = { size: 39_000_000, isAnnounced: true, bytesPerSecond: 4_500 }
    const small = { size: 2_000_000, isAnnounced: true, bytesPerSecond: 4_500 }
    const stopped = { size: 39_000_000, isAnnounced: true, bytesPerSecond: 5_000_000, upTo: 0.97 }
    expect(await outcomesOf([phone, slow, small, stopped])).to.deep.equal([
      'accepted',
      'body_too_slow',
      'accepted',
      'body_too_slow',
    ])
  })

  it('takes every body that comes at the least rate or faster, and no other, whatever is sent beside it', async () => {
    const upload = fc
      .record({
        kind: fc.constantFrom('honest' as const, 'slow' as const, 'stopped' as const, 'left' as const),
        isAnnounced: fc.boolean(),
        bytes: fc.integer({ min: 100_000, max: 45_000_000 }),
        /** How far its rate is from the least one. */
        times: fc.double({ min: 1.25, max: 50, noNaN: true }),
        upTo: fc.double({ min: 0, max: 0.99, noNaN: true }),
      })
      .map(({ kind, isAnnounced, bytes, times, upTo }) => {
        const least = Math.max(4_096, isAnnounced ? bytes / 900 : 0)
        const bytesPerSecond = kind === 'slow' ? least / times : least * times
        // The server ends a request of unknown size that takes too long.
        const size = isAnnounced ? bytes : Math.min(bytes, Math.max(100_000, Math.floor(bytesPerSecond * 800)))
        const isWhole = kind === 'honest' || kind === 'slow'
        return { kind, size, isAnnounced, bytesPerSecond, upTo: isWhole ? 1 : upTo, leaves: kind === 'left' }
      })
    const expected = { honest: 'accepted', slow: 'body_too_slow', stopped: 'body_too_slow', left: 'validation_failed' }
    await fc.assert(
      fc.asyncProperty(fc.array(upload, { minLength: 1, maxLength: 6 }), async (uploads) => {
        expect(await outcomesOf(uploads)).to.deep.equal(uploads.map(({ kind }) => expected[kind]))
      }),
      { numRuns: 40 },
    )
  })

  it('does not count the time against a body for which the disk makes it wait', async () => {
    const storage = open({ arrivingBytes: 0, diskBytesPerSecond: 2_000_000, graceMs: 200 })
    const bodies = Array.from({ length: 4 }, () => randomBytes(500_000))
    // Each has to wait for the pieces of the others, for half a second at a time.
    const arrived = await Promise.all(bodies.map((body) => send(storage, body)))
    for (const [at, body] of arrived.entries()) {
      expect((await body.bytes()).equals(bodies[at] as Buffer)).to.equal(true)
      body.release()
    }
    await until(() => storage.used.disk === 0)
  })

  it('cuts off a body that stops arriving after the disk has made it wait', async () => {
    const storage = open({ arrivingBytes: 0, diskBytesPerSecond: 500_000, graceMs: 200 })
    const stalled = newRequest()
    stalled.write(randomBytes(400_000))
    expect(await refusal(storage.receive(stalled, LIMIT))).to.equal('body_too_slow')
    await until(() => storage.used.disk === 0)
    expect(storage.used).to.deep.equal(NOTHING)
  })

  it('refuses a body over the limit when it is announced, or when it exceeds it, and reads the rest away', async () => {
    const storage = open({})
    expect(await refusal(storage.receive(newRequest({ 'content-length': String(LIMIT + 1) }), LIMIT))).to.equal(
      'body_too_large',
    )
    const request = newRequest()
    const arriving = refusal(storage.receive(request, 100_000))
    for (let at = 0; at < 10; at += 1) request.write(Buffer.alloc(50_000))
    request.end()
    expect(await arriving).to.equal('body_too_large')
    await until(() => request.readableEnded)
    expect(storage.used).to.deep.equal(NOTHING)
  })
})
