import { expect } from 'chai'
import { draftsOf } from '../../../gateway/catalog/product-drafts.ts'
import type { CatalogDocument } from '../../../gateway/catalog/documents.ts'

const document = (product: string, ids: readonly string[], uses: readonly string[] = []): CatalogDocument =>
  ({
    file: `${product}.json`,
    kind: 'product',
    content: { product, uses, operations: Object.fromEntries(ids.map((id) => [id, {}])) },
  }) as unknown as CatalogDocument

describe('the uses of a product', () => {
  const usesOf = (...documents: CatalogDocument[]): readonly string[] =>
    draftsOf(documents).find(({ product }) => product === 'pages')?.uses ?? []

  it('are the operations that its document names', () => {
    expect(usesOf(document('pages', [], ['getGold']), document('gold', ['getGold', 'getMine']))).to.deep.equal([
      'getGold',
    ])
  })

  it('include every matching operation of other products if they contain a *', () => {
    const gold = document('gold', ['getGold', 'getGoldMethod'])
    const tin = document('tin', ['getTinMethod'])
    expect(usesOf(document('pages', ['getPageMethod'], ['get*Method']), gold, tin)).to.deep.equal([
      'getGoldMethod',
      'getTinMethod',
    ])
  })

  it('match from both ends, with the parts between several * in their order and without overlaps', () => {
    const gold = document('gold', ['getGold', 'getGoldMethod', 'getMethodGold', 'getMethod', 'goldMethod'])
    const used = (use: string): readonly string[] => usesOf(document('pages', [], [use]), gold)
    expect(used('get*Gold*Method')).to.deep.equal(['getGoldMethod'])
    expect(used('*Gold')).to.deep.equal(['getGold', 'getMethodGold'])
    expect(used('get*etMethod')).to.deep.equal([])
    expect(used('*')).to.have.length(5)
  })

  it('may contain a * that matches nothing', () => {
    expect(usesOf(document('pages', [], ['get*Method']))).to.deep.equal([])
  })
})
