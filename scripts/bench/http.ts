/**
 * `npm run bench:http [-- --seconds 5]`: compares the cost of a request with a plain node:http server that sends the same
 * bytes in the same run. Trust the CPU time of the server process; rates depend on what else the machine does.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import autocannon from 'autocannon'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { processCpuMicros } from './cpu-time.ts'

const root = resolve(import.meta.dirname, '../..')
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '5' } } })
const CONNECTIONS = 16
interface Case {
  readonly name: string
  readonly path: string
  readonly expected: number
}

const CASES: readonly Case[] = [
  { name: 'free JSON: /v1/x', path: '/v1/x', expected: 200 },
  { name: 'price list: /pricing.json', path: '/pricing.json', expected: 200 },
  { name: '402', path: '/v1/regime/current', expected: 402 },
  { name: '402 with a query', path: '/v1/regime/history?limit=10', expected: 402 },
  { name: 'free sample, one row', path: '/v1/regime/sample', expected: 200 },
]

async function measure(child: ChildProcess, url: string, seconds: number) {
  const load = (duration: number) => autocannon({ url, connections: CONNECTIONS, duration })
  await load(1)
  const before = processCpuMicros(child.pid as number)
  const result = await load(seconds)
  const requests = result.requests.total
  return { rps: requests / result.duration, micros: (processCpuMicros(child.pid as number) - before) / requests }
}

/** Repeats a request until it answers `status`. Throws after a minute. */
async function waitForStatus(url: string, status: number): Promise<Response> {
  for (let tries = 0; tries < 600; tries++) {
    const response = await fetch(url).catch(() => null)
    if (response?.status === status) return response
    await new Promise((wake) => setTimeout(wake, 100))
  }
  throw new Error(`${url} did not answer ${status} within a minute`)
}

/** Starts a node:http server that answers every request with `body`. */
function startPlainServer(port: number, body: string): ChildProcess {
  const script = `const body = Buffer.from(process.argv[1]); require('node:http').createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }); response.end(body)
  }).listen(${port}, '127.0.0.1')`
  return spawn(process.execPath, ['-e', script, body], { stdio: 'inherit' })
}

const seconds = Number(values.seconds)
const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
const port = await freePort()
const env = { ...process.env, PORT: String(port), DATA_DIR: dataDir, LOG_LEVEL: 'error' }
const gateway = spawn(process.execPath, ['dist/gateway/main.js'], { cwd: root, env, stdio: 'ignore' })
try {
  const base = `http://127.0.0.1:${port}`
  await waitForStatus(`${base}/v1/regime/sample`, 200)
  console.log(`${'case'.padEnd(30)}${'µs CPU'.padStart(8)}${'× plain'.padStart(9)}${'rate / plain rate'.padStart(20)}`)
  for (const { name, path, expected } of CASES) {
    const body = await (await waitForStatus(base + path, expected)).text()
    const plainPort = await freePort()
    const plainServer = startPlainServer(plainPort, body)
    await waitForStatus(`http://127.0.0.1:${plainPort}/`, 200)
    const plain = await measure(plainServer, `http://127.0.0.1:${plainPort}/`, seconds)
    plainServer.kill()
    const ours = await measure(gateway, base + path, seconds)
    const columns = [ours.micros.toFixed(0).padStart(8), (ours.micros / plain.micros).toFixed(1).padStart(9)]
    console.log(`${name.padEnd(30)}${columns.join('')}${(ours.rps / plain.rps).toFixed(2).padStart(20)}`)
  }
} finally {
  gateway.kill('SIGTERM')
  await new Promise((done) => gateway.once('exit', done))
  rmSync(dataDir, { recursive: true, force: true })
}
