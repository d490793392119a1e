import { expect } from 'chai'
import { easter, holidaysOf, nyseClose, nyseClosed } from '../../../../plugins/lib/time/nyse-calendar.ts'

describe('the calendar of the NYSE', () => {
  it('has the holidays that the exchange published for 2024 and 2027', () => {
    // nyse.com, Holidays & Trading Hours.
    expect([...holidaysOf(2024).keys()].sort()).to.deep.equal([
      '2024-01-01',
      '2024-01-15',
      '2024-02-19',
      '2024-03-29',
      '2024-05-27',
      '2024-06-19',
      '2024-07-04',
      '2024-09-02',
      '2024-11-28',
      '2024-12-25',
    ])
    expect([...holidaysOf(2027).keys()].sort()).to.deep.equal([
      '2027-01-01',
      '2027-01-18',
      '2027-02-15',
      '2027-03-26',
      '2027-05-31',
      '2027-06-18',
      '2027-07-05',
      '2027-09-06',
      '2027-11-25',
      '2027-12-24',
    ])
  })

  it("moves New Year's Day from Sunday to Monday, and not at all from Saturday", () => {
    expect(nyseClosed('2023-01-02')).to.equal("New Year's Day")
    expect(nyseClosed('2021-12-31')).to.equal(null)
    expect(holidaysOf(2022).has('2022-01-01')).to.equal(false)
  })

  it('has each holiday from the year in which it was added', () => {
    expect(nyseClosed('1997-01-20')).to.equal(null)
    expect(nyseClosed('1998-01-19')).to.equal('Martin Luther King Jr. Day')
    expect(nyseClosed('2021-06-18')).to.equal(null)
    expect(nyseClosed('2022-06-20')).to.equal('Juneteenth')
  })

  it('knows closings that no rule predicts', () => {
    expect(nyseClosed('2001-09-12')).to.equal('attack on the World Trade Center')
    expect(nyseClosed('2012-10-29')).to.equal('Hurricane Sandy')
    expect(nyseClosed('2001-09-17')).to.equal(null)
  })

  it('closes at 1 pm on days with an early close', () => {
    expect(nyseClose('2024-11-29')).to.equal(780)
    expect(nyseClose('2024-12-24')).to.equal(780)
    expect(nyseClose('2024-07-03')).to.equal(780)
    expect(nyseClose('2024-07-05')).to.equal(960)
    expect(nyseClose('2020-07-02')).to.equal(960)
  })

  it('computes the date of Easter', () => {
    // Astronomical almanac; 2038 is the latest date there can be, 2285 the earliest of these centuries.
    expect([2000, 2008, 2024, 2038, 2285].map(easter)).to.deep.equal([
      '2000-04-23',
      '2008-03-23',
      '2024-03-31',
      '2038-04-25',
      '2285-03-22',
    ])
  })
})
