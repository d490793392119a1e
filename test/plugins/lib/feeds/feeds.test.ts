import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import fc from 'fast-check'
import { dataSettings, loopShift } from '../../../../plugins/lib/feeds/data-settings.ts'
import { findRecordings, readRecordedText, readRecording } from '../../../../plugins/lib/feeds/recordings.ts'
import { createPauses, RequestError, requestJson } from '../../../../plugins/lib/feeds/requests.ts'
import { hashOf, pickFor, seedOf } from '../../../../plugins/lib/feeds/sample-numbers.ts'

describe('the data settings of a deployment', () => {
  it('read the shift of recorded times as the gateway parsed it', () => {
    const deployment = { data_mode: 'replay', replay_shift: '-3600', replay_shift_seconds: '-3600' } as const
    const { replayShift } = dataSettings({ deployment })
    expect(replayShift).to.deep.equal({ setting: '-3600', seconds: -3600 })
  })

  it('name no folder and no shift if the data are made up', () => {
    expect(dataSettings({ deployment: { data_mode: 'sample', replay_shift: 'auto' } })).to.deep.equal({
      dataMode: 'sample',
      replayDir: undefined,
      replayShift: { setting: 'auto', seconds: null },
    })
  })

  it('loop a recording so that it is never older than its period, unless the shift is fixed', () => {
    fc.assert(
      fc.property(fc.nat(1e9), fc.integer({ min: 1, max: 1e6 }), fc.nat(2e9), (start, period, asOf) => {
        const shift = loopShift({ setting: 'auto', seconds: null }, { start, period }, asOf)
        expect(Math.abs(shift % period)).to.equal(0)
        expect(asOf - start - shift).to.be.within(0, period - 1)
        expect(loopShift({ setting: '60', seconds: 60 }, { start, period }, asOf)).to.equal(60)
      }),
    )
  })
})

describe('recorded files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-recordings-'))
  after(() => rmSync(folder, { recursive: true }))

  it('are found in every folder below, in the order of their paths, and read with or without gzip', async () => {
    mkdirSync(join(folder, 'b'))
    writeFileSync(join(folder, 'b', 'one.json'), '1')
    writeFileSync(join(folder, 'c.json.gz'), gzipSync('22'))
    writeFileSync(join(folder, 'a.txt'), 'no')
    const found = await findRecordings(folder, (name) => /\.json(\.gz)?$/.test(name))
    expect(found.map(({ name }) => name)).to.deep.equal(['one.json', 'c.json.gz'])
    expect(await Promise.all(found.map(({ path }) => readRecordedText(path)))).to.deep.equal(['1', '22'])
  })

  it('are refused if their compression is broken', async () => {
    writeFileSync(join(folder, 'broken.gz'), 'not gzip')
    const failed = await readRecording(join(folder, 'broken.gz')).then(
      () => false,
      () => true,
    )
    expect(failed).to.equal(true)
  })
})

describe('a JSON request to a data source', () => {
  const request = (answer: () => Response | Promise<Response>, signal = new AbortController().signal) =>
    requestJson({ url: 'http://source.invalid/path', label: 'the source', fetch: async () => answer(), signal })
  const failure = async (answer: () => Response | Promise<Response>): Promise<RequestError> => {
    const error: unknown = await request(answer).then(
      () => expect.fail('answered'),
      (reason: unknown) => reason,
    )
    expect(error).to.be.instanceOf(RequestError)
    return error as RequestError
  }

  it('returns the parsed answer', async () => {
    expect(await request(() => Response.json({ a: [1] }))).to.deep.equal({ a: [1] })
  })

  it('reports the status and the pause that Retry-After asks for', async () => {
    const busy = await failure(() => new Response('', { status: 429, headers: { 'retry-after': '30' } }))
    expect([busy.message, busy.status, busy.retryAfterSeconds]).to.deep.equal(['the source answered 429', 429, 30])
    const down = await failure(() => new Response('', { status: 503 }))
    expect([down.status, down.retryAfterSeconds]).to.deep.equal([503, null])
  })

  it('reads a Retry-After that is a date on the clock of the source', async () => {
    const refused = (headers: Record<string, string>) => failure(() => new Response('', { status: 503, headers }))
    const [date, until] = ['Fri, 20 Nov 2026 12:00:00 GMT', 'Fri, 20 Nov 2026 12:02:00 GMT']
    expect((await refused({ date, 'retry-after': until })).retryAfterSeconds).to.equal(120)
    expect((await refused({ 'retry-after': until })).retryAfterSeconds).to.equal(null)
    expect((await refused({ date, 'retry-after': 'soon' })).retryAfterSeconds).to.equal(null)
  })

  it('refuses answers that are not JSON, too long, or missing', async () => {
    expect((await failure(() => new Response('<html>'))).message).to.match(/not JSON/)
    expect((await failure(() => new Response('1'.repeat(17 * 1024 * 1024)))).message).to.match(/above 16777216 bytes/)
    expect((await failure(() => Promise.reject(new TypeError('fetch failed')))).message).to.match(/did not answer/)
  })

  it('fails with the reason of the caller who aborts', async () => {
    const reason = new Error('stopped')
    const aborted: unknown = await request(() => Promise.reject(reason), AbortSignal.abort(reason)).catch(
      (error: unknown) => error,
    )
    expect(aborted).to.equal(reason)
  })
})

describe('pauses of data sources', () => {
  it('end when their time is over, independently for each source', async () => {
    let now = 100
    const pauses = createPauses(() => now)
    await pauses.pause('one', 10)
    expect([pauses.isPaused('one'), pauses.isPaused('other')]).to.deep.equal([true, false])
    now = 110
    expect(pauses.isPaused('one')).to.equal(false)
  })

  it('are not shortened by another request that was under way', async () => {
    let now = 100
    const pauses = createPauses(() => now)
    await pauses.pause('one', 3600)
    now = 101
    await pauses.pause('one', 30)
    now = 3699
    expect(pauses.isPaused('one')).to.equal(true)
    now = 3700
    expect(pauses.isPaused('one')).to.equal(false)
  })
})

describe('numbers for sample data', () => {
  it('depend only on the text they are computed from, on every machine', () => {
    expect([hashOf('abc'), seedOf('a')]).to.deep.equal([3_128_432_319, -468_965_076])
    expect(pickFor(['x', 'y', 'z'], 'abc')).to.equal('x')
  })
})
