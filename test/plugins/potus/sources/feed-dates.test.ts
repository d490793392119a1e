import { expect } from 'chai'
import * as fc from 'fast-check'
import { timeOf } from '../../../../plugins/potus/sources/feed-body.ts'

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

describe('dates of feeds', () => {
  const two = (value: number): string => String(value).padStart(2, '0')
  const forms = fc.constantFrom(
    (year: number, month: number, day: number) => `Thu, ${two(day)} ${MONTHS[month - 1]} ${year} 10:01:02 GMT`,
    (year: number, month: number, day: number) => `${day} ${MONTHS[month - 1]} ${year} 11:01 GMT+1`,
    (year: number, month: number, day: number) => `${MONTHS[month - 1]} ${day}, ${year} 5:01 EST`,
    (year: number, month: number, day: number) => `${year}-${two(month)}-${two(day)}`,
    (year: number, month: number, day: number) => `${year}-${two(month)}-${two(day)}T12:31:00+02:30`,
    (year: number, month: number, day: number) => `${month}/${day}/${year}`,
  )

  it('are the day that they name, and no date if their month lacks it', () => {
    fc.assert(
      fc.property(
        forms,
        fc.integer({ min: 2015, max: 2035 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 31 }),
        (form, year, month, day) => {
          const exists = new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day
          const read = timeOf(form(year, month, day))
          if (!exists) expect(read).to.equal(null)
          else expect(new Date(read!).toISOString().slice(0, 10)).to.equal(`${year}-${two(month)}-${two(day)}`)
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('may name their zone by one digit after GMT or the clock', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('GMT', 'UTC', ' GMT', ' '),
        fc.integer({ min: -9, max: 9 }).filter((hours) => hours !== 0),
        (name, hours) => {
          const sign = hours > 0 ? '+' : '-'
          const read = timeOf(`Fri, 02 Oct 2026 12:00:00 ${name.trim()}${sign}${Math.abs(hours)}`)
          expect(read).to.equal(Date.UTC(2026, 9, 2, 12 - hours))
        },
      ),
    )
  })
})
