import { createHash } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { AnswerBody } from '../../../gateway/plugin/answer-body.ts'

describe('the body of an answer', () => {
  it('has the bytes of its pieces, their number and their digest, however it is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 }), (pieces) => {
        const bytes = Buffer.concat(pieces)
        const body = new AnswerBody(pieces.map((piece) => Buffer.from(piece)))
        expect(body.length).to.equal(bytes.length)
        expect(body.digest.equals(createHash('sha256').update(bytes).digest())).to.equal(true)
        expect(body.bytes.equals(bytes)).to.equal(true)
        expect(body.bytes, 'joined once').to.equal(body.bytes)
      }),
    )
  })

  it('of one buffer is that buffer, and of a text its bytes in UTF-8', () => {
    const bytes = Buffer.from('gold')
    expect(AnswerBody.of(bytes).bytes).to.equal(bytes)
    const text = AnswerBody.of('Ünze')
    expect([text.length, text.toString()]).to.deep.equal([5, 'Ünze'])
  })

  it('may be empty', () => {
    expect([AnswerBody.empty.length, AnswerBody.empty.toString()]).to.deep.equal([0, ''])
  })
})
