/** A gateway that sells streams, and the upstream that sends them. */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { openLiveGateway, type LiveGateway } from './live-gateway.ts'
import { openUpstreamServer, type UpstreamServer } from './upstream-server.ts'

const NAME = { type: 'object', required: ['name'], properties: { name: { type: 'string', maxLength: 50 } } }

export const FILES = (url: string) => ({
  product: 'files',
  title: 'Files',
  summary: 'Large files.',
  upstream: {
    url: `${url}/files/{name}`,
    headers: { authorization: 'env:FILES_KEY' },
    timeout_seconds: 1,
    stream: true,
  },
  operations: {
    getFile: {
      route: 'GET /v1/files/{name}',
      summary: 'A file.',
      price: '0.01',
      params: NAME,
      query: { type: 'object', properties: { part: { type: 'integer' } } },
    },
    getFreeFile: { route: 'GET /v1/free/{name}', summary: 'A file.', price: 'free', params: NAME, response: {} },
  },
})

export interface StreamShop {
  live: LiveGateway
  upstream: UpstreamServer
  url: string
  /** The number of settlements so far. */
  transfers(): number
  /** Sends a payment and resolves as soon as the head of the answer has arrived. */
  head(header: string, headers?: Record<string, string>): Promise<IncomingMessage>
}

/**
 * Registers hooks in the current suite. The fields are set once the hooks have run.
 * @param more documents of the catalog beside that of the files
 */
export function useStreams(more: Readonly<Record<string, unknown>> = {}): StreamShop {
  const shop = {
    transfers: () => shop.live.settler.transfers.length,
    async head(header, headers = {}) {
      const sent = httpRequest(shop.url, { headers: { 'payment-signature': header, ...headers } })
      sent.end()
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      return answer
    },
  } as StreamShop

  before(async () => {
    shop.upstream = await openUpstreamServer()
    const catalog = { 'files.json': FILES(shop.upstream.url), ...more }
    shop.live = await openLiveGateway({ catalog, environment: { FILES_KEY: 'Bearer s3cret' } })
    shop.url = `${shop.live.url}/v1/files/big`
  })
  after(async () => {
    await shop.live.close()
    await shop.upstream.close()
  })
  beforeEach(() => {
    shop.upstream.requests.length = 0
    shop.upstream.answer = (response) => response.end('bytes')
  })
  return shop
}
