import { randomBytes } from 'node:crypto'
import { constants, deflateRawSync } from 'node:zlib'
import { expect } from 'chai'
import fc from 'fast-check'
import { packAnswer, unpackAnswer } from '../../../../gateway/payments/journal/packed-answers.ts'
import { AnswerBody } from '../../../../gateway/plugin/answer-body.ts'

/** Rows like those of the history. */
const rowsOf = (hour: number, count = 120): Buffer =>
  Buffer.from(
    Array.from({ length: count }, (_, row) =>
      JSON.stringify({ as_of: hour * 3600 + row * 60, regime: 'STABLE', confidence: ((hour + row) * 7919) % 1000 }),
    ).join(),
  )
const COMMA = Buffer.from(',')
const HOURS = Array.from({ length: 40 }, (_, hour) => rowsOf(hour))

/** A page of a part of one hour and whole ones after it. */
const pageOf = (first: number, hours: number): AnswerBody =>
  new AnswerBody([
    Buffer.from(`{"count":${hours},"rows":[`),
    HOURS[first]!.subarray(300),
    ...HOURS.slice(first + 1, first + 1 + hours).flatMap((hour) => [COMMA, hour]),
    Buffer.from(']}'),
  ])

describe('a packed answer', () => {
  it('is less than a sixth as long, whether its pieces were in other answers before or not', async () => {
    for (let nth = 0; nth < 4; nth += 1) {
      const page = pageOf(nth, 17)
      const { body, length } = await packAnswer(page)
      expect(length).to.equal(page.length)
      expect(body.length, `page ${nth}`).to.be.below(page.length / 6)
      expect(unpackAnswer({ body, length }).equals(page.bytes), `page ${nth}`).to.equal(true)
    }
  })

  it('has a piece that two answers had before as it was deflated by itself', async () => {
    const [first, second, third] = [20, 21, 22].map((hour) => pageOf(hour, 8))
    const options = { level: 1, windowBits: 13, memLevel: 6, finishFlush: constants.Z_SYNC_FLUSH }
    const piece = deflateRawSync(HOURS[25]!, options)
    expect((await packAnswer(first!)).body.includes(piece)).to.equal(false)
    for (const page of [second!, third!]) expect((await packAnswer(page)).body.includes(piece)).to.equal(true)
  })

  it('unpacks to its bytes, whatever pieces it had', () => {
    const pool = [
      ...HOURS,
      COMMA,
      Buffer.alloc(0),
      randomBytes(5_000),
      rowsOf(1, 4_000),
      Buffer.from('"'.repeat(4_095)),
    ]
    return fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: pool.length - 1 }), { maxLength: 30 }), async (drawn) => {
        const answer = new AnswerBody(drawn.map((nth) => pool[nth]!))
        const packed = await packAnswer(answer)
        expect(unpackAnswer(packed).equals(answer.bytes)).to.equal(true)
        expect(packed.body.length).to.be.at.most(answer.length)
      }),
      { numRuns: 200 },
    )
  })

  it('stays as it is if it cannot be made shorter', async () => {
    const bytes = randomBytes(50_000)
    expect(await packAnswer(AnswerBody.of(bytes))).to.deep.equal({ body: bytes, length: null })
  })
})
