import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { gzipSync } from 'node:zlib'
import { ErrorCode, LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import request from 'supertest'
import {
  BASE_URL,
  openTransportGateway,
  type RecordedCall,
  route,
  type TransportGateway,
} from '../http/transport-gateway.ts'
import { proves } from '../requirements.ts'

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 7,
  method: 'initialize',
  params: { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}

describe('the MCP endpoint over HTTP', () => {
  let gateway: TransportGateway
  before(async () => {
    gateway = await openTransportGateway([
      route('getSample', 'GET /v1/sample', { tool: 'get_sample' }),
      route(
        'getSlowly',
        'GET /v1/slow',
        { tool: 'get_slowly' },
        ({ request: { caller } }) => new Promise((resolve) => caller.signal.addEventListener('abort', resolve)),
      ),
    ])
  })
  after(() => gateway.close())

  const post = (headers: Record<string, string> = {}) =>
    request(gateway.server)
      .post('/mcp')
      .set({ Accept: 'application/json, text/event-stream', ...headers })

  it('answers in JSON with the id of the request', async () => {
    proves('mcp-address')
    const { body, headers } = await post().send(INITIALIZE).expect(200)
    expect(body).to.nested.include({ id: 7, 'result.protocolVersion': LATEST_PROTOCOL_VERSION })
    expect(headers['content-type']).to.match(/^application\/json/)
    expect(headers['access-control-allow-origin']).to.equal('*')
    await post().send({ jsonrpc: '2.0', method: 'notifications/initialized' }).expect(202)
  })

  it('asks for the message of a client that waits for 100 Continue', async () => {
    const body = JSON.stringify(INITIALIZE)
    const headers = {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    }
    const message = httpRequest(`${gateway.url}/mcp`, { method: 'POST', headers })
    message.flushHeaders()
    await once(message, 'continue', { signal: AbortSignal.timeout(5_000) })
    message.end(body)
    const [{ statusCode }] = (await once(message, 'response')) as [IncomingMessage]
    expect(statusCode).to.equal(200)
  })

  it('refuses foreign origins and hosts, and accepts its own and loopback', async () => {
    await post({ Origin: 'https://evil.example' }).send(INITIALIZE).expect(403)
    await post({ Origin: 'null' }).send(INITIALIZE).expect(403)
    await post({ Host: 'evil.example' }).send(INITIALIZE).expect(403)
    await post({ Host: '127.0.0.1.evil.example' }).send(INITIALIZE).expect(403)
    for (const host of ['user@localhost', 'localhost/path', 'localhost?query', 'localhost:', '127.1'])
      await post({ Host: host }).send(INITIALIZE).expect(403)
    await post({ Origin: BASE_URL, Host: 'shop.example' }).send(INITIALIZE).expect(200)
    await post({ Origin: 'http://localhost:6274', Host: 'localhost:1' }).send(INITIALIZE).expect(200)
  })

  it('refuses bodies that are not a message, not JSON or too large, and unsupported methods', async () => {
    const broken = await post({ 'Content-Type': 'application/json' }).send('{"jsonrpc"').expect(400)
    expect(broken.body).to.nested.include({ 'error.code': ErrorCode.ParseError, id: null })
    const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }
    const compressed = await post(headers)
      .send(gzipSync(JSON.stringify(INITIALIZE)).toString('latin1'))
      .expect(400)
    expect(compressed.body.error.message).to.contain('send the message uncompressed')
    await post().send({ hello: 'world' }).expect(400)
    await post({ 'Content-Type': 'text/plain' }).send('{}').expect(415)
    const large = await post()
      .send({ ...INITIALIZE, pad: 'x'.repeat(200_000) })
      .expect(413)
    expect(large.body).to.include({ code: 'body_too_large' })
    const unnamed = { name: { toString: 1, valueOf: 1 }, arguments: {} }
    const strange = await post().send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: unnamed }).expect(200)
    expect(strange.body).to.have.nested.property('error.message')
    await request(gateway.server).get('/mcp').set('Accept', 'text/html').expect(406)
    for (const method of ['delete', 'put'] as const) {
      const refused = await request(gateway.server)[method]('/mcp').expect(405)
      expect(refused.headers['allow']).to.equal('GET, POST, OPTIONS')
    }
    const options = await request(gateway.server).options('/mcp').set('Origin', 'https://any.example').expect(204)
    expect(options.headers['access-control-allow-headers']).to.contain('Mcp-Protocol-Version')
  })

  it('refuses wrong params with -32602 and the name of the field', async () => {
    const refusals = [
      ['initialize', undefined, 'params must be an object.'],
      ['initialize', { ...INITIALIZE.params, protocolVersion: 7 }, 'params.protocolVersion must be a string.'],
      ['tools/list', { cursor: 1 }, 'params.cursor must be a string.'],
      ['tools/call', undefined, 'params must be an object.'],
      ['tools/call', { arguments: {} }, 'params.name must be a string.'],
      ['tools/call', { name: 'get_sample', arguments: null }, 'params.arguments must be an object.'],
      ['tools/call', { name: 'get_sample', arguments: [] }, 'params.arguments must be an object.'],
      [
        'initialize',
        { ...INITIALIZE.params, capabilities: { experimental: { 'a/b': 7 } } },
        'params.capabilities.experimental["a/b"] must be as the MCP schema says.',
      ],
    ] as const
    for (const [method, params, message] of refusals) {
      const { body } = await post().send({ jsonrpc: '2.0', id: 1, method, params }).expect(200)
      const error = { code: ErrorCode.InvalidParams, message: `Invalid params: ${message}` }
      expect(body, `${method} ${JSON.stringify(params)}`).to.deep.equal({ jsonrpc: '2.0', id: 1, error })
    }
  })

  it('tells the product when the caller disconnects', async () => {
    const leaving = new AbortController()
    const answer = fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_slowly' } }),
      signal: leaving.signal,
    }).catch((error: unknown) => error)
    while (gateway.calls.length === 0) await new Promise((wake) => setTimeout(wake, 5))
    const { signal } = (gateway.calls[0] as RecordedCall).request.caller
    expect(signal.aborted).to.equal(false)
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    leaving.abort()
    await aborted
    expect(await answer).to.have.property('name', 'AbortError')
    await post().send(INITIALIZE).expect(200)
  })

  it('answers a request although its batch cancels it, because a POST without an answer would never end', async () => {
    const { body } = await post()
      .send([
        { jsonrpc: '2.0', id: 1, method: 'ping' },
        { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
      ])
      .expect(200)
    expect(body).to.deep.equal({ jsonrpc: '2.0', id: 1, result: {} })
  })
})
