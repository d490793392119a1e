/** What a buyer must know before paying: what to send, what comes back. And what an MCP client is told. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Findings } from './finding.ts'
import type { Listed } from './listing.ts'
import { fieldsOf, itemsOf } from './wire.ts'

/** Schemas and examples of a priced operation. */
export function checkContract({ operation, route }: Listed, findings: Findings): void {
  const report = findings.at(route)
  if (typeof operation['summary'] !== 'string' || operation['summary'] === '')
    report('words', 'Has no summary.', 'Say in one sentence what a call returns.')
  const responses = fieldsOf(operation['responses'])
  if (!('402' in responses)) report('schema', '/openapi.json does not say that it answers 402.', 'Add the response.')
  const answers = Object.entries(fieldsOf(fieldsOf(responses['200'])['content']))
  const isData = answers.some(([media]) => media.endsWith('json'))
  const described = answers.some(([, answer]) => Object.keys(fieldsOf(fieldsOf(answer)['schema'])).length > 0)
  if (!described) report('schema', 'Its answer has no schema.', 'Write one into "response" of the catalog.')
  if (isData && !answers.some(([, answer]) => 'example' in fieldsOf(answer)))
    findings.advise(
      route,
      'example',
      'Shows no example of its answer.',
      'Buyers look at one first: write example.response.',
    )
  for (const { name, required, schema, example } of itemsOf(operation['parameters'])) {
    if (Object.keys(fieldsOf(schema)).length === 0)
      report('schema', `The parameter ${String(name)} has no schema.`, 'Describe it in the catalog.')
    if (required === true && example === undefined)
      report('example', `The parameter ${String(name)} is required and has no example.`, 'Write example.request.')
  }
  if (operation['requestBody'] === undefined) return
  const bodies = Object.values(fieldsOf(fieldsOf(operation['requestBody'])['content'])).map(fieldsOf)
  if (bodies.length === 0 || !bodies.some(({ schema }) => Object.keys(fieldsOf(schema)).length > 0))
    report('schema', 'Its body has no schema.', 'Describe it in the catalog.')
  if (!bodies.some((body) => 'example' in body))
    report('example', 'Its body has no example.', 'Write example.request.body into the catalog.')
}

/** What answers something else than MCP makes the client list a page of broken rules. */
function sentenceOf(error: unknown): string {
  const { message } = error as Error
  return message.includes('\n') ? 'the answer is no MCP.' : message
}

/** The tools of MCP: those the documents name, no others, at the same price. */
export async function checkTools(baseUrl: string, listed: readonly Listed[], findings: Findings): Promise<number> {
  const report = findings.at('/mcp')
  const client = new Client({ name: 'doctor', version: '1.0.0' })
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`)))
    const { tools } = await client.listTools()
    const named = new Map(listed.flatMap((operation) => (operation.tool ? [[operation.tool, operation] as const] : [])))
    for (const { name, inputSchema, _meta, description = '' } of tools) {
      const operation = named.get(name)
      named.delete(name)
      if (!operation) report('tools', `Offers ${name}, which /openapi.json does not name.`, 'Make both of one catalog.')
      else {
        const amount = fieldsOf(fieldsOf(_meta)['x402/price'])['amount']
        if (amount !== (operation.price ?? '0'))
          report(
            'price',
            `Says ${String(amount)} for ${name}, which costs ${operation.price ?? '0'}.`,
            'Make it from the catalog.',
          )
      }
      if (inputSchema.type !== 'object' || description === '')
        report('tools', `${name} has no description or no schema of its arguments.`, 'Add them.')
    }
    for (const [name, { route }] of named)
      report('tools', `Does not offer ${name}, the tool of ${route}.`, 'Make both of one catalog.')
    return tools.length
  } catch (error) {
    report('tools', `Cannot be asked for its tools: ${sentenceOf(error)}`, 'Serve MCP over streamable HTTP there.')
    return 0
  } finally {
    await client.close().catch(() => {})
  }
}
