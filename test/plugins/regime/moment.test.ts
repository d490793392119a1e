import { InvalidInput } from 'tollgate/plugin'
import { expect } from 'chai'
import fc from 'fast-check'
import { isoSeconds, parseMoment } from '../../../plugins/regime/moment.ts'

const FEBRUARY = 1_769_904_000

describe('moments in a query', () => {
  it('are read in every form that the documents name', () => {
    for (const text of [
      '2026-02-01',
      '2026-02-01T00:00',
      '2026-02-01T00:00:00Z',
      '2026-02-01T00:00:00.000Z',
      '2026-02-01 00:00:00',
      '2026-02-01T01:00:00+01:00',
      '2026-02-01T01:00:00 01:00',
      '1769904000',
      '1769904000000',
      1769904000,
      1769904000000,
    ])
      expect(parseMoment(text, 'start'), String(text)).to.equal(FEBRUARY)
  })

  it('that do not exist are refused, naming the field', () => {
    for (const text of [
      '2026-02-30',
      '2026-13-01',
      'yesterday',
      '',
      '2026-02-01T25:00:00Z',
      '-5',
      '99999999999999999999',
      'NaN',
      '1e3x',
      '2026-2-1',
    ])
      expect(() => parseMoment(text, 'end'), text)
        .to.throw(InvalidInput)
        .with.nested.property('detail[0].loc')
        .that.deep.equals(['query', 'end'])
  })

  it('come back from ISO to the second', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e9 }), (seconds) => {
        expect(parseMoment(isoSeconds(seconds), 'start')).to.equal(seconds)
        expect(parseMoment(seconds, 'start')).to.equal(seconds)
        expect(parseMoment(String(seconds), 'start')).to.equal(seconds)
      }),
    )
  })
})
