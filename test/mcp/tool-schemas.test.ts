import { resolve } from 'node:path'
import { expect } from 'chai'
import { openGateway, type TestGateway } from '../support/gateway.ts'

const root = resolve(import.meta.dirname, '../..')

interface Tool {
  readonly name: string
  readonly inputSchema: unknown
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
  before(async () => {
    gateway = await openGateway({ CATALOG_DIR: resolve(root, 'catalog'), PLUGIN_DIRS: resolve(root, 'plugins') })
    const response = await fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    tools = ((await response.json()) as { result: { tools: Tool[] } }).result.tools
  })
  after(() => gateway.close())

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
