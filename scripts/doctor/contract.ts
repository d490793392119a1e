/** Checks what a buyer must know before paying: what to send and what comes back, over HTTP and over MCP. */
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Findings } from './findings.ts'
import type { ListedOperation } from './documents.ts'
import { fieldsOf, itemsOf } from './client.ts'

/** Checks the schemas and examples of a priced operation. */
export function checkContract({ operation, route }: ListedOperation, findings: Findings): void {
  const report = findings.at(route)
  if (typeof operation['summary'] !== 'string' || operation['summary'] === '')
    report('words', 'Has no summary.', 'Describe in one sentence what a call returns.')
  const responses = fieldsOf(operation['responses'])
  if (!('402' in responses)) report('schema', '/openapi.json does not list its 402 response.', 'Add the response.')
  const answers = Object.entries(fieldsOf(fieldsOf(responses['200'])['content']))
  const isData = answers.some(([media]) => media.endsWith('json'))
  const described = answers.some(([, answer]) => Object.keys(fieldsOf(fieldsOf(answer)['schema'])).length > 0)
  if (!described) report('schema', 'Its answer has no schema.', 'Add "response" to the catalog.')
  if (isData && !answers.some(([, answer]) => 'example' in fieldsOf(answer)))
    findings.advise(
      route,
      'example',
      'Has no example of its answer.',
      'Buyers look at an example first: add example.response to the catalog.',
    )
  for (const { name, required, schema, example } of itemsOf(operation['parameters'])) {
    if (Object.keys(fieldsOf(schema)).length === 0)
      report('schema', `The parameter ${String(name)} has no schema.`, 'Describe it in the catalog.')
    if (required === true && example === undefined)
      report(
        'example',
        `The parameter ${String(name)} is required and has no example.`,
        'Add example.request to the catalog.',
      )
  }
  if (operation['requestBody'] === undefined) return
  const bodies = Object.values(fieldsOf(fieldsOf(operation['requestBody'])['content'])).map(fieldsOf)
  if (bodies.length === 0 || !bodies.some(({ schema }) => Object.keys(fieldsOf(schema)).length > 0))
    report('schema', 'Its body has no schema.', 'Describe it in the catalog.')
  if (!bodies.some((body) => 'example' in body))
    report('example', 'Its body has no example.', 'Add example.request.body to the catalog.')
}

/** Shortens the long list of violations that the client prints if the answer is not MCP at all. */
function summaryOf(error: unknown): string {
  const { message } = error as Error
  return message.includes('\n') ? 'the answer is not MCP.' : message
}

/** Checks the MCP tools: exactly those that the documents name, at the same price. Returns how many there are. */
export async function checkTools(
  baseUrl: string,
  listed: readonly ListedOperation[],
  findings: Findings,
): Promise<number> {
  const report = findings.at('/mcp')
  const client = new McpClient({ name: 'doctor', version: '1.0.0' })
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`)))
    const { tools } = await client.listTools()
    const named = new Map(listed.flatMap((operation) => (operation.tool ? [[operation.tool, operation] as const] : [])))
    for (const { name, inputSchema, _meta, description = '' } of tools) {
      const operation = named.get(name)
      named.delete(name)
      if (!operation)
        report('tools', `Offers ${name}, which /openapi.json does not name.`, 'Generate both from the same catalog.')
      else {
        const amount = fieldsOf(fieldsOf(_meta)['x402/price'])['amount']
        if (amount !== (operation.price ?? '0'))
          report(
            'price',
            `Gives the price of ${name} as ${String(amount)}, but it costs ${operation.price ?? '0'}.`,
            'Generate it from the catalog.',
          )
      }
      if (inputSchema.type !== 'object' || description === '')
        report('tools', `${name} lacks a description or a schema of its arguments.`, 'Add them.')
    }
    for (const [name, { route }] of named)
      report('tools', `Does not offer ${name}, the tool of ${route}.`, 'Generate both from the same catalog.')
    return tools.length
  } catch (error) {
    report('tools', `Does not list its tools: ${summaryOf(error)}`, 'Serve MCP over streamable HTTP at this path.')
    return 0
  } finally {
    await client.close().catch(() => {})
  }
}
