/** The live feed as server-sent events. */
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { ask, buy, json } from '../../../support/agent.ts'
import {
  follow as open,
  type Follower,
  listEvents as list,
  newestEvent as last,
  untilSampleWritten,
} from './stream-client.ts'
import { feedCatalog, openFeedGateway, type FeedGateway } from '../feed-gateway.ts'

const HOUR = 3600

describe('the live event stream', () => {
  let gateway: FeedGateway
  let token: string
  let revokedToken: string
  before(async () => {
    gateway = await openFeedGateway(feedCatalog())
    // A wallet signs by the real clock, so everything is bought before the clock is advanced.
    token = await gateway.token('live/30d')
    revokedToken = await gateway.token('live/30d')
  })
  after(() => gateway.close())

  const follow = (query = '', after?: string, bearer = token): Promise<Follower> =>
    open({ url: gateway.url, token: bearer, query, after })
  const listed = (since: string): Promise<string[]> => list({ url: gateway.url, token }, since)
  const newest = (): Promise<string> => last({ url: gateway.url, token })

  it('is open only to token holders: a single paid call gets a page, and an unpaid call gets 402', async () => {
    const unpaid = await ask(`${gateway.url}/v1/potus/live`, { headers: { accept: 'text/event-stream' } })
    expect([unpaid.status, unpaid.headers.get('content-type')]).to.deep.equal([402, 'application/json; charset=utf-8'])
    const response = await buy(`${gateway.url}/v1/potus/live?limit=1`, gateway.wallet, 2, {
      headers: { accept: 'text/event-stream' },
    })
    expect(response.headers.get('content-type')).to.include('application/json')
    expect(await json(response)).to.include({ count: 1 })
  })

  it('delivers every event once and in order when a client disconnects and resumes', async () => {
    const start = await newest()
    const first = await follow(`?since_seq=${start}`)
    expect(first.status).to.equal(200)
    gateway.advance(30 * HOUR)
    await first.until(3)
    first.disconnect()
    await first.ended
    // More events appear while no client is connected.
    gateway.advance(30 * HOUR)
    await untilSampleWritten({ url: gateway.url, token })
    const second = await follow('', first.ids.at(-1))
    await second.until(3)
    gateway.advance(30 * HOUR)
    await untilSampleWritten({ url: gateway.url, token })
    const all = await listed(start)
    await second.until(all.length - first.ids.length)
    second.disconnect()
    expect([...first.ids, ...second.ids]).to.deep.equal(all)
    expect(all.length).to.be.greaterThan(10)
  })

  it('begins with the newest matching events when the client names no position', async () => {
    const query = 'limit=3&kinds=social'
    const { items } = (await json(
      await ask(`${gateway.url}/v1/potus/live?${query}`, { headers: { 'x-service-token': token } }),
    )) as { items: { seq: number }[] }
    const follower = await follow(`?${query}`)
    await follower.until(3)
    follower.disconnect()
    expect(follower.ids.slice(0, 3)).to.deep.equal(items.map(({ seq }) => String(seq)).reverse())
  })

  it('skips events that the filters exclude', async () => {
    const start = await newest()
    const follower = await follow(`?since_seq=${start}&kinds=social.post&topics=trade`)
    gateway.advance(24 * HOUR)
    await follower.until(1)
    follower.disconnect()
    const events = (await json(
      await ask(`${gateway.url}/v1/potus/live?limit=100&since_seq=${start}&kinds=social.post&topics=trade`, {
        headers: { 'x-service-token': token },
      }),
    )) as { items: { seq: number }[] }
    expect(events.items.map(({ seq }) => String(seq))).to.include(follower.ids[0])
  })

  it('delivers the same events to a hundred clients, wherever each one resumes', async () => {
    const start = await newest()
    const early = await Promise.all(Array.from({ length: 60 }, () => follow(`?since_seq=${start}`)))
    gateway.advance(30 * HOUR)
    await early[0]?.until(3)
    const middle = early[0]?.ids[1] as string
    const late = await Promise.all(Array.from({ length: 40 }, () => follow('', middle)))
    gateway.advance(30 * HOUR)
    await untilSampleWritten({ url: gateway.url, token })
    const all = await listed(start)
    await Promise.all(early.map((one) => one.until(all.length)))
    await Promise.all(late.map((one) => one.until(all.length - 2)))
    for (const one of early) expect(one.ids).to.deep.equal(all)
    for (const one of late) expect(one.ids).to.deep.equal(all.slice(2))
    for (const one of [...early, ...late]) one.disconnect()
  })

  it('ends within five seconds when the token is revoked', async () => {
    const follower = await follow('', undefined, revokedToken)
    await gateway.gateway.revocations.revoke(String(decodeJwt(revokedToken).jti), 'a test')
    const revoked = performance.now()
    await follower.ended
    expect(performance.now() - revoked, 'milliseconds').to.be.lessThan(5_000)
  })

  it('ends when the token expires', async () => {
    const follower = await follow()
    gateway.advance(30 * 24 * HOUR)
    await follower.ended
    const late = await follow()
    expect(late.status).to.equal(402)
  })
})
