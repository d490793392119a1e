import { expect } from 'chai'
import { AnswerBody } from '../../../gateway/plugin/answer-body.ts'
import type { Answer } from '../../../gateway/calls/request-and-answer.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { toolResult } from '../../../gateway/mcp/tool-results.ts'
import type { Tool } from '../../../gateway/mcp/tools.ts'

const RECEIPT = {
  success: true,
  transaction: `0x${'ab'.repeat(32)}`,
  network: NETWORKS['base-sepolia'],
  payer: `0x${'b2'.repeat(20)}`,
  amount: 5000n,
  version: 2,
} as const

/** The result of a tool whose answer has this type and text, and is paid. */
function resultOf(type: string, text: string): Record<string, unknown> {
  const answer: Answer = { status: 200, headers: { 'content-type': type }, body: AnswerBody.of(text), receipt: RECEIPT }
  return JSON.parse(toolResult(answer, {} as Tool, 'call-1')) as Record<string, unknown>
}

describe('the result of a paid tool', () => {
  it('has the answer as text, and as an object if it is one', () => {
    const { _meta, ...result } = resultOf('application/json', '{"n":1}')
    expect(result).to.deep.equal({ content: [{ type: 'text', text: '{"n":1}' }], structuredContent: { n: 1 } })
    expect(_meta).to.have.nested.property('x402/payment-response.success', true)
    expect(resultOf('application/json', '[1]')).to.not.have.property('structuredContent')
  })

  it('has what a failure says as text alone if the answer has a schema, which a failure need not fit', () => {
    const answer: Answer = {
      status: 404,
      headers: { 'content-type': 'application/json' },
      body: AnswerBody.of('{"no":1}'),
    }
    const resultWith = (definition: object): unknown =>
      JSON.parse(toolResult(answer, { definition } as Tool, 'call-1')) as unknown
    const text = { content: [{ type: 'text', text: '{"no":1}' }], isError: true, _meta: { call_id: 'call-1' } }
    expect(resultWith({ outputSchema: { type: 'object' } })).to.deep.equal(text)
    expect(resultWith({})).to.deep.equal({ ...text, structuredContent: { no: 1 } })
  })

  for (const [type, text] of [
    ['application/json', '{"n":1'],
    ['application/json-seq', '\u001e{"n":1}\n'],
    ['application/problem+json; charset=utf-8', ''],
  ] as const)
    it(`has the answer as text if ${type} is ${JSON.stringify(text)}, which is no JSON`, () => {
      const { _meta, ...result } = resultOf(type, text)
      expect(result).to.deep.equal({ content: [{ type: 'text', text }] })
      expect(_meta).to.have.nested.property('x402/payment-response.success', true)
    })
})
