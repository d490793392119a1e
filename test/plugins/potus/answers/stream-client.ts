/** A reader of the live feed as server-sent events. */
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { ask, json } from '../../../support/agent.ts'

export interface Follower {
  /** Sequence numbers of the received events, in order. */
  readonly ids: string[]
  readonly status: number
  readonly ended: Promise<void>
  /** Waits until `count` events have been received, or the stream has ended. */
  until(count: number): Promise<void>
  disconnect(): void
}

export interface StreamOptions {
  /** Address of the gateway. */
  readonly url: string
  readonly token: string
  /** Query string, with its question mark. */
  readonly query?: string
  /** Last-Event-ID. */
  readonly after?: string | undefined
}

/** How long to wait after 503. The feed is not served until the sample has written what was due. */
const PAUSE_MS = 200

/** Asks with a token, again and again while the data are not fresh. */
async function askWhenFresh(address: string, token: string): Promise<unknown> {
  for (;;) {
    const response = await ask(address, { headers: { 'x-service-token': token } })
    const answer: unknown = await json(response)
    if (response.status !== 503) return answer
    await sleep(PAUSE_MS)
  }
}

export async function follow({ url, token, query = '', after }: StreamOptions): Promise<Follower> {
  const controller = new AbortController()
  const last = after === undefined ? {} : { 'last-event-id': after }
  const headers = { accept: 'text/event-stream', 'x-service-token': token, ...last }
  // Opens a connection of its own, because fetch may queue a request behind a response that never ends.
  const open = (): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const options = { headers, agent: false, signal: controller.signal }
      get(`${url}/v1/potus/live${query}`, options, resolve).on('error', reject)
    })
  let response = await open()
  while (response.statusCode === 503) {
    response.resume()
    await sleep(PAUSE_MS)
    response = await open()
  }
  const ids: string[] = []
  let wake = (): void => {}
  let hasEnded = false
  const ended = (async () => {
    let text = ''
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
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
      hasEnded = true
      wake()
    })
  return {
    ids,
    status: response.statusCode ?? 0,
    ended,
    async until(count) {
      while (ids.length < count && !hasEnded) await new Promise<void>((resolve) => (wake = resolve))
    },
    disconnect: () => controller.abort(),
  }
}

/** Sequence numbers of all live events after one, read page by page. */
export async function listEvents({ url, token }: StreamOptions, since: string): Promise<string[]> {
  const seqs: string[] = []
  let next = Number(since)
  for (let hasMore = true; hasMore;) {
    const page = (await askWhenFresh(`${url}/v1/potus/live?limit=100&since_seq=${next}`, token)) as {
      items: { seq: number }[]
      next_since_seq: number
    }
    seqs.push(...page.items.map(({ seq }) => String(seq)).reverse())
    hasMore = page.items.length > 0
    next = page.next_since_seq
  }
  return seqs
}

/** The sequence number of the newest live event. */
export async function newestEvent({ url, token }: StreamOptions): Promise<string> {
  const { next_since_seq: seq } = (await askWhenFresh(`${url}/v1/potus/live?limit=1`, token)) as {
    next_since_seq: number
  }
  return String(seq)
}

/** Waits until the sample has written everything that was due at the time of the call. Each of its steps logs a poll. */
export async function untilSampleWritten({ url, token }: StreamOptions): Promise<void> {
  let due: number | null = null
  for (;;) {
    const { as_of: asOf, feeds } = (await askWhenFresh(`${url}/v1/potus/feeds`, token)) as {
      as_of: string
      feeds: { last_attempt: string | null }[]
    }
    due ??= Math.floor(Date.parse(asOf) / 60_000) * 60_000
    const last = Math.max(...feeds.map(({ last_attempt: at }) => (at === null ? 0 : Date.parse(at))))
    if (last >= due) return
    await sleep(PAUSE_MS)
  }
}
