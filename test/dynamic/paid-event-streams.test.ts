import { once } from 'node:events'
import { get as httpGet, type IncomingMessage } from 'node:http'
import { json as jsonOf } from 'node:stream/consumers'
import { expect } from 'chai'
import { json, offer, payment } from '../support/agent.ts'
import { nextRequest, until } from '../support/gateway.ts'
import { openLiveGateway, type LiveGateway } from './live-gateway.ts'

/** Sells the ticks of a clock: two at once, and the rest when the buyer has seen them. */
const PLUGIN = `import { definePlugin, Reply } from 'tollgate/plugin'
let open = 0
export default definePlugin({
  name: 'ticks',
  setup: () => ({
    handlers: {
      getOpen: () => ({ open }),
      followTicks({ stream, signal }) {
        return Reply.events(ticks(Number(stream?.lastEventId ?? 0), signal))
      },
    },
  }),
})
async function* ticks(after, signal) {
  open += 1
  try {
    for (let n = after + 1; n <= after + 2; n++) yield { id: String(n), event: 'tick', data: { n } }
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  } finally {
    open -= 1
  }
}
`
const CATALOG = {
  product: 'ticks',
  title: 'Ticks',
  summary: 'Ticks of a clock.',
  plugin: 'ticks',
  operations: {
    followTicks: {
      route: 'GET /v1/ticks',
      tool: true,
      summary: 'Follows the ticks as server-sent events.',
      price: '0.01',
      response: { type: 'object' },
    },
    getOpen: { route: 'GET /v1/ticks/open', summary: 'Open streams.', price: 'free', response: { type: 'object' } },
  },
}

describe('an event stream with a price', () => {
  let shop: LiveGateway
  let url: string
  before(async () => {
    // A new edition, as after a change of a file, would end the streams.
    shop = await openLiveGateway({ catalog: { 'ticks.json': CATALOG }, sources: { 'ticks/index.ts': PLUGIN } })
    url = `${shop.url}/v1/ticks`
  })
  after(() => shop.close())

  const transfers = (): number => shop.settler.transfers.length

  async function follow(headers: Record<string, string>): Promise<IncomingMessage> {
    const sent = httpGet(url, { headers: { accept: 'text/event-stream', ...headers }, agent: false })
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return answer.setEncoding('utf8')
  }

  async function codeOf(refusal: IncomingMessage): Promise<unknown> {
    expect(refusal.statusCode).to.equal(402)
    return ((await jsonOf(refusal)) as { code: unknown }).code
  }

  /** Reads until so many events have come, and leaves. */
  async function read(answer: IncomingMessage, count: number): Promise<readonly string[]> {
    let text = ''
    const ids = (): readonly string[] => [...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => String(id))
    for await (const part of answer as AsyncIterable<string>) {
      text += part
      if (ids().length >= count) break
    }
    return ids()
  }

  it('is settled before its first event, and its head carries the receipt', async () => {
    const before = transfers()
    const answer = await follow({ 'payment-signature': await payment(url, shop.wallet) })
    expect(answer.statusCode).to.equal(200)
    expect(answer.headers['content-type']).to.equal('text/event-stream; charset=utf-8')
    const receipt = JSON.parse(Buffer.from(String(answer.headers['payment-response']), 'base64').toString()) as object
    expect(receipt).to.include({ success: true })
    expect(transfers()).to.equal(before + 1)
    expect(await read(answer, 2)).to.deep.equal(['1', '2'])
  })

  it('is resumed with the same payment, without another charge, until the payment expires', async () => {
    const before = transfers()
    const paid = {
      'payment-signature': await payment(url, shop.wallet),
      'idempotency-key': 'ticks-2026-11-23-0001',
    }
    await read(await follow(paid), 2)
    shop.advance(120)
    const again = await follow({ ...paid, 'last-event-id': '2' })
    expect(again.headers['idempotent-replay']).to.equal('true')
    expect(await read(again, 2)).to.deep.equal(['3', '4'])
    expect(transfers()).to.equal(before + 1)
    shop.advance(280)
    const late = await follow({ ...paid, 'last-event-id': '4' })
    expect(await codeOf(late)).to.equal('payment_already_used')
    shop.advance(-400)
    expect(transfers()).to.equal(before + 1)
  })

  it('is resumed without a key for a minute after it opened, from the same address, and then not even while it is open', async () => {
    const paid = { 'payment-signature': await payment(url, shop.wallet) }
    const open = await follow(paid)
    const again = await follow(paid)
    expect(await read(again, 2)).to.deep.equal(['1', '2'])
    shop.advance(61)
    expect(await codeOf(await follow(paid))).to.equal('sign_in_required')
    shop.advance(-61)
    expect((await shop.json('/v1/ticks/open'))['open']).to.be.greaterThan(0)
    open.destroy()
  })

  it('is resumed without a key after that minute too if its buyer had left before it opened', async () => {
    const [before, header] = [transfers(), await payment(url, shop.wallet)]
    const release = shop.settler.hold()
    const arrived = nextRequest(shop)
    const asked = shop.settler.calls.length
    const sent = httpGet(url, { headers: { accept: 'text/event-stream', 'payment-signature': header }, agent: false })
    sent.on('error', () => {})
    const { response } = await arrived
    await until(() => shop.settler.calls.slice(asked).includes('settle'))
    sent.destroy()
    await once(response, 'close')
    release()
    const key = (): string => shop.settler.transfers.at(-1)?.key ?? ''
    await until(async () => transfers() > before && (await shop.gateway.journal.find(key()))?.state === 'settled')
    // A delivery would be recorded by now.
    await new Promise((wake) => setTimeout(wake, 100))
    expect((await shop.gateway.journal.find(key()))?.deliveredAt).to.equal(null)
    shop.advance(61)
    expect(await read(await follow({ 'payment-signature': header }), 2)).to.deep.equal(['1', '2'])
    shop.advance(-61)
  })

  it('is not given away if its payment cannot be settled', async () => {
    shop.settler.next('revert')
    const answer = await follow({ 'payment-signature': await payment(url, shop.wallet) })
    expect(answer.statusCode).to.equal(402)
    expect(await read(answer, 1)).to.deep.equal([])
  })

  it('ends in the product when the buyer leaves', async () => {
    await until(async () => (await shop.json('/v1/ticks/open'))['open'] === 0)
  })

  it('is refused as an MCP tool before anything is charged', async () => {
    const before = transfers()
    const { v2 } = await offer(url)
    expect(v2.accepts).to.have.length(1)
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'follow_ticks', arguments: { payment_signature: await payment(url, shop.wallet) } },
    }
    const response = await fetch(`${shop.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(call),
    })
    const { result } = (await json(response)) as {
      result: { isError: boolean; structuredContent: Record<string, unknown> }
    }
    expect(result.isError).to.equal(true)
    expect(result.structuredContent).to.include({ code: 'validation_failed' })
    expect(JSON.stringify(result.structuredContent)).to.contain('call its route over HTTP')
    expect(transfers()).to.equal(before)
  })
})
