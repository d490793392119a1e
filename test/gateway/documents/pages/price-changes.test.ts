import { expect } from 'chai'
import { changesOf } from '../../../../gateway/documents/pages/pricing-page.ts'

const change = (before: number | null, after: number | null, day = 1) => ({
  operation: 'getGold',
  route: 'GET /v1/x/gold',
  old_price_usd: before,
  new_price_usd: after,
  changed_at: `2026-11-${String(day).padStart(2, '0')}T00:00:00Z`,
})

describe('the changes on the price page', () => {
  it('exclude new routes and removed free routes', () => {
    const [raised, withdrawn] = [change(0.01, 0.02), change(0.02, null)]
    const changes = [withdrawn, raised, change(null, 0.01), change(0, null)]
    expect(changesOf({ changes })).to.deep.equal([withdrawn, raised])
    expect(changesOf(null)).to.deep.equal([])
  })

  it('are limited to the newest', () => {
    const changes = Array.from({ length: 400 }, (_, index) => change(index + 1, index + 2))
    expect(changesOf({ changes })).to.deep.equal(changes.slice(0, 20))
  })
})
