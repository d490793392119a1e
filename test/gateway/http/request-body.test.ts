import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { LARGE_BODY_BYTES } from '../../../gateway/catalog/large-body.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { BodyStorage } from '../../../gateway/http/body-storage.ts'
import { readBody } from '../../../gateway/http/request-body.ts'
import type { Upload } from '../../../gateway/plugin/plugin.ts'
import { until } from '../../support/until.ts'

type Headers = Readonly<Record<string, string>>

/** A request whose body arrives in chunks of the given size. */
function incoming(headers: Headers, body: Buffer, size = 7): IncomingMessage {
  const stream = new PassThrough()
  for (let at = 0; at < body.length; at += size) stream.write(body.subarray(at, at + size))
  stream.end()
  return Object.assign(stream, {
    headers: { 'transfer-encoding': 'chunked', ...headers },
  }) as unknown as IncomingMessage
}

const read = (bodyMedia: string[], headers: Headers, body: string | Buffer, size?: number) =>
  readBody(incoming(headers, Buffer.from(body), size), { bodyMedia, maxBytes: 100_000 })

async function codeOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading
  } catch (error) {
    if (error instanceof ServiceError) return error.code
    throw error
  }
  return 'accepted'
}

describe('the reader of request bodies', () => {
  it('hands on the bytes of large JSON in memory that threads share, however they arrive, and parses what is smaller', async () => {
    const handed: Buffer[] = []
    const readJson = (bytes: Buffer, size: number): Promise<unknown> =>
      readBody(
        incoming({}, bytes, size),
        { bodyMedia: ['application/json'], maxBytes: 1_000_000 },
        {
          readLarge: (large) => {
            handed.push(large)
            return 'handed on'
          },
        },
      )
    const textOf = (length: number): Buffer => Buffer.from(JSON.stringify('x'.repeat(length - 2)))
    expect(await readJson(textOf(LARGE_BODY_BYTES), 65_536)).to.equal('x'.repeat(LARGE_BODY_BYTES - 2))
    const large = textOf(LARGE_BODY_BYTES + 1)
    for (const size of [65_536, large.length]) {
      expect(await readJson(large, size)).to.equal('handed on')
      expect(handed.at(-1)?.equals(large)).to.equal(true)
      expect(handed.at(-1)?.buffer).to.be.instanceOf(SharedArrayBuffer)
    }
  })

  it('lets a body be freed as soon as it has arrived, so that one whose caller has left does not wait for memory', async () => {
    const storage = new BodyStorage({ heldBytes: 150_000 })
    const releases: (() => void)[] = []
    const readHeld = (length: number): Promise<unknown> =>
      readBody(
        incoming({}, Buffer.alloc(length, 'x'), 65_536),
        { bodyMedia: ['text/csv'], maxBytes: 1_000_000 },
        { storage, whenArrived: (body) => releases.push(() => body.release()) },
      )
    await readHeld(100_000)
    const left = codeOf(readHeld(120_000))
    await until(() => releases.length === 2)
    releases[1]?.()
    expect(await left).to.equal('validation_failed')
    releases[0]?.()
    expect(storage.used.held).to.equal(0)
  })

  it('finds every part of a multipart body, however it is split into chunks', async () => {
    const name = fc.stringMatching(/^[a-z]{1,8}$/)
    const part = fc.record({ name, file: fc.boolean(), bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }) })
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(part, { selector: ({ name }) => name, maxLength: 5 }),
        fc.integer({ min: 1, max: 90 }),
        async (parts, size) => {
          const pieces = parts.flatMap((part) => {
            const bytes = part.file ? Buffer.from(part.bytes) : Buffer.from(Buffer.from(part.bytes).toString('base64'))
            const extra = part.file ? '; filename="f.bin"\r\nContent-Type: application/octet-stream' : ''
            const head = `--edge\r\nContent-Disposition: form-data; name="${part.name}"${extra}\r\n\r\n`
            return [Buffer.from(head), bytes, Buffer.from('\r\n')]
          })
          const body = Buffer.concat([...pieces, Buffer.from('--edge--\r\n')])
          const type = { 'content-type': 'multipart/form-data; boundary=edge' }
          const found = (await read(['multipart/form-data'], type, body, size)) as Record<string, string | Upload>
          expect(Object.keys(found).sort()).to.deep.equal(parts.map((part) => part.name).sort())
          for (const part of parts) {
            const value = found[part.name]
            if (typeof value === 'string') expect(value).to.equal(Buffer.from(part.bytes).toString('base64'))
            else expect(value?.bytes.equals(Buffer.from(part.bytes))).to.equal(true)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('finds a large file in a form without copying it, also if a turn ends in what may begin a boundary', async () => {
    const head = (name: string): string =>
      `--edge\r\nContent-Disposition: form-data; name="${name}"; filename="f.csv"\r\nContent-Type: text/csv\r\n\r\n`
    const readWith = async (straddling: string, shift: number): Promise<Buffer | undefined> => {
      const [large, small] = [Buffer.alloc(2_500_000, 'abc'), Buffer.from('a,b\r\n1,2')]
      large.write(straddling, 1_000_000 - head('large').length - shift, 'latin1')
      const pieces = [head('large'), large, '\r\n', head('small'), small, '\r\n--edge--\r\n']
      const body = Buffer.concat(pieces.map((piece) => Buffer.from(piece)))
      const type = { 'content-type': 'multipart/form-data; boundary=edge' }
      const request = incoming(type, body, 65_536)
      const form = await readBody(request, { bodyMedia: ['multipart/form-data'], maxBytes: 5_000_000 })
      const found = form as Record<string, Upload>
      expect(found['large']?.bytes.equals(large)).to.equal(true)
      expect(found['small']?.bytes.equals(small)).to.equal(true)
      return found['large']?.bytes
    }
    for (const straddling of ['', '\r', '\r\n', '\r\n--'])
      for (let shift = 0; shift <= straddling.length; shift += 1) {
        const where = `${JSON.stringify(straddling)}, ${shift} before the end of the turn`
        expect((await readWith(straddling, shift))?.buffer, where).to.be.instanceOf(SharedArrayBuffer)
      }
    for (const straddling of ['\r\n--edg', '\r\n\r\n--', '\r\r\r\r\r\r', '-'.repeat(40)])
      for (let shift = 0; shift <= straddling.length; shift += 1) await readWith(straddling, shift)
  })

  it('refuses a form with a part that nobody can read, instead of waiting for it', async () => {
    const type = { 'content-type': 'multipart/form-data; boundary=edge' }
    for (const head of ['C\n\r\n\r\n', '=\r\n\r\n', 'Content-Disposiename=""\r\n\r\n', ''])
      for (const size of [64, 65_536]) {
        const body = `--edge\r\n${head}${'-name\r\n'.repeat(3_000)}\r\n--edge--`
        const outcome = await codeOf(read(['multipart/form-data'], type, body, size))
        expect(outcome, `${JSON.stringify(head)} in pieces of ${size}`).to.be.oneOf(['accepted', 'validation_failed'])
      }
    const finding = readFileSync(resolve(import.meta.dirname, '../../fuzz/corpus/multipart/finding-41d70fd62dda'))
    const unreadable = finding.subarray(finding.indexOf('\n\n') + 2)
    const reading = read(['multipart/form-data'], { 'content-type': 'multipart/form-data; boundary=b' }, unreadable, 64)
    expect(await codeOf(reading)).to.equal('validation_failed')
  })

  it('uses the first media type of the operation if the body names none', async () => {
    expect(await read(['application/json', 'text/csv'], {}, '[1]')).to.deep.equal([1])
    expect(await read(['text/csv', 'application/json'], {}, '[1]')).to.deep.equal({
      file: { filename: 'upload', mediaType: 'text/csv', bytes: Buffer.from('[1]') },
    })
  })

  it('refuses unsupported media types and bodies that are too long', async () => {
    expect(await codeOf(read(['application/json'], { 'content-type': 'image/png' }, 'x'))).to.equal('media_unsupported')
    expect(await codeOf(read(['application/json'], { 'content-encoding': 'br' }, 'x'))).to.equal('media_unsupported')
    const encoded: unknown = await read(['application/json'], { 'content-encoding': 'gzip' }, 'x').catch(
      (error) => error,
    )
    expect(encoded).to.have.property('headers').that.includes({ 'accept-encoding': 'identity' })
    expect(await codeOf(read(['application/json'], {}, ' '.repeat(100_001), 9000))).to.equal('body_too_large')
    expect(await codeOf(read(['application/json'], { 'content-length': '100001' }, ''))).to.equal('body_too_large')
    expect(await codeOf(read(['application/json'], {}, '{'))).to.equal('validation_failed')
  })

  it('reads nothing if the operation accepts no body', async () => {
    const request = incoming({}, Buffer.from('{"plan": "cheap"}'))
    expect(await readBody(request, { bodyMedia: [], maxBytes: 10 })).to.equal(undefined)
    expect((request as unknown as PassThrough).readableLength).to.equal(17)
  })

  it('treats a hostile field name in a form as data', async () => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const form = (await read(['application/x-www-form-urlencoded'], type, '__proto__=1&__proto__=2&a=')) as object
    expect(Object.entries(form)).to.deep.equal([
      ['__proto__', ['1', '2']],
      ['a', ''],
    ])
  })
})
