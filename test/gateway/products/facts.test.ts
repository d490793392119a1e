import { expect } from 'chai'
import { definePlugin, type Facts } from '../../../gateway/plugin/plugin.ts'
import { openCatalog, openEditionBuilder, thing } from '../../support/catalog.ts'

describe('the facts of a product', () => {
  it('stay the same if new ones cannot be read, and are empty if there were never any', async () => {
    const catalog = openCatalog({ 'moody.json': thing('moody') })
    const builder = await openEditionBuilder(catalog)
    const readings: (() => Facts)[] = []
    const facts = async (): Promise<Facts> => (readings.shift() as () => Facts)()
    const plugin = definePlugin({
      name: 'moody',
      setup: () => ({ handlers: { getThing: () => ({ price: 1 }) }, facts }),
    })
    const { edition } = await builder.build({ builtins: [plugin] })
    const fails = (): never => {
      throw new Error('the figures are away')
    }
    readings.push(
      fails,
      () => ({ mood: 'good' }),
      fails,
      () => ({ mood: 'better' }),
    )
    const reported = []
    while (readings.length > 0) reported.push((await edition.facts())['moody'])
    expect(reported).to.deep.equal([{}, { mood: 'good' }, { mood: 'good' }, { mood: 'better' }])
    await edition.stop()
    await builder.close()
    catalog.close()
  })
})
