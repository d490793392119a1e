import { expect } from 'chai'
import { draftsOf } from '../../../gateway/catalog/product-drafts.ts'
import type { CatalogDocument } from '../../../gateway/catalog/documents.ts'

const document = (product: string, ids: readonly string[], uses: readonly string[] = []): CatalogDocument =>
  ({
    file: `${product}.json`,
    kind: 'product',
    content: { product, uses, operations: Object.fromEntries(ids.map((id) => [id, {}])) },
  }) as unknown as CatalogDocument

describe('what a product may ask', () => {
  const usesOf = (...documents: CatalogDocument[]): readonly string[] =>
    draftsOf(documents).find(({ product }) => product === 'pages')?.uses ?? []

  it('is what it names', () => {
    expect(usesOf(document('pages', [], ['getGold']), document('gold', ['getGold', 'getMine']))).to.deep.equal([
      'getGold',
    ])
  })

  it('is, with a *, whatever others offer under such a name', () => {
    const gold = document('gold', ['getGold', 'getGoldMethod'])
    const tin = document('tin', ['getTinMethod'])
    expect(usesOf(document('pages', ['getPageMethod'], ['get*Method']), gold, tin)).to.deep.equal([
      'getGoldMethod',
      'getTinMethod',
    ])
  })

  it('is nothing, with a *, where nobody offers such a thing, and that is no mistake', () => {
    expect(usesOf(document('pages', [], ['get*Method']))).to.deep.equal([])
  })
})
