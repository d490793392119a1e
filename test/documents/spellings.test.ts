import { expect } from 'chai'
import { callOperation, openTestCatalog } from 'tollgate/testing'

type Node = Readonly<Record<string, unknown>>

/** One spelling for each thing. What a field is called that breaks the rule must be marked as deprecated. */
const RULES: Readonly<Record<string, (name: string, schema: Node) => boolean>> = {
  'a duration is in seconds, minutes, hours or days': (name) => !/_(?:ms|s)$/.test(name),
  'a range is start and end': (name, { format }) => !(/^(?:from|to)$/.test(name) && format === 'date-time'),
  'a query is for start and end': (name, { $ref }) => !(/^(?:from|to)$/.test(name) && String($ref).endsWith('.Moment')),
  'the next page has a cursor': (name) => !/^next_(?:start|page|offset|token)$/.test(name),
  'a time is ISO 8601': (name, { type }) =>
    !(/(?:^time|^as_of|_at)$/.test(name) && /integer|number/.test(String(type))),
}

describe('the fields of queries and answers', () => {
  it('have one spelling for ranges, durations, cursors and times; others are deprecated', async () => {
    const { edition, close } = await openTestCatalog({ now: new Date('2026-11-23T15:30:00Z') })
    try {
      const body = await callOperation(edition, 'getOpenapi', { asOf: new Date() })
      const fields = fieldsIn(body)
      expect(fields.length).to.be.above(1000)
      const broken = fields.flatMap(({ name, schema }) =>
        Object.entries(RULES)
          .filter(([, holds]) => schema['deprecated'] !== true && !holds(name, schema))
          .map(([rule]) => `${name}: ${rule}`),
      )
      expect([...new Set(broken)]).to.deep.equal([])
      const old = fields.filter(({ schema }) => schema['deprecated'] === true).map(({ name }) => name)
      expect(old).to.include.members(['from', 'to', 'next_start', 'latency_ms', 'p50_s', 'lag_p50_s', 'shift_ms'])
    } finally {
      await close()
    }
  })
})

/** The properties of every schema, and the parameters of every operation. */
function fieldsIn(node: unknown): { readonly name: string; readonly schema: Node }[] {
  if (typeof node !== 'object' || node === null) return []
  const { properties, parameters, example: _, examples: __, ...rest } = node as Node
  const own = Object.entries((properties ?? {}) as Record<string, Node>).map(([name, schema]) => ({ name, schema }))
  const sent = Array.isArray(parameters)
    ? (parameters as readonly Node[]).map(({ name, schema, deprecated }) => ({
        name: String(name),
        schema: { ...(schema as Node), deprecated },
      }))
    : []
  const inner = [...own.map(({ schema }) => schema), ...Object.values(rest), ...sent.map(({ schema }) => schema)]
  return [...own, ...sent, ...inner.flatMap(fieldsIn)]
}
