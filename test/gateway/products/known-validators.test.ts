import { expect } from 'chai'
import type { Validators } from '../../../gateway/catalog/operation-validators.ts'
import type { Edition } from '../../../gateway/products/edition.ts'
import type { OperationId } from '../../../gateway/plugin/catalog.ts'
import { callOperation } from '../../../gateway/testing/testing.ts'
import { gold } from '../../support/catalog.ts'
import { useEditions } from './edition-fixture.ts'

const price = (edition: Edition, query: Readonly<Record<string, unknown>>): Promise<unknown> =>
  callOperation(edition, 'getGold', { asOf: new Date(0), query }).then(
    (answer) => (answer as { price: number }).price,
    (error: unknown) => (error as { status: number }).status,
  )

describe('the validators that a process remembers', () => {
  const { open, build, write } = useEditions()
  const remembering = () => ({ knownValidators: new Map<string, ReadonlyMap<OperationId, Validators>>() })

  it('serve an edition that follows none, if its schemas are the same', async () => {
    const options = remembering()
    await open({ 'gold.json': gold() })
    const { edition: first } = await build(undefined, options)
    const [made] = options.knownValidators.values()
    const { edition: second } = await build(undefined, options)
    expect([...options.knownValidators.values()]).to.have.length(1)
    expect([...options.knownValidators.values()][0]).to.equal(made)
    for (const edition of [first, second]) {
      expect(await price(edition, { days: '3' })).to.equal(1900)
      expect(await price(edition, { days: 'x' })).to.equal(422)
    }
  })

  it('do not serve a product whose schemas have changed', async () => {
    const options = remembering()
    await open({ 'gold.json': gold() })
    await build(undefined, options)
    write('gold.json', gold({ query: { type: 'object', properties: { days: { type: 'integer', maximum: 2 } } } }))
    const { edition } = await build(undefined, options)
    expect(options.knownValidators.size).to.equal(2)
    expect(await price(edition, { days: 3 })).to.equal(422)
  })

  it('leave out a product whose example is wrong, which is refused each time', async () => {
    const options = remembering()
    const wrong = gold({ example: { request: { query: { days: 'x' } } } })
    await open({ 'gold.json': wrong })
    const { issues } = await build(undefined, options)
    const { issues: again } = await build(undefined, options)
    expect(issues.map(({ rule }) => rule)).to.deep.equal(['example'])
    expect(again).to.deep.equal(issues)
    expect(options.knownValidators.size).to.equal(0)
  })
})
