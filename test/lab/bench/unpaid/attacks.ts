/** The requests that cost a gateway most and pay nothing. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const PIECE = 65_536

/** Prepares its bodies, and returns a function that sends them and resolves to what was answered. */
type Prepare = (base: string) => () => Promise<string>

export interface Attack {
  readonly name: string
  readonly prepare: Prepare
}

/** Sends a body in pieces, as a client with a fast connection does. Resolves to the status, or to why there is none. */
function post(url: string, headers: Readonly<Record<string, string>>, body: Buffer): Promise<string> {
  return new Promise((done) => {
    const length = { 'content-length': String(body.length) }
    const outgoing = request(url, { method: 'POST', headers: { ...headers, ...length } }, (response) => {
      response.resume()
      response.on('end', () => done(String(response.statusCode)))
      response.on('error', () => done(String(response.statusCode)))
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message))
    const write = (at: number): void => {
      if (at >= body.length) outgoing.end()
      else if (outgoing.write(body.subarray(at, at + PIECE))) setImmediate(write, at + PIECE)
      else outgoing.once('drain', () => write(at + PIECE))
    }
    write(0)
  })
}

const JSON_TYPE = { 'content-type': 'application/json' }
const MCP_TYPE = { ...JSON_TYPE, accept: 'application/json, text/event-stream' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }

/** An object of `count` keys that nobody knows. */
function unknownKeys(count: number): string {
  return `{${Array.from({ length: count }, (_, at) => `"k${at}":1`).join(',')}}`
}

const callOf = (tool: string, args: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`

const attack = (
  name: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  bodyOf: () => string | Buffer,
): Attack => ({
  name,
  prepare(base) {
    const body = Buffer.from(bodyOf())
    return () => post(base + path, headers, body)
  },
})

/** Thirty uploads that stop before their last byte, and stay open. */
async function stallUploads(base: string): Promise<string> {
  const { hostname, port } = new URL(base)
  const [size, sockets] = [40_000_000, 30]
  const head = `POST /audit HTTP/1.1\r\nHost: a\r\nContent-Type: text/csv\r\nContent-Length: ${size}\r\n\r\n`
  const json = head.replace('text/csv', 'application/json')
  const piece = Buffer.alloc(1_000_000, 32)
  const answers = await Promise.all(
    Array.from({ length: sockets }, async () => {
      const socket = connect(Number(port), hostname)
      let answer = ''
      socket.on('data', (data: Buffer) => (answer += data.toString('latin1')))
      socket.on('error', () => {})
      const closed = new Promise((done) => socket.once('close', done))
      await once(socket, 'connect')
      socket.write(json)
      for (let at = 0; at < size / piece.length - 1 && socket.writable; at += 1)
        if (!socket.write(piece)) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
      await Promise.race([closed, sleep(45_000)])
      socket.destroy()
      return /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 'open'
    }),
  )
  return [...new Set(answers)].join(' ')
}

/** Bodies that are repeated one after another by several callers who pay nothing. */
function flood(name: string, callers: number, times: number, one: Attack): Attack {
  return {
    name,
    prepare(base) {
      const run = one.prepare(base)
      const repeat = async (): Promise<string[]> => {
        const seen: string[] = []
        for (let at = 0; at < times; at += 1) seen.push(await run())
        return seen
      }
      return async () => {
        const statuses = await Promise.all(Array.from({ length: callers }, repeat))
        return [...new Set(statuses.flat())].join(' ')
      }
    },
  }
}

const bars = (count: number): string =>
  `{"bars":[${Array.from({ length: count }, (_, at) => `{"t":${at},"o":1,"h":1,"l":1,"c":1,"v":1}`).join(',')}]}`

export const ATTACKS: readonly Attack[] = [
  attack('form, 3 M unknown keys', '/audit', JSON_TYPE, () => unknownKeys(3_000_000)),
  attack('form, 500,000 unknown keys', '/audit', JSON_TYPE, () => unknownKeys(500_000)),
  attack('form, 20,000 unknown keys', '/audit', JSON_TYPE, () => unknownKeys(20_000)),
  attack('form, a file of 40 MB as JSON', '/audit', JSON_TYPE, () => `{"file":"${'a,b\\n'.repeat(8_000_000)}"}`),
  attack('MCP, 31 MB of unknown arguments', '/mcp', MCP_TYPE, () =>
    callOf('get_regime_sample', unknownKeys(2_800_000)),
  ),
  attack('MCP, 1.1 MB of unknown arguments', '/mcp', MCP_TYPE, () => callOf('get_regime_sample', unknownKeys(110_000))),
  attack('MCP, 48 MB of [],', '/mcp', MCP_TYPE, () => `[${'[],'.repeat(16_000_000)}[]]`),
  attack('MCP, one text of 48 MB', '/mcp', MCP_TYPE, () =>
    callOf('audit_backtest', `{"file":"${'a,b\\n'.repeat(9_600_000)}"}`),
  ),
  attack('MCP, 50,000 bars', '/mcp', MCP_TYPE, () => callOf('check_bar_quality', bars(50_000))),
  attack('audit, X-PAYMENT e30=, 12 MB', '/v1/audit', { ...JSON_TYPE, 'x-payment': 'e30=' }, () =>
    unknownKeys(1_100_000),
  ),
  attack('audit, a token of nobody, 12 MB', '/v1/audit', { ...JSON_TYPE, 'x-service-token': 'a.b.c' }, () =>
    unknownKeys(1_100_000),
  ),
  attack('bars, junk payment, 1 M keys', '/v1/bars/qc', { ...JSON_TYPE, 'x-payment': 'junk' }, () =>
    unknownKeys(1_000_000),
  ),
  attack('founding, 2,000 pairs', '/founding', FORM_TYPE, () => 'a&'.repeat(2_000)),
  attack('a query of 7,500 pairs', `/audit?${'a&'.repeat(7_500)}`, JSON_TYPE, () => '{}'),
  flood(
    'form, 50 x 2.4 M nodes',
    5,
    10,
    attack('', '/audit', JSON_TYPE, () => `{"file":[${'1,'.repeat(2_400_000)}1]}`),
  ),
  { name: '30 stalled uploads of 40 MB', prepare: (base) => () => stallUploads(base) },
]
