/**
 * `npm run lab -- outside`: buys with clients of others that are too large for dependencies, and checks the OpenAPI
 * document with Spectral. Exits with 1 if one cannot buy, moves another amount than the price, or finds an error. The first
 * run installs them (1 GB) into data/outside.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import axios, { type AxiosInstance } from 'axios'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { openSandboxGateway } from '../support/sandbox.ts'
import { defer, readOptions, say } from './experiment.ts'

readOptions({})

const HOME = resolve('data', 'outside')
/** Inspector and Spectral run under a Node of their own, because they need a newer one. */
const PACKAGES = [
  'x402-fetch@1.2.0',
  'x402-axios@0.7.2',
  '@x402/axios@2.11.0',
  'x402-mcp@0.0.5',
  'ai@5.0.33',
  '@modelcontextprotocol/inspector@2.12.0',
  '@stoplight/spectral-cli@6.16.3',
  'node@22.23.3',
]
const NODE = join(HOME, 'node_modules', 'node', 'bin', 'node')

if (!existsSync(NODE)) {
  mkdirSync(HOME, { recursive: true })
  writeFileSync(join(HOME, 'package.json'), JSON.stringify({ private: true, allowScripts: { node: true } }))
  const flags = ['--no-save', '--no-audit', '--no-fund', '--legacy-peer-deps', '--engine-strict=false']
  execFileSync('npm', ['install', '--prefix', HOME, ...flags, ...PACKAGES], { stdio: 'inherit' })
}
const { resolve: locate } = createRequire(join(HOME, 'package.json'))
const load = async <Module>(name: string): Promise<Module> => (await import(pathToFileURL(locate(name)).href)) as Module

const shop = await openSandboxGateway()
defer(() => shop.close())
const PRICE = 5000n
const route = `${shop.url}/v1/regime/current`
const { buyer } = shop

/** Runs a purchase, and checks that exactly the price moved. */
async function buy(client: string, purchase: () => Promise<unknown>): Promise<void> {
  await shop.moved()
  try {
    const answer = await purchase()
    const { payee } = await shop.moved()
    const isRight = payee === PRICE && JSON.stringify(answer).includes('"regime"')
    report(client, isRight ? 'bought' : `moved ${payee} and answered ${JSON.stringify(answer)}`, isRight)
  } catch (error) {
    report(client, (error as Error).message, false)
  }
}

function report(what: string, result: string, isRight: boolean): void {
  say(`${isRight ? 'ok  ' : 'FAIL'} ${what}: ${result}`)
  if (!isRight) process.exitCode = 1
}

type WrapFetch = (get: typeof fetch, wallet: unknown) => typeof fetch
await buy('x402-fetch', async () => {
  const { wrapFetchWithPayment } = await load<{ wrapFetchWithPayment: WrapFetch }>('x402-fetch')
  return (await wrapFetchWithPayment(fetch, buyer)(route)).json()
})

type WrapAxios = (instance: AxiosInstance, wallet: unknown) => AxiosInstance
await buy('x402-axios', async () => {
  const { withPaymentInterceptor } = await load<{ withPaymentInterceptor: WrapAxios }>('x402-axios')
  return (await withPaymentInterceptor(axios.create(), buyer).get<unknown>(route)).data
})

await buy('@x402/axios', async () => {
  const { wrapAxiosWithPayment, x402Client: Wallet } = await load<{
    wrapAxiosWithPayment: WrapAxios
    x402Client: new () => { register(network: string, scheme: unknown): unknown }
  }>('@x402/axios')
  const wallet = new Wallet().register('eip155:84532', new ExactEvmScheme(buyer))
  return (await wrapAxiosWithPayment(axios.create(), wallet).get<unknown>(route)).data
})

interface Tool {
  execute(args: object, options: object): Promise<{ content: { text: string }[]; paymentAuthorization?: string }>
}
await buy('x402-mcp', async () => {
  type Mcp = { tools(): Promise<Record<string, Tool>>; close(): Promise<void> }
  const { experimental_createMCPClient: connect } =
    await load<Record<'experimental_createMCPClient', (options: object) => Promise<Mcp>>>('ai')
  const { withPayment } = await load<{ withPayment(client: Mcp, options: object): Promise<Mcp> }>('x402-mcp/client')
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const transport = new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`))
  const client = await withPayment(await connect({ transport }), { account: buyer, network: 'base-sepolia' })
  const { get_regime_current: tool, generatePaymentAuthorization: sign } = await client.tools()
  if (!tool || !sign) throw new Error('It lists no such tool.')
  const { content } = await tool.execute({}, {})
  const { v1 } = JSON.parse(content[0]?.text ?? '') as { v1: { accepts: object[] } }
  const { paymentAuthorization } = await sign.execute({ paymentRequirements: v1.accepts[0] }, {})
  const paid = await tool.execute({ paymentAuthorization }, {})
  await client.close()
  return JSON.parse(paid.content[0]?.text ?? '') as object
})

const run = promisify(execFile)
const inspector = join(HOME, 'node_modules', '.bin', 'mcp-inspector')
/** Its exit code is 1 where the tool says that it costs something. */
const inspect = (...words: string[]): Promise<string> =>
  run(NODE, [inspector, '--cli', `${shop.url}/mcp`, '--transport', 'http', ...words]).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout || stderr,
  )
try {
  const { tools } = JSON.parse(await inspect('--method', 'tools/list')) as { tools: object[] }
  report('MCP Inspector', `lists ${tools.length} tools`, tools.length === 7)
  const unpaid = await inspect('--method', 'tools/call', '--tool-name', 'get_regime_current')
  report('MCP Inspector', 'is told the price', unpaid.includes('x402Version'))
} catch (error) {
  report('MCP Inspector', (error as Error).message, false)
}

const rules = join(HOME, 'rules.json')
writeFileSync(rules, JSON.stringify({ extends: ['spectral:oas'] }))
const spectral = join(HOME, 'node_modules', '.bin', 'spectral')
const lint = ['lint', `${shop.url}/openapi.json`, '--ruleset', rules, '--format', 'text', '--fail-severity', 'warn']
await run(NODE, [spectral, ...lint]).then(
  () => report('Spectral', 'finds nothing', true),
  ({ stdout, stderr }: { stdout: string; stderr: string }) =>
    report('Spectral', stdout.slice(0, 4000) || stderr, false),
)
