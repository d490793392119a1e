/** The methodology page of the directory. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'

/** Written by scripts/bench/x.ts with --write. */
const tables = JSON.parse(readFileSync(new URL('measured.json', import.meta.url), 'utf8')) as Required<Method>['tables']

export const method: Method = {
  model: 'directory/1',
  paragraphs: [
    'Sources are swept every six hours: facilitator listings of x402 version 1 and 2, the MCP registry, and what origins and agents serve of themselves. Addresses are brought to one spelling; other schemes, hosts inside a network and previews are dropped and counted by reason.',
    'A service is one record, known by the SHA-256 of its address, and of its tool where one address holds many. Words come from the first source that has them, in a fixed order; prices from the service itself, else from its own document, else from the first source. When we first saw it, its health and a payee it told us itself are never overwritten by a source. A payee that changes is flagged for 30 days.',
    'A visit is one unpaid GET, and a POST where GET is not found or not the method. Alive is a 402 whose payment can be read. Two good visits in a row promote a service, three bad ones hide it. Every address is treated as hostile: resolved once, refused if any address of the name is not public, connected to that very address, and each of at most three redirects is checked the same way; time, bytes, ports and the pace towards a neighbourhood are bounded.',
    'Calls and payers are what a source claims of its own customers; nothing is sorted by them or by a source’s own times.',
  ],
  formulas: [{ name: 'id', formula: 'agt_ + first 32 hexadecimal digits of SHA-256(canonical URL [+ tool])' }],
  tables,
  limits: [
    'An address with placeholders is listed and never visited.',
    'A 402 proves that a service asks for money, not that it is worth it.',
    'Names and descriptions are written by strangers.',
  ],
  sources: [
    'x402 specification, section 8.1; x402scan discovery specification; MCP registry API v0.1; A2A specification.',
    'IANA special-purpose address registries (RFC 6890).',
  ],
}
