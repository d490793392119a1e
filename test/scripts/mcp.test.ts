/** `tollgate mcp`, as a desktop client starts it: a program on stdio, a real gateway, a real chain. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { type CallToolResult, ElicitRequestSchema, type ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { until } from '../support/gateway.ts'
import { openSandboxGateway, type SandboxGateway, SHOP } from '../support/sandbox.ts'

const program = resolve(import.meta.dirname, '../../scripts/tollgate.mjs')
const PRICE = 5_000n

interface Host {
  readonly client: Client
  readonly pid: number
  /** What the bridge has said on standard error. */
  said(): string
  call(word: string, tool?: string): Promise<CallToolResult>
}

describe('tollgate mcp', function () {
  this.timeout(120_000)
  let shop: SandboxGateway
  let folder: string
  let log: string
  let key: string
  let open: Client[] = []
  before(async () => {
    shop = await openSandboxGateway(SHOP)
  })
  after(() => shop?.close())
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bridge-'))
    log = join(folder, 'purchases')
    key = join(folder, 'key')
    writeFileSync(key, `${shop.sandbox.buyer.privateKey}\n`, { mode: 0o600 })
    await shop.moved()
  })
  afterEach(async () => {
    await Promise.all(open.map((client) => client.close()))
    open = []
    rmSync(folder, { recursive: true, force: true })
  })

  /** @param answer what the person says who is asked; without it the host cannot ask */
  async function openHost(flags: readonly string[] = [], answer?: (message: string) => ElicitResult): Promise<Host> {
    const args = [program, 'mcp', shop.url, '--key', `@${key}`, '--log', log, ...flags]
    const transport = new StdioClientTransport({ command: process.execPath, args, cwd: folder, stderr: 'pipe' })
    let said = ''
    transport.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const client = new Client({ name: 'host', version: '1' }, { capabilities: answer ? { elicitation: {} } : {} })
    if (answer) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message))
    await client.connect(transport)
    open.push(client)
    return {
      client,
      pid: transport.pid as number,
      said: () => said,
      call: async (word, tool = 'get_echo') =>
        (await client.callTool({ name: tool, arguments: { word } })) as CallToolResult,
    }
  }

  const textsOf = ({ content }: CallToolResult): readonly string[] =>
    content.map((block) => (block.type === 'text' ? block.text : block.type))
  const linesOf = (): readonly Record<string, unknown>[] =>
    readdirSync(log)
      .toSorted()
      .flatMap((file) => readFileSync(join(log, file), 'utf8').split('\n').filter(Boolean))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  const paid = async (): Promise<bigint> => -(await shop.moved()).buyer

  it('lists the tools without the argument for a payment, and buys what they return', async () => {
    const { client, call, said } = await openHost()
    const { tools } = await client.listTools()
    const { tools: own } = await listOfService()
    expect(tools.map(({ name }) => name)).to.deep.equal(own.map(({ name }) => name))
    for (const { inputSchema } of tools) expect(inputSchema.properties).to.not.have.property('payment_signature')
    const result = await call('hello')
    expect(result.isError, textsOf(result)[0]).to.equal(undefined)
    expect(result.structuredContent).to.include({ said: 'hello' })
    expect(result._meta?.['x402/payment-response']).to.include({ success: true })
    expect(textsOf(result)[1]).to.equal(`Paid 0.005 USDC to ${new URL(shop.url).host}; 0.005 USDC today.`)
    expect(await paid()).to.equal(PRICE)
    expect(linesOf().map(({ event }) => event)).to.deep.equal(['reserved', 'signed', 'settled'])
    expect(said()).to.contain('get_echo: Paid 0.005 USDC')
  })

  it('passes on what the service lets clients read, and its prompts', async () => {
    const { client } = await openHost()
    const { resources } = await client.listResources()
    const uri = `${shop.url}/llms.txt`
    expect(resources.map((resource) => resource.uri)).to.include(uri)
    const { contents } = await client.readResource({ uri })
    expect(contents).to.have.length(1)
    expect((contents[0] as { text: string }).text).to.match(/^# /)
    const { prompts } = await client.listPrompts()
    const [prompt] = prompts
    const { messages } = await client.getPrompt({ name: prompt?.name ?? '', arguments: { question: 'Why?' } })
    expect(messages[0]?.content)
      .to.have.property('text')
      .that.matches(/^Why\?\n/)
  })

  it('refuses what costs more than a call may, and names the limit', async () => {
    const { call } = await openHost(['--max-per-call', '0.004'])
    const result = await call('hello')
    expect(result.isError).to.equal(true)
    expect(textsOf(result)[0]).to.contain('0.005 USDC').and.contain('0.004 USDC a call').and.contain('--max-per-call')
    expect(await paid()).to.equal(0n)
    expect((await call('hello')).isError).to.equal(true)
  })

  it('asks the person above a limit, and pays if the answer is yes', async () => {
    const asked: string[] = []
    let answer: ElicitResult = { action: 'accept', content: { pay: true } }
    const { call } = await openHost(['--max-per-call', '0.004'], (message) => {
      asked.push(message)
      return answer
    })
    expect((await call('hello')).isError).to.equal(undefined)
    expect(await paid()).to.equal(PRICE)
    for (const no of [{ action: 'accept', content: { pay: false } }, { action: 'decline' }, { action: 'cancel' }]) {
      answer = no as ElicitResult
      expect(textsOf(await call('hello'))[0]).to.equal('Not paid: the price of 0.005 USDC was not approved.')
    }
    expect(await paid()).to.equal(0n)
    expect(asked).to.have.length(4)
    expect(asked[0]).to.contain('get_echo').and.contain('0.005 USDC').and.contain('the limit of 0.004 USDC a call')
  })

  it('keeps to the limit of a day over two programs at once, and after a restart', async () => {
    const hosts = await Promise.all([openHost(['--daily', '0.015']), openHost(['--daily', '0.015'])])
    const calls = hosts.flatMap(({ call }, at) => ['a', 'b', 'c'].map((word) => call(`${word}${at === 0 ? 'x' : 'y'}`)))
    const results = await Promise.all(calls)
    expect(results.filter(({ isError }) => !isError)).to.have.length(3)
    expect(await paid()).to.equal(3n * PRICE)
    const later = await openHost(['--daily', '0.015'])
    expect(textsOf(await later.call('more'))[0]).to.contain('the limit of 0.015 USDC a day')
    expect(later.said()).to.contain('0.015 of 0.015 USDC spent today')
    const atHost = await openHost(['--daily', '1', '--daily-per-host', '0.015'])
    expect(textsOf(await atHost.call('more'))[0]).to.contain(`a day at ${new URL(shop.url).host}`)
    expect(await paid()).to.equal(0n)
  })

  it('sends the payment of a program that was killed again, and does not sign another', async () => {
    const first = await openHost()
    const lost = first.call('hello').catch(() => null)
    await until(() => {
      try {
        return linesOf().some(({ event }) => event === 'signed')
      } catch {
        return false
      }
    }, 1)
    process.kill(first.pid, 'SIGKILL')
    await lost
    const second = await openHost()
    const result = await second.call('hello')
    expect(result.isError, textsOf(result)[0]).to.equal(undefined)
    expect(await paid()).to.equal(PRICE)
    expect(linesOf().filter(({ event }) => event === 'signed')).to.have.length(1)
    expect((await second.call('hello')).isError).to.equal(undefined)
    expect(await paid()).to.equal(PRICE)
  })

  it('passes on what the service refuses, and says that nothing was charged', async () => {
    const { client, said, call } = await openHost()
    const unknown = await client.callTool({ name: 'get_nothing', arguments: {} }).catch((error: unknown) => error)
    expect(String(unknown)).to.contain('Unknown tool: get_nothing')
    const invalid = (await client.callTool({ name: 'get_echo', arguments: {} })) as CallToolResult
    expect(invalid.isError).to.equal(true)
    expect(await paid()).to.equal(0n)
    expect(said()).to.contain('nothing was charged')
    expect((await call('hello')).isError).to.equal(undefined)
    expect(await paid()).to.equal(PRICE)
  })

  it('warns of a key that others can read, and ends when its host leaves', async () => {
    chmodSync(key, 0o644)
    const { client, pid, said } = await openHost()
    expect(said()).to.contain('chmod 600')
    await client.close()
    await until(() => !isRunning(pid))
  })

  it('says what to do if it is started wrongly', async () => {
    for (const [flags, words] of [
      [['--daily', 'much'], /--daily takes dollars such as 0\.10, not "much"/],
      [['http://127.0.0.1:9'], /No MCP server answers at http:\/\/127\.0\.0\.1:9\/mcp/],
      [['gate.example'], /gate\.example is not an address such as https:\/\/gate\.example/],
      [['http://127.0.0.1:9', '--key', '@nothing'], /The file nothing cannot be read/],
    ] as const) {
      const args = [program, 'mcp', ...flags, '--log', log]
      const transport = new StdioClientTransport({ command: process.execPath, args, cwd: folder, stderr: 'pipe' })
      let said = ''
      transport.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
      await new Client({ name: 'host', version: '1' }).connect(transport).catch(() => undefined)
      await until(() => words.test(said))
      await transport.close()
    }
  })

  async function listOfService(): Promise<{ readonly tools: readonly { readonly name: string }[] }> {
    const response = await fetch(`${shop.url}/mcp`, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    return ((await response.json()) as { result: { tools: { name: string }[] } }).result
  }
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
