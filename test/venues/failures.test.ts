/** The products that rest on sources, bought with payments on a local chain while their sources fail. The whole matrix is `npm run lab -- venues`. */
import { expect } from 'chai'
import type { TestChain } from '../support/chain.ts'
import { expectedFailure } from './expected-failures.ts'
import { type Cell, FAILURES, FailureMatrix, isGood } from './failure-matrix.ts'
import type { FaultName } from './faults.ts'
import { cellText } from './matrix-table.ts'
import { startVenueChain } from './venue-gateway.ts'

/** One failure of the connection, and one of the data. */
const CHOSEN: readonly (readonly [FaultName, 'one' | 'all'])[] = [
  ['reset', 'all'],
  ['price_factor', 'one'],
]

describe('a buyer whose product rests on sources', function () {
  this.timeout(180_000)
  let chain: TestChain
  let matrix: FailureMatrix
  before(async function () {
    chain = await startVenueChain(this)
    matrix = new FailureMatrix(chain)
  })
  after(async () => {
    await matrix?.close()
    await chain?.stop()
  })

  it('gets the truth of every product while all of them answer', async () => {
    const found = await matrix.undisturbed()
    const wrong = found.filter(
      ({ verdict, product }) => verdict !== 'fresh' && !expectedFailure('none', 'all', product),
    )
    expect(wrong).to.deep.equal([])
  })

  for (const [name, scope] of CHOSEN)
    it(`gets the truth, a marked answer or no charge during ${name} of ${scope === 'one' ? 'the first source' : 'all sources'}, and the truth after it`, async () => {
      const failures = FAILURES.filter((failure) => failure.name === name && failure.scope === scope)
      const cells = await matrix.run({ failures })
      const told = (cell: Cell): string =>
        `${cell.product}: ${cellText(cell)} ${[...cell.early.details, ...cell.late.details].slice(0, 3).join('; ')}`
      const isExpected = (cell: Cell): boolean => expectedFailure(name, scope, cell.product) !== null
      for (const cell of cells)
        if (isExpected(cell))
          process.stdout.write(
            `      (expected to fail: ${cell.product}: ${expectedFailure(name, scope, cell.product)})\n`,
          )
      expect(cells.filter((cell) => !isGood(cell) && !isExpected(cell)).map(told)).to.deep.equal([])
      for (const cell of cells)
        if (isGood(cell) && isExpected(cell))
          process.stdout.write(`      (${cell.product} passes now: remove it from expected-failures.ts)\n`)
    })
})
