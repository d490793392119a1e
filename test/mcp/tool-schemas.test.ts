import { resolve } from 'node:path'
import { expect } from 'chai'
import { openGateway, type TestGateway } from '../support/gateway.ts'

const root = resolve(import.meta.dirname, '../..')

interface Tool {
  readonly name: string
  readonly inputSchema: unknown
  readonly _meta: { readonly 'x402/price': { readonly free: boolean } }
}

/** The schemas inside a schema, each with its path. */
function* schemasIn(node: unknown, path: string): Generator<{ path: string; schema: Record<string, unknown> }> {
  if (typeof node !== 'object' || node === null) return
  if (!Array.isArray(node)) yield { path, schema: node as Record<string, unknown> }
  for (const [key, part] of Object.entries(node))
    if (!['examples', 'default', 'enum', 'const'].includes(key)) yield* schemasIn(part, `${path}/${key}`)
}

describe('the tools of the whole catalog', () => {
  let gateway: TestGateway
  let tools: readonly Tool[]
  let named: readonly Tool[]
  before(async () => {
    gateway = await openGateway({ CATALOG_DIR: resolve(root, 'catalog'), PLUGIN_DIRS: resolve(root, 'plugins') })
    tools = (await rpc<{ tools: Tool[] }>('/mcp/all', 'tools/list')).tools
    named = (await rpc<{ tools: Tool[] }>('/mcp', 'tools/list')).tools
  })
  after(() => gateway.close())

  async function rpc<Result>(path: string, method: string, params = {}): Promise<Result> {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return ((await response.json()) as { result: Result }).result
  }

  it('are seven at /mcp, and these and everything else that is sold at /mcp/all', () => {
    expect(named).to.have.length(7)
    expect(tools).to.deep.include.members([...named])
    expect(tools.map(({ name }) => name)).to.include.members(['get_potus_events15m', 'get_perp_funding_history'])
    const sold = [...gateway.gateway.current.catalog.operations.values()].filter(
      ({ price, plan, listed }) => price !== null && plan === null && listed,
    )
    const free = tools.filter(({ _meta }) => _meta['x402/price'].free)
    expect(tools.length - free.length).to.equal(sold.length)
    expect(named).to.deep.include.members(free)
  })

  it('that only /mcp/all has are unknown at /mcp, and are sold as others are', async () => {
    const call = { name: 'get_perp_funding_rates', arguments: {} }
    expect(await rpc('/mcp', 'tools/call', call)).to.equal(undefined)
    const answer = await rpc<{ isError: boolean; structuredContent: { code: string; accepts: unknown[] } }>(
      '/mcp/all',
      'tools/call',
      call,
    )
    expect(answer.isError).to.equal(true)
    expect(answer.structuredContent).to.include({ code: 'payment_required' })
    expect(answer.structuredContent.accepts).to.not.be.empty
  })

  it('say of every array what it holds, because VS Code and OpenAI refuse tools that do not', () => {
    expect(tools.map(({ name }) => name)).to.include.members([
      'check_bar_quality',
      'audit_backtest',
      'estimate_execution_cost',
    ])
    const bare = tools.flatMap(({ name, inputSchema }) =>
      [...schemasIn(inputSchema, name)]
        .filter(({ schema: { type } }) => type === 'array' || (Array.isArray(type) && type.includes('array')))
        .filter(({ schema: { items } }) => typeof items !== 'object' || items === null || Array.isArray(items))
        .map(({ path }) => path),
    )
    expect(bare).to.deep.equal([])
  })
})
