/** The methodology page of the directory. */
import { readFileSync } from 'node:fs'
import type { Method } from '../../schemas/types.d.ts'

/** `npm run lab -- datasets --write` writes this file. */
const measured = JSON.parse(readFileSync(new URL('directory-measurements.json', import.meta.url), 'utf8')) as Pick<
  Required<Method>,
  'claims' | 'tables'
>

/** common.json#/$defs/Method */
export const method: Method = {
  model: 'directory/1',
  paragraphs: [
    'We read all sources every six hours: facilitator listings of x402 versions 1 and 2, the MCP registry, and the documents that origins and agents serve about themselves. Addresses are normalised. Other schemes, private hosts and preview deployments are dropped and counted by reason.',
    'Each service is one record. Its id is the SHA-256 of its address, and of its tool if one address has several. Texts come from the first source that has them, in a fixed order. Prices come from the service itself, otherwise from its own document, otherwise from the first source. No source overwrites the time at which we first saw a service, its health, or a payTo address that the service itself stated. A changed payTo address is flagged for 30 days.',
    'A visit is one unpaid GET, followed by a POST if the answer is 404 or 405. A paid service is alive if it answers 402 with a payment that we can read. Two good visits in a row mark a service as alive; three bad ones hide it. Every address is treated as hostile: its name is resolved once, the visit is refused if any resolved address is not public, and the connection goes to exactly that address. Each of at most three redirects is checked the same way. Time, bytes, ports and the request rate per network neighbourhood are limited.',
    'Calls and payers are what a source claims about its own customers. Records are never sorted by them or by the times that a source states.',
  ],
  formulas: [{ name: 'id', formula: 'agt_ + first 32 hexadecimal digits of SHA-256(canonical URL [+ tool])' }],
  ...measured,
  limits: [
    'An address with placeholders is listed but never visited.',
    'A 402 proves that a service asks for money, not that it is worth it.',
    'Names and descriptions come from third parties and are not verified.',
  ],
  sources: [
    'x402 specification, section 8.1; x402scan discovery specification; MCP registry API v0.1; A2A specification.',
    'IANA special-purpose address registries (RFC 6890).',
  ],
}
