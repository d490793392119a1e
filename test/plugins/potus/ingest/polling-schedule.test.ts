/** When a source is polled again. */
import { expect } from 'chai'
import { pauseAfterFailure, pollSecondsAt, runSeconds } from '../../../../plugins/potus/ingest/polling.ts'
import { readSources, type Source } from '../../../../plugins/potus/sources/source.ts'

const START = Date.UTC(2026, 4, 1, 12)

describe('the polling schedule of a source', () => {
  it('waits twice as long after each failure, at least 15 minutes after five, and at most an hour', () => {
    const source = { pollSeconds: 60 }
    const waits = [1, 2, 3, 4, 5, 6, 7].map(
      (failures) => pauseAfterFailure(source, failures, {}, START, () => 0.5) / 1000,
    )
    expect(waits).to.deep.equal([60, 120, 240, 480, 960, 1920, 3600])
    expect(pauseAfterFailure(source, 1, { 'retry-after': '90' }, START)).to.equal(90_000)
    expect(pauseAfterFailure(source, 1, { 'retry-after': new Date(START + 45_000).toUTCString() }, START)).to.equal(
      45_000,
    )
    expect(pauseAfterFailure(source, 1, { 'retry-after': '999999' }, START)).to.equal(3_600_000)
  })

  it('asks a source that is seldom polled again after two minutes', () => {
    const waits = [1, 2, 3, 4, 5, 6].map(
      (failures) => pauseAfterFailure({ pollSeconds: 7200 }, failures, {}, START, () => 0.5) / 1000,
    )
    expect(waits).to.deep.equal([120, 240, 480, 960, 1920, 3600])
    const runs = [60, 120, 300, 600, 7200].map((pollSeconds) => runSeconds({ slots: [], pollSeconds }))
    expect(runs, 'its job runs as often').to.deep.equal([60, 120, 100, 120, 120])
  })

  it('waits as after any failure if Retry-After asks for no wait, and reads a date on the clock of the source', () => {
    const utc = (at: number): string => new Date(at).toUTCString()
    const wait = (headers: Record<string, string>) =>
      pauseAfterFailure({ pollSeconds: 60 }, 4, headers, START, () => 0.5) / 1000
    for (const none of ['0', '1.5', utc(START - 45_000)]) expect(wait({ 'retry-after': none }), none).to.equal(480)
    // Our clock is ten minutes ahead.
    const [date, until] = [utc(START - 600_000), utc(START - 480_000)]
    expect(wait({ date, 'retry-after': until })).to.equal(120)
  })

  it('polls more often around the publication times of the Federal Register in New York, in summer and winter', () => {
    const source = readSources().find(({ id }) => id === 'fr.pi') as Source
    const pace = (moment: string) => pollSecondsAt(source, Date.parse(moment))
    expect(['2026-07-01T15:13:00Z', '2026-07-01T15:15:00Z', '2026-07-01T15:35:00Z'].map(pace)).to.deep.equal([
      120, 120, 120,
    ])
    expect(['2026-07-01T15:12:00Z', '2026-07-01T15:36:00Z', '2026-07-01T16:15:00Z'].map(pace)).to.deep.equal([
      900, 900, 900,
    ])
    expect(pace('2026-12-01T16:15:00Z')).to.equal(120)
    expect(pace('2026-07-04T15:15:00Z')).to.equal(900)
    const docs = readSources().find(({ id }) => id === 'fr.docs') as Source
    expect([
      pollSecondsAt(docs, Date.parse('2026-07-01T15:00:00Z')),
      pollSecondsAt(docs, Date.parse('2026-07-01T05:00:00Z')),
    ]).to.deep.equal([900, 3600])
  })

  it('does not poll sources that must not be read, and of those that were never verified only the Fed and the State Department', () => {
    const sources = readSources()
    const off = sources.filter(({ enabled }) => !enabled).map(({ id }) => id)
    expect(off).to.include.members([
      'treasury.bulletins',
      'war.releases',
      'doj.press',
      'govinfo.dcpd',
      'truth.api',
      'rollcall.calendar',
    ])
    const unverified = sources.filter(({ verified, enabled }) => !verified && enabled)
    expect(unverified.map(({ id }) => id)).to.deep.equal(['fed.press', 'fed.speeches', 'state.press'])
    expect(() => readSources({ 'wh.nothing': { enabled: true } })).to.throw(RangeError, 'wh.nothing')
  })
})
