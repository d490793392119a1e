/** When a text that vanished, or shrank, counts as taken back. */
import { expect } from 'chai'
import { OLD_RELEASE, openPolledTestFeed, rssOf, type TestFeed } from '../test-feed.ts'

const MINUTE = 60_000
/** An entry that cannot be read, because it has neither a key nor a date. */
const UNREADABLE = '<item><title>Broken</title></item></channel>'

interface Shown {
  readonly id: string
  readonly source_key: string
  readonly status: string
  readonly text: string
  readonly revision: number
}

describe('an item that its feed lacks', () => {
  let feed: TestFeed
  const release = (key: string, minute: number, text = `Release ${key}, about something else.`) => ({
    key,
    text,
    at: Date.UTC(2026, 4, 1, 12, 30 + minute),
  })
  const [a, b] = [release('a', 0), release('b', 1)]

  beforeEach(async () => {
    feed = await openPolledTestFeed()
  })
  afterEach(() => feed.close())

  async function poll(...bodies: readonly string[]): Promise<void> {
    for (const body of bodies) {
      feed.time += MINUTE
      await feed.poll('wh.news', body)
    }
  }
  async function shown(key: string): Promise<Shown | undefined> {
    const { items } = await feed.ask<{ items: Shown[] }>('getPotusLive', { query: { limit: 100 } })
    return items.find((item) => item.source_key.endsWith(`=${key}`))
  }

  it('is not retracted by lists that could not be read as a whole, however often they are repeated', async () => {
    const whole = rssOf([a, OLD_RELEASE])
    const partial = rssOf([b, a, OLD_RELEASE]).replace('</channel>', UNREADABLE)
    await poll(rssOf([b, a, OLD_RELEASE]), whole, partial, partial, partial)
    expect(await shown('b')).to.include({ status: 'active' })
    await poll(whole, whole, whole)
    expect(await shown('b')).to.include({ status: 'retracted' })
  })

  it('is not cut to a stub that only one list showed', async () => {
    const full = 'All of the text of a long release. '.repeat(20)
    const long = release('long', 2, full)
    const without = rssOf([b, a, OLD_RELEASE])
    await poll(rssOf([long, b, a]), rssOf([release('long', 2, 'Read more.'), b, a]), without, without, without)
    expect(await shown('long')).to.deep.include({ text: full.trim(), revision: 1 })
  })

  it('is corrected, in one version, when it returns with another text', async () => {
    const without = rssOf([a, OLD_RELEASE])
    await poll(rssOf([b, a, OLD_RELEASE]), without, without, without)
    expect(await shown('b')).to.include({ status: 'retracted' })
    await poll(rssOf([release('b', 1, 'Release b, with a new ending.'), a, OLD_RELEASE]))
    expect(await shown('b')).to.include({ status: 'corrected', revision: 2, text: 'Release b, with a new ending.' })
    const { revisions } = await feed.ask<{ revisions: { status: string }[] }>('getPotusEvent', {
      params: { selector: (await shown('b'))?.id },
    })
    expect(revisions.map(({ status }) => status)).to.deep.equal(['active', 'retracted', 'corrected'])
  })
})
