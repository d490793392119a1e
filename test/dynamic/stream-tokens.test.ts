/** Streams of bytes that are opened with an access token. */
import type { ServerResponse } from 'node:http'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { json, payment, send } from '../support/agent.ts'
import { until } from '../support/until.ts'
import { type StreamShop, useStreams } from './stream-gateway.ts'

const PLAN = {
  plan: 'hour',
  label: 'An hour',
  tier: 'live',
  max_freshness_seconds: 0,
  duration_seconds: 3_600,
  route: 'POST /v1/plans/hour',
  price: '1',
  authorizes: ['getFile'],
}

/** Buys the plan. Returns the token and its id. */
async function buyPlan({ live }: StreamShop): Promise<{ readonly token: string; readonly id: string }> {
  const [url, post] = [`${live.url}/v1/plans/hour`, { method: 'POST' }]
  const { token } = (await json(await send(url, await payment(url, live.wallet, 2, post), 2, post))) as {
    token: string
  }
  return { token, id: String(decodeJwt(token).jti) }
}

describe('a stream of bytes that was opened with an access token', () => {
  const shop = useStreams({ 'plans.json': { path: '/v1/plans', plans: [PLAN] } })
  /** The upstream sends without an end, as one that proxies events does. */
  function sendForever(headers: Record<string, string> = {}): { isClosed(): boolean; end(): void } {
    let [isClosed, finish] = [false, (): void => {}]
    shop.upstream.answer = (response: ServerResponse) => {
      response.writeHead(200, headers)
      const timer = setInterval(() => response.write('x'), 20)
      finish = () => {
        clearInterval(timer)
        response.end()
      }
      response.on('close', () => {
        clearInterval(timer)
        isClosed = true
      })
    }
    return { isClosed: () => isClosed, end: () => finish() }
  }
  /** Opens the stream. Returns what becomes of it: "whole" or "cut". */
  async function open(token: string): Promise<{ end: string | null }> {
    const answer = await fetch(shop.url, { headers: { 'x-service-token': token } })
    expect(answer.status).to.equal(200)
    const opened: { end: string | null } = { end: null }
    void answer.arrayBuffer().then(
      () => (opened.end = 'whole'),
      () => (opened.end = 'cut'),
    )
    return opened
  }

  it('is cut off when the token is revoked, and its upstream is closed', async () => {
    const { token, id } = await buyPlan(shop)
    const upstream = sendForever()
    const opened = await open(token)
    await shop.live.gateway.revocations.revoke(id, 'by a test')
    await until(() => opened.end !== null && upstream.isClosed())
    expect(opened.end).to.equal('cut')
  })

  it('is cut off when the token expires', async () => {
    const { token } = await buyPlan(shop)
    const upstream = sendForever()
    const opened = await open(token)
    shop.live.advance(PLAN.duration_seconds + 1)
    await until(() => opened.end !== null && upstream.isClosed())
    expect(opened.end).to.equal('cut')
    shop.live.advance(-PLAN.duration_seconds - 1)
  })

  it('of a known length is sent to its end when the token expires, and cut off when it is revoked', async () => {
    const { token, id } = await buyPlan(shop)
    shop.live.advance(PLAN.duration_seconds - 300)
    const upstream = sendForever({ 'content-length': '100000' })
    const opened = await open(token)
    // Opened later with the same token, so its next look at the token comes later too.
    const endless = sendForever()
    const later = await open(token)
    shop.live.advance(301)
    await until(() => later.end !== null && endless.isClosed())
    expect(later.end).to.equal('cut')
    expect([opened.end, upstream.isClosed()]).to.deep.equal([null, false])
    await shop.live.gateway.revocations.revoke(id, 'by a test')
    await until(() => opened.end !== null)
    expect(opened.end).to.equal('cut')
    shop.live.advance(-PLAN.duration_seconds - 1)
  })

  it('ends by itself if its upstream ends first', async () => {
    const { token } = await buyPlan(shop)
    const upstream = sendForever()
    const opened = await open(token)
    upstream.end()
    await until(() => opened.end !== null)
    expect(opened.end).to.equal('whole')
  })
})
