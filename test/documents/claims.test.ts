import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { callOperation, openTestCatalog } from 'tollgate/testing'
import type { Claim } from '../../schemas/types.d.ts'

const plugins = resolve(import.meta.dirname, '../../plugins')

interface Page {
  readonly claims: {
    readonly count: number
    readonly met: number
    readonly products: readonly { readonly claims: readonly Record<string, unknown>[] }[]
  }
}

describe('the claims of the methodology page', () => {
  const files = readdirSync(plugins, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('-measurements.json'))
    .map((name) => JSON.parse(readFileSync(join(plugins, name), 'utf8')) as { readonly claims: readonly Claim[] })
  const claims = files.flatMap((file) => file.claims)

  it('are those that the benches wrote, no more and no less', async () => {
    const { edition, close } = await openTestCatalog({ now: new Date('2026-11-23T15:30:00Z') })
    try {
      const page = (await callOperation(edition, 'getMethodology', { asOf: new Date() })) as Page
      const shown = page.claims.products.flatMap((product) => product.claims)
      const written = claims.map(({ start, end, ...claim }) => ({
        ...claim,
        window: [...new Set([start, end].flatMap((time) => (time === null ? [] : [time.slice(0, 10)])))].join(' to '),
      }))
      expect(shown).to.have.deep.members(written)
      expect(page.claims).to.include({ count: claims.length, met: claims.filter(({ met }) => met).length })
    } finally {
      await close()
    }
  })

  it('name what they rest on, and include those that are not met', () => {
    expect(files).to.have.length(7)
    expect(claims).to.have.length.within(10, 16)
    expect(claims.map(({ met }) => met)).to.include(false)
    for (const { claimed, measured, on, start, end, cases, data_mode: mode, measured_on: day } of claims) {
      expect([claimed, measured, on], claimed).to.satisfy((texts: string[]) => texts.every((text) => text !== ''))
      expect([start === null, end === null], claimed).to.deep.equal([mode === 'sample', mode === 'sample'])
      expect(cases, claimed).to.be.above(0)
      expect(day, claimed).to.match(/^\d{4}-\d\d-\d\d$/)
    }
  })
})
