import { expect } from 'chai'
import { definePlugin, type Facts } from '../../../gateway/plugin/plugin.ts'
import { openCatalog, openEditionBuilder, thing } from '../../support/catalog.ts'

describe('the facts of a product', () => {
  it('are the last ones if new ones cannot be read, and empty if there were never any', async () => {
    const catalog = openCatalog({ 'moody.json': thing('moody') })
    const builder = await openEditionBuilder(catalog)
    const moods: (() => Facts)[] = []
    const facts = async (): Promise<Facts> => (moods.shift() as () => Facts)()
    const plugin = definePlugin({
      name: 'moody',
      setup: () => ({ handlers: { getThing: () => ({ price: 1 }) }, facts }),
    })
    const { edition } = await builder.build({ builtins: [plugin] })
    const fails = (): never => {
      throw new Error('the figures are away')
    }
    moods.push(
      fails,
      () => ({ mood: 'good' }),
      fails,
      () => ({ mood: 'better' }),
    )
    const told = []
    while (moods.length > 0) told.push((await edition.facts())['moody'])
    expect(told).to.deep.equal([{}, { mood: 'good' }, { mood: 'good' }, { mood: 'better' }])
    await edition.stop()
    await builder.close()
    catalog.close()
  })
})
