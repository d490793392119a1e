/** The live feed as server-sent events. */
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { ask, buy, json } from '../../support/agent.ts'
import { openStall, type Stall } from './stall.ts'

const HOUR = 3600

interface Follower {
  readonly ids: string[]
  readonly status: number
  readonly ended: Promise<void>
  /** Waits until so many ids have come, or the stream ended. */
  until(count: number): Promise<void>
  leave(): void
}

describe('following the live feed', function () {
  this.timeout(60_000)
  let stall: Stall
  let token: string
  let takenBack: string
  before(async () => {
    stall = await openStall()
    // A wallet signs by the real clock, so everything is bought before the clock is moved.
    token = await stall.token('live/30d')
    takenBack = await stall.token('live/30d')
  })
  after(() => stall.close())

  async function follow(query = '', headers: Record<string, string> = {}, own = token): Promise<Follower> {
    const leaving = new AbortController()
    const response = await ask(`${stall.url}/v1/potus/live${query}`, {
      headers: { accept: 'text/event-stream', 'x-service-token': own, ...headers },
      signal: leaving.signal,
    })
    const ids: string[] = []
    let wake = (): void => {}
    let isOver = false
    const ended = (async () => {
      let text = ''
      for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
        text += chunk
        const events = text.split('\n\n')
        text = events.pop() as string
        for (const event of events) {
          const id = event.match(/^id: (.+)$/m)?.[1]
          const data = event.match(/^data: (.+)$/m)?.[1]
          if (id === undefined || data === undefined) continue
          expect(String((JSON.parse(data) as { seq: number }).seq)).to.equal(id)
          ids.push(id)
        }
        wake()
      }
    })()
      .catch(() => {})
      .finally(() => {
        isOver = true
        wake()
      })
    return {
      ids,
      status: response.status,
      ended,
      async until(count) {
        while (ids.length < count && !isOver) await new Promise<void>((resolve) => (wake = resolve))
      },
      leave: () => leaving.abort(),
    }
  }

  /** Numbers of all live events after one, by asking again and again. */
  async function listed(since: string): Promise<string[]> {
    const seqs: string[] = []
    let next = Number(since)
    for (let more = true; more;) {
      const page = (await json(
        await ask(`${stall.url}/v1/potus/live?limit=100&since_seq=${next}`, { headers: { 'x-service-token': token } }),
      )) as { items: { seq: number }[]; next_since_seq: number }
      seqs.push(...page.items.map(({ seq }) => String(seq)).reverse())
      more = page.items.length > 0
      next = page.next_since_seq
    }
    return seqs
  }
  const newest = async (): Promise<string> => {
    const { next_since_seq: seq } = (await json(
      await ask(`${stall.url}/v1/potus/live?limit=1`, { headers: { 'x-service-token': token } }),
    )) as { next_since_seq: number }
    return String(seq)
  }

  it('is for holders of a token: a single call gets the page it paid for', async () => {
    const response = await buy(`${stall.url}/v1/potus/live?limit=1`, stall.wallet, 2, {
      headers: { accept: 'text/event-stream' },
    })
    expect(response.headers.get('content-type')).to.include('application/json')
    expect(await json(response)).to.include({ count: 1 })
  })

  it('gives every event once, in order, over a break and a resumption', async () => {
    const start = await newest()
    const first = await follow(`?since_seq=${start}`)
    expect(first.status).to.equal(200)
    stall.advance(10 * HOUR)
    await first.until(3)
    first.leave()
    await first.ended
    // While nobody listens, more comes.
    stall.advance(10 * HOUR)
    await new Promise((wake) => setTimeout(wake, 3000))
    const second = await follow('', { 'last-event-id': first.ids.at(-1) as string })
    await second.until(3)
    stall.advance(10 * HOUR)
    await new Promise((wake) => setTimeout(wake, 4000))
    const all = await listed(start)
    await second.until(all.length - first.ids.length)
    second.leave()
    expect([...first.ids, ...second.ids]).to.deep.equal(all)
    expect(all.length).to.be.greaterThan(10)
  })

  it('passes over what the filters leave out', async () => {
    const start = await newest()
    const follower = await follow(`?since_seq=${start}&kinds=social.post&topics=trade`)
    stall.advance(24 * HOUR)
    await follower.until(1)
    follower.leave()
    const events = (await json(
      await ask(`${stall.url}/v1/potus/live?limit=100&since_seq=${start}&kinds=social.post&topics=trade`, {
        headers: { 'x-service-token': token },
      }),
    )) as { items: { seq: number }[] }
    expect(events.items.map(({ seq }) => String(seq))).to.include(follower.ids[0])
  })

  it('ends within five seconds when the token is taken back', async function () {
    this.timeout(5000)
    const follower = await follow('', {}, takenBack)
    await stall.gateway.revocations.revoke(String(decodeJwt(takenBack).jti), 'a test')
    await follower.ended
  })

  it('ends when the token ends', async () => {
    const follower = await follow()
    stall.advance(30 * 24 * HOUR)
    await follower.ended
    const late = await follow()
    expect(late.status).to.equal(402)
  })
})
