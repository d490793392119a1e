import { canonical } from '../address.ts'
import { createPage, EMPTY, type Kind, type Page, type Protocol } from '../listing.ts'
import { isRow, listOf, nameOf, type Row, rowOf, textOf } from '../reading.ts'

/** A service that an agent can be called by. */
interface Called {
  readonly kind: Kind
  readonly protocols: readonly Protocol[]
}

/** By the name that a registration gives them. */
const CALLED: Readonly<Record<string, Called>> = {
  mcp: { kind: 'mcp_server', protocols: ['mcp'] },
  a2a: { kind: 'a2a_agent', protocols: ['a2a'] },
}
const WEB: Called = { kind: 'http_endpoint', protocols: [] }
const MOST_SERVICES = 20

/**
 * An ERC-8004 registration file: one agent with its services. MCP and A2A services are listed; a web service is where
 * the agent says that it takes x402 payments. Names, wallets and mail addresses are no services. Null where it is no
 * such file.
 *
 * Source: ERC-8004, "Agent URI and agent registration file".
 *
 * @param agent the registry and number it was found under; else what the file says of itself
 */
export function readRegistration(payload: unknown, agent: string | null = null): Page | null {
  if (!isRow(payload) || !/eip-8004#registration-v\d+$/.test(textOf(payload['type']) ?? '')) return null
  const page = createPage()
  // Drafts of the standard had `endpoints`.
  const services = listOf(payload['services'] ?? payload['endpoints'])
    .slice(0, MOST_SERVICES)
    .map(rowOf)
  for (const service of payload['active'] === false ? [] : services) {
    const name = (nameOf(service['name']) ?? '').toLowerCase()
    const isPaid = payload['x402Support'] === true || payload['x402support'] === true
    const called = CALLED[name] ?? (isPaid && name === 'web' ? WEB : undefined)
    if (!called) continue
    const address = canonical(service['endpoint'])
    if (address.reason !== null) {
      page.drop(address.reason)
      continue
    }
    page.add({
      ...EMPTY,
      url: address.url,
      isTemplate: address.isTemplate,
      kind: called.kind,
      name: nameOf(payload['name']),
      description: textOf(payload['description']),
      protocols: isPaid ? [...called.protocols, 'x402'] : called.protocols,
      version: nameOf(service['version']),
      erc8004: agent ?? agentOf(rowOf(listOf(payload['registrations'])[0])),
    })
  }
  if (payload['active'] === false) page.drop('inactive')
  return page.end(Math.max(1, services.length))
}

/** "eip155:8453:0x8004…:22"; null where the file does not say it, or leaves the placeholders of its model. */
function agentOf(registration: Row): string | null {
  const [registry, id] = [nameOf(registration['agentRegistry']), registration['agentId']]
  if (registry === null || !/^[a-z0-9]+:\d+:0x[0-9a-fA-F]{40}$/.test(registry)) return null
  // A number that JavaScript has rounded is not the agent's.
  const isTold = typeof id === 'string' ? /^\d{1,78}$/.test(id) : Number.isSafeInteger(id) && Number(id) >= 0
  return isTold ? `${registry}:${String(id)}` : null
}
