/**
 * `npm run lab -- venues`: buys every product during every failure, with payments on a local chain, and prints what the buyer
 * got and how long the recovery took. Ends with 1 if a cell is bad that `expected-failures.ts` does not list, or good
 * though it is listed.
 */
import type { Context } from 'mocha'
import { expectedFailure } from './expected-failures.ts'
import { type Cell, FAILURES, FailureMatrix, isGood } from './failure-matrix.ts'
import { PRODUCTS } from './bought-products.ts'
import { cellText, tableOf } from './matrix-table.ts'
import { startVenueChain } from './venue-gateway.ts'
import { defer, flag, readOptions, say, text } from '../lab/experiment.ts'

const { values } = readOptions({
  failures: text('A,B', 'only these failures, such as reset,empty', null),
  products: text('A,B', 'only these products, such as regime,cost', null),
  scope: text('NAME', 'only failures of this scope, such as one', null),
  details: flag('print every cell, also the good ones'),
})
const listOf = (text: string | null): readonly string[] | undefined => text?.split(',').map((name) => name.trim())

const [names, products] = [listOf(values.failures), listOf(values.products)]
const failures = FAILURES.filter(
  ({ name, scope }) => (names?.includes(name) ?? true) && (values.scope === null || scope === values.scope),
)
const skipped = {
  skip: () => {
    throw new Error('the anvil binary is not installed')
  },
} as unknown as Context

const begun = performance.now()
const chain = await startVenueChain(skipped)
defer(() => chain.stop())
const matrix = new FailureMatrix(chain)
defer(() => matrix.close())
const bad: string[] = []
for (const { product, verdict, code, details } of await matrix.undisturbed(products)) {
  say(`without a failure: ${product}: ${verdict} ${code} ${details.join('; ')}`)
  if (verdict !== 'fresh' && !expectedFailure('none', 'all', product)) bad.push(`none ${product}`)
}
const explain = (cell: Cell): void => {
  const { failure, product, early, late } = cell
  if (!values.details && isGood(cell)) return
  const words = [...new Set([...early.details, ...late.details])].slice(0, 4).join('; ')
  say(`  ${failure.name} (${failure.scope}) ${product}: ${cellText(cell)} ${words}`)
}
const cells = await matrix.run({
  failures,
  ...(products ? { products } : {}),
  onCell: explain,
  onFailure: ({ name, scope }, ms) => say(`${name} (${scope}): ${(ms / 1000).toFixed(1)} s`),
})
say('')
say(tableOf(cells, products ?? PRODUCTS.map(({ name }) => name)))
for (const cell of cells) {
  const { failure, product } = cell
  const expected = expectedFailure(failure.name, failure.scope, product)
  if (isGood(cell) === (expected === null)) continue
  bad.push(
    `${failure.name} (${failure.scope}) ${product}: ${expected === null ? cellText(cell) : 'passes, remove it from expected-failures.ts'}`,
  )
}
const failing = cells.filter((cell) => !isGood(cell))
const expected = failing.flatMap(({ failure, product }) => {
  const reason = expectedFailure(failure.name, failure.scope, product)
  return reason === null ? [] : [{ name: `${failure.name} (${failure.scope}) ${product}`, reason }]
})
for (const { name, reason } of expected) say(`expected to fail: ${name}: ${reason}`)
say('')
say(
  `${cells.length} cells, ${failures.length} failures, ${cells.filter(isGood).length} good, ${expected.length} expected to fail, ${bad.length} unexpected, ${((performance.now() - begun) / 1000).toFixed(0)} s`,
)
for (const line of bad) say(`unexpected: ${line}`)
process.exitCode = bad.length > 0 ? 1 : 0
