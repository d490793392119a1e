import { expect } from 'chai'
import { freshSentence } from '../../../gateway/documents/listed-operations.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'

describe('The condition of a sale in the documents', () => {
  const sentence = (coverage: number): string => freshSentence({ fresh: { coverage }, plan: null } as Operation)

  it('says the share of the data as the catalog writes it, not as binary fractions multiply', () => {
    for (const [share, shown] of [
      [0.29, '29%'],
      [0.57, '57%'],
      [0.995, '99.5%'],
      [1, '100%'],
    ] as const)
      expect(sentence(share)).to.contain(`while ${shown} or more of the expected data are there`)
  })
})
