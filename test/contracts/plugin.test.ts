import type { JobCount } from '../../gateway/editions/jobs.ts'
import type { Facts } from '../../gateway/plugin/plugin.ts'
import { expect } from 'chai'
import { readConfig } from '../../gateway/config/config.ts'
import { openCatalog } from '../../gateway/compose.ts'
import { keepsTheContract } from './plugin.ts'

const MINUTE = 60_000
const now = new Date(Math.floor(Date.now() / MINUTE) * MINUTE)
const { edition, close } = await openCatalog(readConfig(), () => now)
/** `npm test -- --product gold`: that one only. */
const product = process.env['PRODUCT']

describe(product === undefined ? 'every product of the catalog' : `the product ${product}`, function () {
  this.timeout(120_000)
  before(async () => {
    edition?.start()
    while (await edition?.facts().then(isBusy)) await new Promise((wake) => setTimeout(wake, 500))
  })
  after(close)

  if (product !== undefined)
    it('is in the catalog', () => {
      const why = edition?.withheld.find((one) => one.product === product)?.reason
      const products = edition?.catalog.products.map(({ id }) => id)
      expect(products, why).to.include(product)
    })

  keepsTheContract(edition, { now, ...(product === undefined ? {} : { product }) })
})

/** True while some job in question has not ended its first run: a first start makes ten months of sample data. */
function isBusy(facts: Readonly<Record<string, Facts>>): boolean {
  const meant = Object.entries(facts).filter(([id]) => product === undefined || id === product)
  const jobs = meant.flatMap(([, { jobs }]) => Object.values((jobs ?? {}) as Record<string, JobCount>))
  return jobs.some(({ runs }) => runs === 0)
}
