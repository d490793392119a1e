/**
 * `npm run bench:mcp [-- --rounds 3 --seconds 3]`: CPU of a gateway per MCP message, beside the same call over HTTP. All
 * cases take turns in every round, so that the ratio holds although the machine does other things. Needs Linux.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js'
import autocannon from 'autocannon'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { processCpuMicros } from './cpu-time.ts'

const root = resolve(import.meta.dirname, '../..')
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '3' } },
})
const CONNECTIONS = 16

interface Case {
  readonly name: string
  readonly path: string
  readonly message?: { readonly method: string; readonly params?: unknown }
}

const clientInfo = { name: 'bench', version: '1' }
const CASES: readonly Case[] = [
  { name: 'HTTP 402', path: '/v1/regime/current' },
  { name: 'HTTP free', path: '/v1/regime/sample' },
  { name: 'tools/call, unpaid', path: '/mcp', message: callOf('get_regime_current') },
  { name: 'tools/call, unpaid, arguments', path: '/mcp', message: callOf('get_regime_history', { limit: 10 }) },
  { name: 'tools/call, free', path: '/mcp', message: callOf('get_regime_sample') },
  { name: 'tools/list', path: '/mcp', message: { method: 'tools/list' } },
  { name: 'ping', path: '/mcp', message: { method: 'ping' } },
  {
    name: 'initialize',
    path: '/mcp',
    message: {
      method: 'initialize',
      params: { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: {}, clientInfo },
    },
  },
]

function callOf(name: string, args: Readonly<Record<string, unknown>> = {}) {
  return { method: 'tools/call', params: { name, arguments: args } }
}

function postOf({ message }: Case) {
  if (!message) return {}
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': LATEST_PROTOCOL_VERSION,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  } as const
}

/** Repeats a request until it succeeds. Throws after a minute. */
async function waitFor(url: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const response = await fetch(url).catch(() => null)
    if (response?.ok) return
    await new Promise((wake) => setTimeout(wake, 100))
  }
  throw new Error(`${url} did not answer within a minute`)
}

function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b)
  return sorted[sorted.length >> 1] as number
}

const seconds = Number(values.seconds)
const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
const port = await freePort()
const base = `http://127.0.0.1:${port}`
const env = { ...process.env, PORT: String(port), DATA_DIR: dataDir, LOG_LEVEL: 'error' }
const gateway = spawn(process.execPath, ['dist/gateway/main.js'], { cwd: root, env, stdio: 'ignore' })
const exited = new Promise((done) => gateway.once('exit', done))

/** Returns the gateway's CPU per request in microseconds. */
async function measure(measured: Case, duration: number): Promise<number> {
  const before = processCpuMicros(gateway.pid as number)
  const options = { url: base + measured.path, connections: CONNECTIONS, duration, ...postOf(measured) }
  const { requests } = await autocannon(options)
  return (processCpuMicros(gateway.pid as number) - before) / requests.total
}

try {
  await waitFor(`${base}/v1/regime/sample`)
  for (const warmed of CASES) await measure(warmed, 2)
  const figures = new Map(CASES.map((measured): [Case, number[]] => [measured, []]))
  for (let round = 0; round < Number(values.rounds); round++)
    for (const [measured, taken] of figures) taken.push(await measure(measured, seconds))
  const first = median(figures.get(CASES[0] as Case) as number[])
  console.log(`${'case'.padEnd(32)}${'µs CPU'.padStart(8)}${'× HTTP 402'.padStart(12)}   lowest to highest`)
  for (const [{ name }, taken] of figures) {
    const middle = median(taken)
    const spread = `${Math.min(...taken).toFixed(0)} to ${Math.max(...taken).toFixed(0)}`
    console.log(
      `${name.padEnd(32)}${middle.toFixed(0).padStart(8)}${(middle / first).toFixed(2).padStart(12)}   ${spread}`,
    )
  }
} finally {
  gateway.kill('SIGTERM')
  await exited
  rmSync(dataDir, { recursive: true, force: true })
}
