import { expect } from 'chai'
import { AnswerBody } from '../../../gateway/plugin/answer-body.ts'
import { answerOf, errorAnswer, isConstantAnswer, isSharedAnswer, valueOf } from '../../../gateway/calls/answers.ts'
import { InvalidInput, NotFound, ServiceError } from '../../../gateway/errors.ts'
import { Reply } from '../../../gateway/plugin/plugin.ts'
import { proves } from '../../requirements.ts'

const json = (body: AnswerBody): unknown => JSON.parse(body.toString())

describe('the answer to a call', () => {
  it('is the JSON of the value that the handler returns', () => {
    const answer = answerOf({ a: 1 })
    expect(answer).to.deep.include({ status: 200, headers: { 'content-type': 'application/json; charset=utf-8' } })
    expect(json(answer.body)).to.deep.equal({ a: 1 })
  })

  it('is the plain text if the reply names a content type', () => {
    const answer = answerOf(new Reply('User-agent: *\n', { headers: { 'Content-Type': 'text/plain' } }))
    expect(answer.body.toString()).to.equal('User-agent: *\n')
    expect(answer.headers['content-type']).to.equal('text/plain')
  })

  it('is the JSON that the handler has written, unchanged', () => {
    const bytes = Buffer.from('{ "price": 1900.0 }')
    const answer = answerOf(Reply.json(bytes, { status: 201, headers: { ETag: '"p1"' } }))
    expect(answer.body.bytes).to.equal(bytes)
    expect(answer.status).to.equal(201)
    expect(answer.headers).to.deep.equal({ 'content-type': 'application/json; charset=utf-8', etag: '"p1"' })
    expect(valueOf(answer)).to.deep.equal({ price: 1900 })
    const shown = answerOf(Reply.json(bytes), true)
    expect([shown.body.length, valueOf(shown)]).to.deep.equal([0, { price: 1900 }])
  })

  it('is serialized once for a constant document, and each time for any other value', () => {
    const [document, value] = [Reply.constant({ a: { b: 1 } }), new Reply({ a: { b: 1 } })]
    expect(answerOf(document)).to.equal(answerOf(document))
    expect(() => Object.assign((document.body as { a: object }).a, { b: 2 })).to.throw(TypeError)
    answerOf(value)
    Object.assign((value.body as { a: object }).a, { b: 2 })
    expect(json(answerOf(value).body)).to.deep.equal({ a: { b: 2 } })
  })

  it('is serialized once for a shared reply, which is not a constant one', () => {
    const [shared, other] = [Reply.shared(new Reply({ a: 1 })), Reply.shared(new Reply({ a: 1 }))]
    expect(answerOf(shared)).to.equal(answerOf(shared))
    expect(answerOf(shared)).to.not.equal(answerOf(other))
    expect([isSharedAnswer(answerOf(shared)), isConstantAnswer(answerOf(shared))]).to.deep.equal([true, false])
    const constant = answerOf(Reply.constant({ a: 1 }))
    expect([isSharedAnswer(constant), isConstantAnswer(constant)]).to.deep.equal([true, true])
    expect(isSharedAnswer(answerOf(new Reply({ a: 1 })))).to.equal(false)
  })

  it('has JSON in pieces as its body, which are joined when somebody reads them', () => {
    const pieces = [Buffer.from('{"a":'), Buffer.from('[1,2]'), Buffer.from('}')]
    const answer = answerOf(Reply.json(pieces))
    expect(answer.body.pieces).to.deep.equal(pieces)
    expect(answer.body.toString()).to.equal('{"a":[1,2]}')
    expect(valueOf(answer)).to.deep.equal({ a: [1, 2] })
  })

  it('is empty if the handler returns nothing', () => {
    expect(answerOf(undefined).body).to.have.length(0)
  })
})

describe('the answer to a refused call', () => {
  it('lists the invalid fields in the shape of the interface', () => {
    proves('detail-shape')
    const item = { loc: ['query', 'limit'], msg: 'Give 1 to 10.', type: 'less_than_equal', input: 11 }
    const answer = errorAnswer(new InvalidInput([item]), 'c1')
    expect(answer.status).to.equal(422)
    expect(json(answer.body)).to.deep.include({ detail: [item], code: 'validation_failed', retry: 'after_fix' })
  })

  it('shows only the call id of an unexpected error', () => {
    const answer = errorAnswer(new TypeError('secret of the house'), 'c42')
    expect(answer.status).to.equal(500)
    expect(answer.body.toString()).to.contain('c42').and.not.contain('secret')
  })

  it('has a Retry-After header only if waiting helps', () => {
    expect(errorAnswer(new ServiceError('product_timeout'), 'c').headers).to.have.property('retry-after')
    expect(errorAnswer(new NotFound(), 'c').headers).to.not.have.property('retry-after')
  })
})
