import { expect } from 'chai'
import { addressesIn } from '../../../gateway/hooks/deny-list.ts'

const [ONE, TWO] = [`0x${'a1'.repeat(20)}`, `0x${'B2'.repeat(20)}`]

describe('a deny list', () => {
  for (const [how, text] of Object.entries({
    'one address a line, with comments': `# theirs\r\n${ONE}\r\n\n  ${TWO} # ours\n`,
    'a JSON array': JSON.stringify([ONE, TWO]),
  }))
    it(`is ${how}`, () => {
      expect([...addressesIn(text)]).to.deep.equal([ONE, TWO.toLowerCase()])
    })

  it('may have no address if it has a comment, or is an empty array', () => {
    expect(addressesIn('# nobody').size).to.equal(0)
    expect(addressesIn('[]').size).to.equal(0)
  })

  for (const text of [
    '',
    ' \n',
    '<!doctype html>',
    `${ONE} ${TWO}`,
    ONE.slice(0, 41),
    '["x"]',
    '[[]]',
    '[',
    `[${ONE}]`,
  ])
    it(`is none if it is ${JSON.stringify(text.slice(0, 30))}`, () => {
      expect(() => addressesIn(text)).to.throw()
    })
})
